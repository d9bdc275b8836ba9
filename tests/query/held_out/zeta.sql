--= google/differential-privacy examples/zetasql/codelab.md
--: refused unknown-name, missing: times of the day in texts
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(
    epsilon=1, delta=1e-5, max_groups_contributed=1, privacy_unit_column=VisitorId)
  TIME_TRUNC(PARSE_TIME("%I:%M%p", `Time entered`), HOUR) AS `Hour entered`,
  COUNT(*, contribution_bounds_per_group => (0, 1)) AS `Total Visitors (DP)`
FROM day_data
GROUP BY `Hour entered`
--~ SELECT date_trunc('hour', strptime("Time entered", '%I:%M%p'))::TIME, COUNT(*) FROM day_data GROUP BY 1

SELECT
  `Day`,
  SUM(CAST (`Money spent (euros)` AS INT32)) AS `Total money spent (Raw)`
FROM week_data
GROUP BY `Day`
--~ SELECT Day, SUM("Money spent (euros)") FROM week_data GROUP BY Day

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(
    epsilon=1, delta=1e-5, max_groups_contributed=1, privacy_unit_column=VisitorId)
  CAST(SAFE_MULTIPLY(CEIL(SAFE_DIVIDE(CAST(`Time spent (minutes)` AS DOUBLE), 10.0)), 10.0) AS INT32) AS `Time Spent`,
  COUNT(CAST(SAFE_MULTIPLY(CEIL(SAFE_DIVIDE(CAST(`Time spent (minutes)` AS DOUBLE), 10.0)), 10.0) AS INT32), contribution_bounds_per_group => (0, 3)) AS `Total visitors (DP)`
FROM day_data
GROUP BY `Time Spent`
--~ SELECT CAST(CEIL("Time spent (minutes)" / 10.0) * 10 AS INT), COUNT(*) FROM day_data GROUP BY 1

--= google/zetasql docs/aggregate-dp-functions.md
-- With noise
SELECT
  WITH DIFFERENTIAL_PRIVACY
    OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1, privacy_unit_column=id)
    item,
    AVG(quantity, contribution_bounds_per_group => (0,100)) average_quantity
FROM professors
GROUP BY item;
--~ SELECT item, AVG(quantity) FROM professors GROUP BY item

SELECT
  WITH DIFFERENTIAL_PRIVACY
    OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1, privacy_unit_column=id)
    item,
    COUNT(item, contribution_bounds_per_group => (0,100)) times_requested
FROM professors
GROUP BY item;
--~ SELECT item, COUNT(item) FROM professors GROUP BY item

--: about
SELECT
  WITH DIFFERENTIAL_PRIVACY
    OPTIONS(epsilon=10000, delta=.01, max_groups_contributed=1, privacy_unit_column=id)
    item,
    PERCENTILE_CONT(quantity, 0.5, contribution_bounds_per_row => (0,100)) percentile_requested
FROM professors
GROUP BY item;
--~ SELECT item, quantile_cont(quantity, 0.5) FROM professors GROUP BY item

SELECT
  WITH DIFFERENTIAL_PRIVACY
    OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1, privacy_unit_column=id)
    item,
    VAR_POP(quantity, contribution_bounds_per_row => (0,100)) pop_variance
FROM professors
GROUP BY item;
--~ SELECT item, VAR_POP(quantity) FROM professors GROUP BY item

-- With noise
SELECT
  WITH ANONYMIZATION
    OPTIONS(epsilon=10, delta=.01, max_groups_contributed=1)
    item,
    ANON_SUM(quantity CLAMPED BETWEEN 0 AND 100) quantity
FROM professors
GROUP BY item;
--~ SELECT item, SUM(quantity) FROM professors GROUP BY item

--: about
SELECT
  WITH ANONYMIZATION
    OPTIONS(epsilon=10000, delta=.01, max_groups_contributed=1)
    item,
    ANON_QUANTILES(quantity, 4 CLAMPED BETWEEN 0 AND 100) quantiles_requested
FROM professors
GROUP BY item;
--~ SELECT item, quantile_cont(quantity, [0, 0.25, 0.5, 0.75, 1]) FROM professors GROUP BY item

--= google/zetasql docs/differential-privacy.md
SELECT WITH DIFFERENTIAL_PRIVACY
  OPTIONS (epsilon=1.09, delta=1e-5, privacy_unit_column=members.id)
  item,
  COUNT(*)
FROM (SELECT * FROM professors) AS members
GROUP BY item;
--~ SELECT item, COUNT(*) FROM professors GROUP BY item

--= GoogleCloudPlatform fhir_synthea dp queries (code index 45940798129, 45996391088; struct fields as columns)
-- retrieves the average duration of ambulatory encounters ('AMB')
SELECT
WITH DIFFERENTIAL_PRIVACY
  OPTIONS (
    epsilon = 0.5,
    delta = 1e-7,
    privacy_unit_column = patient_id
  )
  class_code encounter_class,
  ROUND(AVG(TIMESTAMP_DIFF(TIMESTAMP(period_end), TIMESTAMP(period_start), MINUTE)),1) as avg_minutes
FROM
  `bigquery-public-data.fhir_synthea.encounter`
WHERE
  period_end >= period_start
  AND class_code = 'AMB'
GROUP BY
  1
ORDER BY
  2 DESC
--~ SELECT class_code, ROUND(AVG(date_sub('minute', period_start, period_end)), 1) FROM encounter WHERE period_end >= period_start AND class_code = 'AMB' GROUP BY 1 ORDER BY 2 DESC

--: about
-- calculates quantiles of the number of encounters per patient within each encounter class
SELECT
WITH DIFFERENTIAL_PRIVACY OPTIONS (
  epsilon = 10000,
  delta = 1e-7,
  privacy_unit_column = patient_id
)
  encounter_class,
  round(PERCENTILE_CONT(num_encounters, 0.5, contribution_bounds_per_row => (0, 10000)), 1) AS median_encounters,
  round(PERCENTILE_CONT(num_encounters, 0.9, contribution_bounds_per_row => (0, 10000)), 1) AS p90_encounters
FROM (
  SELECT
    class_code AS encounter_class,
    patient_id AS patient_id,
    COUNT(DISTINCT id) AS num_encounters
  FROM
    `bigquery-public-data.fhir_synthea.encounter`
  GROUP BY
    encounter_class, patient_id
)
GROUP BY encounter_class ORDER BY encounter_class;
--~ SELECT class_code, quantile_cont(n, 0.5), quantile_cont(n, 0.9) FROM (SELECT class_code, patient_id, COUNT(DISTINCT id) AS n FROM encounter GROUP BY ALL) GROUP BY 1 ORDER BY 1
