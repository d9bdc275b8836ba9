--= counts
SELECT COUNT(*) FROM patients

SELECT COUNT(*) AS n FROM patients;

select count(1) as total from Patients

SELECT COUNT(age) FROM patients

SELECT COUNT(patient_id) AS n FROM patients

SELECT COUNT(visit_id) AS n FROM visits

SELECT COUNT(v.visit_id) AS n FROM visits AS v

SELECT COUNT(DISTINCT patient_id) AS people FROM visits

SELECT COUNT(DISTINCT v.patient_id) FROM visits v WHERE v.cost > 250

SELECT COUNT(ALL age) AS n FROM patients

SELECT COUNT(*) n, COUNT(*) * 2 twice FROM patients

SELECT COUNT(*) AS "number of people" FROM patients WHERE smoker

SELECT sex, COUNT(patient_id) AS n FROM patients GROUP BY sex ORDER BY sex

SELECT COUNT(*) FROM patients WHERE age > 65 AND NOT smoker

SELECT COUNT(*) FROM patients WHERE city IN ('Rome', 'Oslo') OR sex = 'F'

SELECT COUNT(*) FROM patients WHERE city <> 'Rome' AND city != 'Oslo'

SELECT COUNT(*) FROM patients WHERE age BETWEEN 20 AND 40

SELECT COUNT(*) FROM patients WHERE city LIKE 'R%'

--= counts with conditions
SELECT COUNT_IF(age > 40) AS older FROM patients

SELECT COUNTIF(smoker) AS smokers, COUNT(*) AS everyone FROM patients
--~ SELECT COUNT_IF(smoker), COUNT(*) FROM patients

SELECT city, COUNT_IF(smoker) AS smokers FROM patients GROUP BY city ORDER BY city

SELECT COUNT(*) FILTER (WHERE age >= 18) AS adults FROM patients

SELECT city, COUNT(*) FILTER (WHERE sex = 'F') AS women, COUNT(*) FILTER (WHERE sex = 'M') AS men FROM patients GROUP BY city

SELECT SUM(income) FILTER (WHERE smoker) AS s FROM patients

SELECT AVG(income) FILTER (WHERE city = 'Rome') AS a FROM patients

SELECT COUNT(DISTINCT patient_id) FILTER (WHERE cost > 100) AS n FROM visits

SELECT COUNT(*) AS visits, COUNT(DISTINCT patient_id) FILTER (WHERE cost > 100) AS n FROM visits

SELECT site, COUNT(*) AS n, COUNT(DISTINCT CASE WHEN minutes > 60 THEN patient_id END) AS long_stays FROM visits GROUP BY site

SELECT SUM(CASE WHEN smoker THEN 1 ELSE 0 END) AS smokers FROM patients

SELECT COUNT(CASE WHEN age < 18 THEN 1 END) AS children FROM patients

SELECT SUM(IF(age < 18, 1, 0)) AS children FROM patients
--~ SELECT SUM(CASE WHEN age < 18 THEN 1 ELSE 0 END) FROM patients

SELECT SUM(CASE sex WHEN 'F' THEN 1 ELSE 0 END) AS women FROM patients

SELECT SUM(CASE city WHEN 'Rome' THEN 2 WHEN 'Oslo' THEN 1 ELSE 0 END) AS points FROM patients

SELECT COUNT(*) FROM patients WHERE smoker IS TRUE

SELECT COUNT(*) FROM patients WHERE smoker IS NOT TRUE

SELECT COUNT(*) FROM patients WHERE smoker IS FALSE OR age > 90

SELECT COUNT(*) FROM patients WHERE city IS DISTINCT FROM 'Rome'

SELECT COUNT(*) FROM patients WHERE city IS NOT DISTINCT FROM 'Oslo'

SELECT COUNT(*) FROM patients WHERE age IS DISTINCT FROM weight

SELECT COUNT(*) FROM patients WHERE smoker = TRUE

--= sums and averages
SELECT SUM(income) AS s FROM patients

SELECT AVG(income) FROM patients

SELECT MEAN(age) AS m FROM patients
--~ SELECT AVG(age) FROM patients

SELECT sex, SUM(income) AS total, AVG(income) AS mean, COUNT(*) AS n FROM patients GROUP BY sex

SELECT SUM(cost) AS c, SUM(minutes) AS m FROM visits

SELECT SUM(cost) / COUNT(*) AS per_visit FROM visits

SELECT SUM(cost) / COUNT(DISTINCT patient_id) AS per_person FROM visits

SELECT SUM(cost * 2 + minutes) AS s FROM visits

SELECT AVG(age + weight) AS a FROM patients

SELECT SUM(cost) / NULLIF(COUNT(*), 0) AS safe FROM visits

SELECT SAFE_DIVIDE(SUM(cost), COUNT(*)) AS safe FROM visits
--~ SELECT SUM(cost) / COUNT(*) FROM visits

SELECT VARIANCE(age) AS v, STDDEV(age) AS s FROM patients

SELECT VAR(age) FROM patients
--~ SELECT VAR_SAMP(age) FROM patients

SELECT STD(age) AS s FROM patients
--~ SELECT STDDEV_SAMP(age) FROM patients

SELECT STDEV(weight) AS s FROM patients
--~ SELECT STDDEV_SAMP(weight) FROM patients

SELECT VAR_POP(age), VAR_SAMP(age) FROM patients

SELECT STDDEV_POP(income) AS sp, STDDEV_SAMP(income) AS ss FROM patients

SELECT city, VAR_POP(weight) AS v FROM patients GROUP BY city ORDER BY city

SELECT sex, STDDEV(weight) AS s FROM patients GROUP BY sex

--= quantiles
--: about
SELECT MEDIAN(age) FROM patients

--: about
SELECT QUANTILE_CONT(age, 0.25) AS q FROM patients

--: about
SELECT QUANTILE(age, 0.75) AS q FROM patients

--: about
SELECT QUANTILE_CONT(income, [0.25, 0.5, 0.75]) AS quartiles FROM patients

--: about
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) AS m FROM patients

--: about
SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY age) AS p90 FROM patients

--: about
SELECT city, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY weight) AS m FROM patients GROUP BY city ORDER BY city

--: about
SELECT APPROX_QUANTILES(age, 4) AS quartiles FROM patients
--~ SELECT [MIN(age), QUANTILE_CONT(age, 0.25), QUANTILE_CONT(age, 0.5), QUANTILE_CONT(age, 0.75), MAX(age)] FROM patients

--: about
SELECT APPROX_QUANTILE(age, 0.5) AS q FROM patients

--: about
SELECT PERCENTILE_CONT(age, 0.5) AS m FROM patients
--~ SELECT MEDIAN(age) FROM patients

--: about
SELECT MEDIAN(cost) FILTER (WHERE site = 'north') AS m FROM visits

--: about
SELECT MIN(age) AS youngest, MAX(age) AS oldest FROM patients

SELECT MODE(city) AS c FROM patients

SELECT MODE() WITHIN GROUP (ORDER BY sex) AS s FROM patients WHERE age > 30
--~ SELECT MODE(sex) FROM patients WHERE age > 30

--= groups
SELECT city, COUNT(*) FROM patients GROUP BY city

SELECT city, sex, COUNT(*) AS n FROM patients GROUP BY city, sex ORDER BY city, sex

SELECT city, sex, COUNT(*) AS n FROM patients GROUP BY 1, 2 ORDER BY 1, 2

SELECT city, sex, COUNT(*) AS n FROM patients GROUP BY ALL

SELECT city AS town, COUNT(*) AS n FROM patients GROUP BY town

SELECT age > 50 AS senior, COUNT(*) AS n FROM patients GROUP BY age > 50

SELECT FLOOR(age / 20) AS band, COUNT(*) AS n FROM patients WHERE age < 100 GROUP BY FLOOR(age / 20) HAVING COUNT(*) > 0

SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'senior' END AS band, COUNT(*) AS n FROM patients GROUP BY 1

SELECT CASE city WHEN 'Rome' THEN 'south' ELSE 'north' END AS side, COUNT(*) AS n FROM patients GROUP BY side

SELECT EXTRACT(year FROM born) AS y, COUNT(*) AS n FROM patients GROUP BY y ORDER BY y

SELECT YEAR(born) AS y, AVG(income) AS a FROM patients GROUP BY YEAR(born)

SELECT QUARTER(seen) AS q, SUM(cost) AS s FROM visits GROUP BY q ORDER BY q

SELECT MONTH(seen) AS m, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1

SELECT DATE_TRUNC('month', seen) AS month, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1

SELECT DISTINCT city, COUNT(*) AS n FROM patients GROUP BY city

--: delta
SELECT job, COUNT(*) AS n FROM patients GROUP BY job

--: delta
SELECT job, AVG(age) AS a, COUNT(*) AS n FROM patients GROUP BY job ORDER BY n DESC

--= having, order and limit
SELECT city, COUNT(*) AS n FROM patients GROUP BY city HAVING COUNT(*) > 70

SELECT city, COUNT(*) AS n FROM patients GROUP BY city HAVING n > 70

SELECT city, AVG(age) AS a FROM patients GROUP BY city HAVING AVG(age) > 10 AND COUNT(*) > 10 ORDER BY a DESC

SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n DESC LIMIT 1

SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY COUNT(*) DESC, city LIMIT 2

SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n DESC LIMIT 1 OFFSET 1

SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n DESC OFFSET 1

SELECT TOP 1 city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n DESC
--~ SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n DESC LIMIT 1

SELECT TOP (2) city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n DESC
--~ SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n DESC LIMIT 2

SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n DESC FETCH FIRST 2 ROWS ONLY
--~ SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n DESC LIMIT 2

SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n OFFSET 1 ROWS FETCH NEXT 1 ROW ONLY
--~ SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY n LIMIT 1 OFFSET 1

SELECT city, SUM(income) / COUNT(*) AS mean FROM patients GROUP BY city ORDER BY SUM(income) / COUNT(*) DESC

SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY CASE city WHEN 'Oslo' THEN 0 ELSE 1 END, city

SELECT city, COUNT(*) AS n FROM patients GROUP BY city ORDER BY ABS(COUNT(*) - 90)

--= spelling
SELECT `city`, COUNT(*) AS `n` FROM `patients` GROUP BY `city`
--~ SELECT city, COUNT(*) AS n FROM patients GROUP BY city

SELECT [city], COUNT(*) AS [number of people] FROM [patients] GROUP BY [city]
--~ SELECT city, COUNT(*) AS n FROM patients GROUP BY city

SELECT "city", COUNT(*) AS "n" FROM "patients" GROUP BY "city"

SELECT COUNT(*) FROM patients -- everyone

SELECT COUNT(*) /* rows */ FROM patients /* of the clinic */

SELECT COUNT(*) FROM patients # everyone
--~ SELECT COUNT(*) FROM patients

-- how many smokers are there?
SELECT COUNT(*) FROM patients WHERE smoker;

SELECT COUNT(*) FROM patients;;
--~ SELECT COUNT(*) FROM patients

(SELECT COUNT(*) FROM patients)

SELECT ALL COUNT(*) FROM patients
--~ SELECT COUNT(*) FROM patients

SELECT COUNT(*) FROM patients WHERE age > .5

SELECT COUNT(*) FROM patients WHERE age >= 1e1

SELECT COUNT(*) FROM patients WHERE NOT (age < 18 OR age > 65)

SELECT COUNT(*) FROM patients WHERE age <> 30 AND 40 < age

SELECT COUNT(*) FROM patients WHERE born >= '1950-06-01' AND born < DATE '1951-01-01'

SELECT COUNT(*) FROM patients WHERE born BETWEEN '1950-01-01' AND '1950-12-31'

SELECT COUNT(*) FROM clinic.patients

SELECT COUNT(*) FROM PUMS.patients

SELECT COUNT(*) FROM main.patients

SELECT patients.city, COUNT(*) AS n FROM clinic.patients GROUP BY patients.city

SELECT p.city, COUNT(*) AS n FROM clinic.patients p GROUP BY p.city

SELECT city, COUNT(*) AS n FROM `my_project.clinic.patients` GROUP BY city
--~ SELECT city, COUNT(*) AS n FROM patients GROUP BY city

SELECT clinic.patients.city, COUNT(*) AS n FROM clinic.patients GROUP BY clinic.patients.city

--= joins
SELECT COUNT(*) FROM patients p JOIN visits v ON p.patient_id = v.patient_id

SELECT COUNT(*) FROM patients p INNER JOIN visits v ON v.patient_id = p.patient_id WHERE p.smoker

SELECT COUNT(*) FROM patients JOIN visits USING (patient_id)

SELECT COUNT(DISTINCT patient_id) AS n FROM patients JOIN visits USING (patient_id) WHERE cost > 100

SELECT city, COUNT(DISTINCT patient_id) AS n FROM patients INNER JOIN visits USING (patient_id) GROUP BY city

SELECT COUNT(*) FROM patients NATURAL JOIN visits

SELECT site, AVG(age) AS a FROM patients NATURAL JOIN visits GROUP BY site

SELECT COUNT(*) FROM patients p, visits v WHERE p.patient_id = v.patient_id

SELECT p.city, SUM(v.cost) AS s FROM patients p, visits v WHERE p.patient_id = v.patient_id AND v.site = 'north' GROUP BY p.city

SELECT COUNT(*) FROM patients p CROSS JOIN visits v WHERE p.patient_id = v.patient_id

SELECT COUNT(*) FROM (patients p JOIN visits v ON p.patient_id = v.patient_id)

SELECT region, COUNT(*) AS n FROM (patients p JOIN visits v ON p.patient_id = v.patient_id) JOIN sites s ON s.site = v.site GROUP BY region

SELECT s.region, COUNT(*) AS n FROM visits v JOIN sites s ON v.site = s.site GROUP BY s.region

SELECT s.region, SUM(v.cost) AS c FROM sites s JOIN visits v ON v.site = s.site GROUP BY s.region

SELECT s.region, COUNT(*) AS n FROM visits v, sites s WHERE v.site = s.site GROUP BY s.region

SELECT p.sex, s.region, COUNT(*) AS n FROM patients p, visits v, sites s WHERE p.patient_id = v.patient_id AND v.site = s.site GROUP BY p.sex, s.region

SELECT p.sex, COUNT(*) AS n FROM patients p, sites s, visits v WHERE p.patient_id = v.patient_id AND v.site = s.site AND s.region = 'outer' GROUP BY p.sex

SELECT region, COUNT(*) AS n FROM visits NATURAL JOIN sites GROUP BY region

SELECT SUM(beds) AS b FROM visits JOIN sites USING (site)

SELECT site, COUNT(*) AS n FROM visits JOIN sites USING (site) GROUP BY site

SELECT COUNT(*) FROM patients p LEFT JOIN visits v ON p.patient_id = v.patient_id

SELECT COUNT(DISTINCT v.patient_id) AS n FROM patients p LEFT JOIN visits v ON p.patient_id = v.patient_id

SELECT COUNT(DISTINCT p.patient_id) AS n FROM patients p LEFT JOIN visits v ON p.patient_id = v.patient_id

SELECT COUNT(v.visit_id) AS n FROM patients p LEFT JOIN visits v ON p.patient_id = v.patient_id

SELECT COUNT(v.patient_id) AS with_visit, COUNT(*) AS all_rows FROM patients p LEFT JOIN visits v ON p.patient_id = v.patient_id

SELECT p.city, COUNT(v.visit_id) AS n FROM patients p LEFT JOIN visits v ON p.patient_id = v.patient_id GROUP BY p.city

SELECT p.city, COUNT(DISTINCT p.patient_id) AS everyone, COUNT(DISTINCT v.patient_id) AS visitors FROM patients p LEFT JOIN visits v ON p.patient_id = v.patient_id GROUP BY p.city

SELECT COUNT(*) FROM patients p LEFT JOIN visits v ON p.patient_id = v.patient_id AND v.cost > 400

SELECT COUNT(v.cost) AS n FROM patients p LEFT OUTER JOIN visits v ON p.patient_id = v.patient_id AND p.smoker

SELECT COUNT(v.cost) AS n, COUNT(*) AS m FROM patients p LEFT JOIN visits v ON p.patient_id = v.patient_id AND p.age > 40 AND v.site = 'north'

SELECT COUNT(*) FROM visits v RIGHT JOIN patients p ON p.patient_id = v.patient_id

SELECT p.sex, COUNT(v.cost) AS n FROM visits v RIGHT OUTER JOIN patients p ON p.patient_id = v.patient_id GROUP BY p.sex

SELECT COUNT(*) FROM patients p LEFT JOIN visits v ON p.patient_id = v.patient_id WHERE v.cost IS NULL

SELECT COUNT(*) FROM patients LEFT JOIN visits USING (patient_id)

SELECT COUNT(*) FROM visits v LEFT JOIN sites s ON v.site = s.site AND s.region = 'inner' WHERE s.beds IS NULL

--: refused syntax
SELECT COUNT(*) FROM patients p FULL JOIN visits v ON p.patient_id = v.patient_id

--: refused syntax
SELECT COUNT(*) FROM patients p, visits v

--: refused syntax
SELECT COUNT(*) FROM patients p JOIN visits v ON p.age < v.cost

--: refused syntax
SELECT COUNT(*) FROM sites s LEFT JOIN visits v ON v.site = s.site

--: refused syntax
SELECT COUNT(*) FROM patients a JOIN patients b ON a.city = b.city

--: refused unknown-name
SELECT COUNT(*) FROM other_schema.patients

--= subqueries over rows
SELECT COUNT(*) FROM (SELECT age FROM patients WHERE smoker) t WHERE age > 50

SELECT AVG(n) AS a FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t

SELECT AVG(total) AS a, COUNT(*) AS n FROM (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id)

WITH per_person AS (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) SELECT COUNT(*) FROM per_person WHERE n >= 2

WITH old AS (SELECT * FROM patients WHERE age > 50) SELECT city, COUNT(*) AS n FROM old GROUP BY city

WITH a AS (SELECT patient_id, age FROM patients), b AS (SELECT patient_id, cost FROM visits) SELECT COUNT(*) FROM a JOIN b ON a.patient_id = b.patient_id WHERE a.age > b.cost / 5

SELECT COUNT(*) FROM (SELECT city FROM patients UNION ALL SELECT city FROM patients) u

SELECT COUNT(*) FROM (SELECT DISTINCT patient_id FROM visits WHERE cost > 100) t

SELECT city, sex, COUNT(*) AS n FROM patients GROUP BY (city, sex)

SELECT COUNT(*) FROM (SELECT DISTINCT patient_id, site FROM visits) t

--: refused syntax
SELECT AVG(cost) FROM (SELECT cost FROM visits ORDER BY cost LIMIT 10) t

--: refused syntax
SELECT AVG(cost) FROM (SELECT cost FROM visits OFFSET 3) t

--: refused syntax
SELECT COUNT(*) FROM (SELECT city FROM patients UNION ALL SELECT city FROM patients LIMIT 5) u

--= results: shares and windows
SELECT city, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS share FROM patients GROUP BY city

SELECT city, COUNT(*) AS n, ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS percent FROM patients GROUP BY city ORDER BY percent DESC

SELECT city, sex, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER (PARTITION BY city) AS within_city FROM patients GROUP BY city, sex

SELECT city, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM patients GROUP BY city

SELECT city, DENSE_RANK() OVER (ORDER BY AVG(age)) AS r FROM patients GROUP BY city

SELECT city, ROW_NUMBER() OVER (ORDER BY SUM(income) DESC) AS r, SUM(income) AS s FROM patients GROUP BY city

SELECT MONTH(seen) AS m, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY MONTH(seen)) AS running FROM visits GROUP BY MONTH(seen) ORDER BY m

SELECT QUARTER(seen) AS q, SUM(cost) AS s, SUM(SUM(cost)) OVER (ORDER BY QUARTER(seen) ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running FROM visits GROUP BY 1 ORDER BY 1

SELECT QUARTER(seen) AS q, COUNT(*) AS n, LAG(COUNT(*)) OVER (ORDER BY QUARTER(seen)) AS before FROM visits GROUP BY q ORDER BY q

SELECT QUARTER(seen) AS q, COUNT(*) - LAG(COUNT(*), 1, 0) OVER (ORDER BY QUARTER(seen)) AS change FROM visits GROUP BY q ORDER BY q

SELECT QUARTER(seen) AS q, LEAD(COUNT(*)) OVER (ORDER BY QUARTER(seen)) AS next FROM visits GROUP BY q ORDER BY q

SELECT city, COUNT(*) AS n, AVG(COUNT(*)) OVER () AS mean_size FROM patients GROUP BY city

SELECT city, COUNT(*) - AVG(COUNT(*)) OVER () AS above FROM patients GROUP BY city

SELECT city, NTILE(2) OVER (ORDER BY COUNT(*)) AS half FROM patients GROUP BY city

SELECT city, FIRST_VALUE(city) OVER (ORDER BY COUNT(*) DESC) AS largest FROM patients GROUP BY city

SELECT city, sex, COUNT(*) AS n FROM patients GROUP BY city, sex QUALIFY ROW_NUMBER() OVER (PARTITION BY city ORDER BY COUNT(*) DESC) = 1

SELECT city, COUNT(*) AS n, RANK() OVER w AS r FROM patients GROUP BY city WINDOW w AS (ORDER BY COUNT(*) DESC)

SELECT MONTH(seen) AS m, AVG(COUNT(*)) OVER (ORDER BY MONTH(seen) ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS smooth FROM visits GROUP BY m ORDER BY m

--: refused syntax
SELECT age, RANK() OVER (ORDER BY age) AS r FROM patients

--: refused syntax
SELECT SUM(age) OVER (PARTITION BY city) AS s FROM patients

--= results: expressions
SELECT CASE WHEN COUNT(*) > 100 THEN 'large' ELSE 'small' END AS size, city FROM patients GROUP BY city

SELECT COALESCE(SUM(income), 0) AS s FROM patients

SELECT COALESCE(AVG(age), 0.0) AS a, IFNULL(SUM(cost), 0) AS b FROM patients JOIN visits USING (patient_id)

SELECT NULLIF(COUNT(*), 0) AS n FROM patients

SELECT CAST(COUNT(*) AS DOUBLE) AS n, CAST(AVG(age) AS INTEGER) AS a FROM patients

SELECT COUNT(*)::FLOAT / 2 AS half FROM patients

SELECT CAST(COUNT(*) AS VARCHAR) AS n FROM patients

SELECT ROUND(AVG(income), 2) AS a, ROUND(SUM(cost) / 1000.0) AS thousands FROM patients JOIN visits USING (patient_id)

SELECT CAST(AVG(age) AS DECIMAL(10, 1)) AS a FROM patients

SELECT CONCAT(city, ': ', CAST(COUNT(*) AS VARCHAR)) AS line FROM patients GROUP BY city

SELECT city || ' (' || sex || ')' AS label, COUNT(*) AS n FROM patients GROUP BY city, sex

SELECT UPPER(city) AS c, COUNT(*) AS n FROM patients GROUP BY city

SELECT LOWER(sex) AS s, SUBSTR(city, 1, 2) AS c, COUNT(*) AS n FROM patients GROUP BY sex, city

SELECT STRFTIME(DATE_TRUNC('month', seen), '%Y-%m') AS month, COUNT(*) AS n FROM visits GROUP BY DATE_TRUNC('month', seen) ORDER BY month

SELECT COUNT(*) AS n, 'patients' AS what FROM patients

SELECT 2024 AS year, COUNT(*) AS n FROM visits

SELECT COUNT(*) > 100 AS many FROM patients

SELECT GREATEST(COUNT(*), 0) AS n, LEAST(AVG(age), 200) AS a FROM patients

SELECT SQRT(COUNT(*)) AS r, LN(COUNT(*)) AS l, FLOOR(AVG(age)) AS f FROM patients

SELECT AVG(income) - 2 * STDDEV(income) AS low, AVG(income) + 2 * STDDEV(income) AS high FROM patients

SELECT STDDEV(income) / AVG(income) AS variation FROM patients

SELECT COUNT(*) AS n, n * 2 AS double_n FROM patients

SELECT COUNT(*) % 7 AS m FROM patients

SELECT city, IF(COUNT(*) > 100, 'yes', 'no') AS big FROM patients GROUP BY city
--~ SELECT city, CASE WHEN COUNT(*) > 100 THEN 'yes' ELSE 'no' END FROM patients GROUP BY city

SELECT SUM(CASE WHEN smoker THEN 1 ELSE 0 END) * 100.0 / COUNT(*) AS percent FROM patients

SELECT COUNT_IF(smoker) / COUNT(*) AS share FROM patients

--= results: outer SELECTs
SELECT city, n FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) t WHERE n > 70 ORDER BY n DESC

SELECT * FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t ORDER BY n DESC LIMIT 2

SELECT city, n, n * 1.0 / SUM(n) OVER () AS share FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city)

SELECT AVG(n) AS mean_size, MAX(n) AS largest FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) t

WITH counts AS (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) SELECT SUM(n) AS total FROM counts

WITH counts AS (SELECT city, sex, COUNT(*) AS n FROM patients GROUP BY city, sex) SELECT city, MAX(n) - MIN(n) AS gap FROM counts GROUP BY city

WITH counts AS (SELECT city, sex, COUNT(*) AS n FROM patients GROUP BY city, sex) SELECT city, SUM(n) AS n FROM counts GROUP BY city ORDER BY n DESC

WITH a AS (SELECT city, COUNT(*) AS n FROM patients GROUP BY city), b AS (SELECT COUNT(*) AS total FROM patients) SELECT a.city, a.n * 1.0 / b.total AS share FROM a CROSS JOIN b

SELECT a.city, a.n, b.n AS smokers FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) a JOIN (SELECT city, COUNT(*) AS n FROM patients WHERE smoker GROUP BY city) b ON a.city = b.city

SELECT city, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM patients) AS share FROM patients GROUP BY city

SELECT (SELECT COUNT(*) FROM patients WHERE smoker) * 1.0 / (SELECT COUNT(*) FROM patients) AS share

SELECT COUNT(*) FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) t WHERE n > 70

SELECT city FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) t WHERE n = (SELECT MAX(n) FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) u)

SELECT UPPER(city) AS c, ROUND(a, 1) AS a FROM (SELECT city, AVG(age) AS a FROM patients GROUP BY city) t

SELECT t.city, CASE WHEN t.n > 100 THEN 'large' ELSE 'small' END AS size FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) t

--= results: unions
SELECT 'smokers' AS who, COUNT(*) AS n FROM patients WHERE smoker UNION ALL SELECT 'others', COUNT(*) FROM patients WHERE NOT smoker

SELECT city, COUNT(*) AS n FROM patients GROUP BY city UNION ALL SELECT 'all', COUNT(*) FROM patients

SELECT city AS g, COUNT(*) AS n FROM patients GROUP BY city UNION ALL SELECT sex, COUNT(*) FROM patients GROUP BY sex ORDER BY n DESC, g LIMIT 3

(SELECT COUNT(*) AS n FROM patients) UNION ALL (SELECT COUNT(*) FROM visits)

SELECT AVG(n) AS a FROM (SELECT COUNT(*) AS n FROM patients UNION ALL SELECT COUNT(*) AS n FROM visits) u

SELECT city FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) t WHERE n > 10 UNION SELECT city FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) t WHERE n > 100

--= grouping sets
SELECT city, COUNT(*) AS n FROM patients GROUP BY ROLLUP (city)

SELECT city, sex, COUNT(*) AS n FROM patients GROUP BY ROLLUP (city, sex)

SELECT city, sex, COUNT(*) AS n FROM patients GROUP BY CUBE (city, sex)

SELECT city, sex, SUM(income) AS s FROM patients GROUP BY GROUPING SETS ((city), (sex), ())

SELECT city, sex, COUNT(*) AS n, GROUPING(city) AS gc FROM patients GROUP BY GROUPING SETS ((city, sex), (sex))

SELECT city, COUNT(*) AS n FROM patients GROUP BY city WITH ROLLUP
--~ SELECT city, COUNT(*) AS n FROM patients GROUP BY ROLLUP (city)

SELECT COALESCE(city, 'Total') AS city, COUNT(*) AS n FROM patients GROUP BY ROLLUP (city)
--~ SELECT COALESCE(p.city, 'Total'), COUNT(*) AS n FROM patients p GROUP BY ROLLUP (p.city)

SELECT city, sex, AVG(age) AS a FROM patients GROUP BY city, ROLLUP (sex) ORDER BY city, sex NULLS LAST

SELECT city, COUNT(*) AS n FROM patients GROUP BY GROUPING SETS (city, ()) ORDER BY n DESC

SELECT city, COUNT(*) AS n FROM patients GROUP BY ROLLUP (city) HAVING COUNT(*) > 70

--= BigQuery and ZetaSQL
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=.01) city, COUNT(*) AS n FROM patients GROUP BY city
--~ SELECT city, COUNT(*) AS n FROM patients GROUP BY city

SELECT WITH DIFFERENTIAL_PRIVACY
  OPTIONS(epsilon=1000, delta=1e-7, privacy_unit_column=patient_id)
  COUNT(*) AS n
FROM patients
--~ SELECT COUNT(*) FROM patients

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=.01, max_groups_contributed=3, privacy_unit_column=patient_id) site, COUNT(DISTINCT patient_id) AS n FROM visits WHERE visit_id IS NOT NULL GROUP BY site
--~ SELECT site, COUNT(DISTINCT patient_id) AS n FROM visits GROUP BY site

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=.01, privacy_unit_column=patient_id) AVG(age, contribution_bounds_per_group => (0, 120)) AS a FROM patients
--~ SELECT AVG(age) FROM patients

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=.01, privacy_unit_column=patient_id) city, SUM(income, contribution_bounds_per_group => (0, 1000)) AS s FROM patients GROUP BY city
--~ SELECT city, SUM(income) FROM patients GROUP BY city

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=.01, privacy_unit_column=patient_id) SUM(income, contribution_bounds_per_group => (0, 100)) AS s FROM patients
--~ SELECT SUM(LEAST(income, 100)) FROM patients

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=.01, privacy_unit_column=patient_id) COUNT(*, contribution_bounds_per_group => (0, 10)) AS n FROM visits
--~ SELECT COUNT(*) FROM visits

--: about
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=.01, privacy_unit_column=patient_id) PERCENTILE_CONT(age, 0.5, contribution_bounds_per_row => (0, 100)) AS m FROM patients
--~ SELECT MEDIAN(age) FROM patients

SELECT WITH ANONYMIZATION OPTIONS(epsilon=1000, delta=.01, kappa=1) ANON_COUNT(*) AS n FROM patients
--~ SELECT COUNT(*) FROM patients

SELECT ANON_COUNT(*) AS n FROM patients
--~ SELECT COUNT(*) FROM patients

SELECT city, ANON_SUM(income CLAMPED BETWEEN 0 AND 1000) AS s FROM patients GROUP BY city
--~ SELECT city, SUM(income) AS s FROM patients GROUP BY city

SELECT ANON_AVG(age CLAMPED BETWEEN 0 AND 50) AS a FROM patients
--~ SELECT AVG(LEAST(age, 50)) FROM patients

SELECT ANON_VAR_POP(age CLAMPED BETWEEN 0 AND 120) AS v, ANON_STDDEV_POP(age) AS s FROM patients
--~ SELECT VAR_POP(age), STDDEV_POP(age) FROM patients

--: about
SELECT ANON_QUANTILES(age, 2 CLAMPED BETWEEN 0 AND 120) AS q FROM patients
--~ SELECT [MIN(age), MEDIAN(age), MAX(age)] FROM patients

SELECT city, n FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=.01, privacy_unit_column=patient_id) city, COUNT(*) AS n FROM patients GROUP BY city) WHERE n > 70
--~ SELECT city, COUNT(*) AS n FROM patients GROUP BY city HAVING n > 70

--= bounds per group, where a person has several rows
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=100000, delta=.01, max_groups_contributed=3, privacy_unit_column=patient_id) site, SUM(minutes, contribution_bounds_per_group => (0, 100)) AS s FROM visits GROUP BY site
--~ SELECT site, SUM(LEAST(t, 100)) AS s FROM (SELECT patient_id, site, SUM(minutes) AS t FROM visits GROUP BY ALL) GROUP BY site

SELECT site, COUNT(*, contribution_bounds_per_group => (0, 2)) AS n FROM visits GROUP BY site ORDER BY n DESC
--~ SELECT site, SUM(LEAST(t, 2)) AS n FROM (SELECT patient_id, site, COUNT(*) AS t FROM visits GROUP BY ALL) GROUP BY site ORDER BY n DESC

SELECT site, COUNT(minutes, contribution_bounds_per_group => (0, 1)) AS n FROM visits GROUP BY 1
--~ SELECT site, COUNT(DISTINCT CASE WHEN minutes IS NOT NULL THEN patient_id END) AS n FROM visits GROUP BY site

SELECT site, ANON_SUM(cost CLAMPED BETWEEN 0 AND 100) AS s, ANON_COUNT(*) AS n, COUNT(DISTINCT patient_id) AS u FROM visits WHERE minutes > 20 GROUP BY site
--~ SELECT site, SUM(LEAST(t, 100)) AS s, SUM(c) AS n, COUNT(*) AS u FROM (SELECT patient_id, site, SUM(cost) AS t, COUNT(*) AS c FROM visits WHERE minutes > 20 GROUP BY ALL) GROUP BY site

SELECT SUM(minutes, contribution_bounds_per_group => (0, 100)) FROM visits
--~ SELECT SUM(LEAST(t, 100)) FROM (SELECT patient_id, SUM(minutes) AS t FROM visits GROUP BY ALL)

SELECT site, AVG(minutes, contribution_bounds_per_group => (0, 50)) AS a FROM visits GROUP BY site
--~ SELECT site, AVG(LEAST(t, 50)) AS a FROM (SELECT patient_id, site, AVG(minutes) AS t FROM visits GROUP BY ALL) GROUP BY site

SELECT p.sex, SUM(v.cost, contribution_bounds_per_group => (0, 200)) AS s FROM visits v JOIN patients p ON v.patient_id = p.patient_id GROUP BY p.sex HAVING COUNT(*) > 5
--~ SELECT sex, SUM(LEAST(t, 200)) AS s FROM (SELECT patient_id, sex, SUM(cost) AS t FROM visits JOIN patients USING (patient_id) GROUP BY ALL) GROUP BY sex

SELECT EXTRACT(MONTH FROM seen) AS m, SUM(minutes, contribution_bounds_per_group => (0, 100)) AS s FROM visits GROUP BY m
--~ SELECT m, SUM(LEAST(t, 100)) AS s FROM (SELECT patient_id, EXTRACT(MONTH FROM seen) AS m, SUM(minutes) AS t FROM visits GROUP BY ALL) GROUP BY m

--= other spellings
SELECT COUNT(*) FROM patients WHERE smoker = 1

SELECT COUNT(*) FROM patients WHERE smoker <> 0 AND age > 30

SELECT DAYNAME(seen) AS d, COUNT(*) AS n FROM visits GROUP BY d

SELECT MONTHNAME(seen) AS d, COUNT(*) AS n FROM visits GROUP BY 1

SELECT DECODE(sex, 'F', 'female', 'male') AS s, COUNT(*) AS n FROM patients GROUP BY s
--~ SELECT CASE sex WHEN 'F' THEN 'female' ELSE 'male' END AS s, COUNT(*) AS n FROM patients GROUP BY s

SELECT HISTOGRAM(age, 2) FROM patients
--~ SELECT FLOOR(age / 60) * 60, COUNT(*) FROM patients GROUP BY 1

SELECT c_count, COUNT(*) AS n FROM (SELECT p.patient_id, COUNT(v.visit_id) AS c_count FROM patients p LEFT OUTER JOIN visits v ON p.patient_id = v.patient_id AND v.cost > 250 GROUP BY p.patient_id) AS c GROUP BY c_count

--= people and public lists in conditions
SELECT COUNT(*) FROM visits WHERE site IN (SELECT site FROM sites WHERE region = 'outer')

SELECT COUNT(*) FROM visits WHERE site NOT IN (SELECT site FROM sites WHERE region = 'outer')

SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM sites s WHERE s.site = v.site AND s.beds > 40)

SELECT COUNT(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM sites s WHERE s.site = v.site AND s.beds > 40)

SELECT COUNT(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM visits WHERE cost > 300)

SELECT COUNT(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM visits GROUP BY patient_id HAVING COUNT(*) >= 2)

SELECT COUNT(*) FROM patients WHERE patient_id NOT IN (SELECT patient_id FROM visits WHERE cost > 300)

SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id)

SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT * FROM visits v WHERE v.patient_id = p.patient_id AND v.site = 'north')

SELECT city, COUNT(*) AS n FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.cost > 100) GROUP BY city

SELECT COUNT(*) FROM patients p WHERE (SELECT COUNT(*) FROM visits v WHERE v.patient_id = p.patient_id) >= 2

SELECT COUNT(*) AS n FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.site = v.site AND w.cost > 200)

SELECT COUNT(*) AS n FROM visits v WHERE NOT EXISTS (SELECT 1 FROM visits w WHERE w.site = v.site AND v.patient_id = w.patient_id AND w.cost > 200)

SELECT site, COUNT(*) AS n FROM visits v WHERE (SELECT COUNT(*) FROM visits w WHERE w.patient_id = v.patient_id AND w.site = v.site) > 1 GROUP BY site ORDER BY site

SELECT COUNT(*) AS n FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id = v.patient_id AND w.visit_id = v.visit_id AND w.cost > 100)

SELECT COUNT(*) FROM visits WHERE cost > (SELECT MAX(beds) FROM sites)

SELECT AVG((SELECT COUNT(*) FROM visits v WHERE v.patient_id = p.patient_id)) AS a FROM patients p

--: refused syntax
SELECT COUNT(*) FROM patients WHERE age > (SELECT AVG(age) FROM patients)

--: refused syntax
SELECT COUNT(*) FROM patients WHERE city IN (SELECT city FROM patients WHERE smoker)

--= what no sound system can answer
--: refused syntax
SELECT * FROM patients

--: refused syntax
SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id

--: refused syntax
SELECT patient_id, age FROM patients

--: refused syntax
SELECT age FROM patients ORDER BY age LIMIT 10

--: refused unknown-name
SELECT STRING_AGG(job, ',') FROM patients

--: refused unknown-name
SELECT ARRAY_AGG(age) FROM patients

--: refused syntax
SELECT COUNT(*) FROM patients UNION ALL SELECT age FROM patients

--: refused syntax
DELETE FROM patients

--: refused syntax
SELECT COUNT(*) FROM patients; SELECT COUNT(*) FROM visits

--: refused unknown-name
SELECT COUNT(*) FROM read_csv('patients.csv')

--: refused unknown-name
SELECT getenv('HOME') AS h, COUNT(*) FROM patients

--= other styles
SELECT site, AVG(cost) AS a FROM visits WHERE seen >= '2024-03-01' AND seen < '2024-06-01' GROUP BY site

SELECT COUNT(*) AS "total count" FROM patients AS p WHERE p.age::INT > 30

SELECT city, count(*) as cnt from patients group by city having cnt > 3 order by cnt desc limit 5

SELECT sex, age > 40 AS older, COUNT(*) FROM patients GROUP BY sex, older

SELECT p.city, AVG(t.total) FROM patients p JOIN (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) t ON p.patient_id = t.patient_id GROUP BY p.city

SELECT COUNT(*), AVG(cost), SUM(cost), MIN(cost), MAX(cost), STDDEV(cost), VARIANCE(cost) FROM visits

SELECT DATE_TRUNC('quarter', seen) AS q, site, COUNT(*) FROM visits GROUP BY 1, 2

SELECT COUNT(*) FROM patients WHERE income / 10 > 50 AND (age + 5) * 2 > 60

SELECT CASE WHEN AVG(age) > 50 THEN 1 ELSE 0 END AS f FROM patients

SELECT ROUND(COUNT(*) * 100.0 / (SELECT COUNT(*) FROM patients), 2) || '%' AS pct FROM patients WHERE smoker

SELECT city, AVG(income) AS a, AVG(income) - (SELECT AVG(income) FROM patients) AS diff FROM patients GROUP BY city

SELECT t.city, t.n FROM (SELECT city, COUNT(*) AS n FROM patients GROUP BY city) AS t, (SELECT COUNT(*) AS total FROM patients) AS u WHERE t.n * 3 > u.total

SELECT COUNT(DISTINCT city) FROM patients

SELECT SUM(DISTINCT age) FROM patients

SELECT DISTINCT city FROM patients

SELECT city FROM patients GROUP BY city

SELECT CORR(age, income) FROM patients

SELECT LOWER(city) AS c, COUNT(*) FROM patients GROUP BY LOWER(city)

SELECT COUNT(*) FROM patients WHERE UPPER(city) = 'ROME'

SELECT COUNT(*) FROM patients WHERE city ILIKE 'r%'

SELECT MOD(age, 10) AS d, COUNT(*) FROM patients GROUP BY 1

SELECT age % 10 AS d, COUNT(*) FROM patients GROUP BY 1

SELECT COUNT(*) FROM visits WHERE DATE_DIFF('day', DATE '2024-01-01', seen) < 30

SELECT EXTRACT(DOW FROM seen) AS d, COUNT(*) FROM visits GROUP BY d

SELECT city, sex, COUNT(*) FROM patients GROUP BY (city, sex)

SELECT PERCENTILE_CONT(ARRAY[0.25, 0.5]) WITHIN GROUP (ORDER BY age) FROM patients

SELECT COUNT(*) FROM patients WHERE age IN (1,2,3) AND sex NOT IN ('F')

SELECT MAX(seen) FROM visits

SELECT COUNT(*) total, SUM(CASE WHEN smoker THEN 1 END) smokers, SUM(CASE WHEN smoker THEN 1 END) / COUNT(*) rate FROM patients

SELECT 'Rome' AS city, COUNT(*) FROM patients WHERE city = 'Rome' UNION ALL SELECT 'Oslo' AS city, COUNT(*) FROM patients WHERE city = 'Oslo'

SELECT COUNT(*) FROM patients WHERE NOT EXISTS (SELECT 1 FROM visits WHERE visits.patient_id = patients.patient_id)

SELECT COUNT(*) FROM patients ORDER BY 1

SELECT AVG(age) FILTER (WHERE sex = 'M') - AVG(age) FILTER (WHERE sex = 'F') AS gap FROM patients

SELECT COUNT(*) FROM (SELECT DISTINCT patient_id FROM visits) t

SELECT sex, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS total, COUNT(*)::float / SUM(COUNT(*)) OVER () AS pct FROM patients GROUP BY sex

SELECT STRFTIME(seen, '%Y-%m') AS ym, COUNT(*) FROM visits GROUP BY 1

SELECT ROUND(income, -2) AS bin, COUNT(*) FROM patients GROUP BY bin

SELECT AVG(CAST(smoker AS INT)) FROM patients

SELECT SUM(smoker::INT) FROM patients

SELECT COUNT(*) FROM patients p INNER JOIN visits v USING (patient_id) INNER JOIN sites s USING (site) WHERE s.region = 'inner'

SELECT COUNT(*) FROM visits v JOIN visits w ON v.patient_id = w.patient_id AND v.cost < w.cost

--= results beside public tables
SELECT site, n FROM sites, (SELECT COUNT(*) AS n FROM visits) v

WITH loads AS (SELECT site, COUNT(*) AS n FROM visits GROUP BY site)
SELECT s.region, SUM(l.n) AS visits, SUM(s.beds) AS beds, SUM(l.n) * 1.0 / SUM(s.beds) AS per_bed
FROM loads l JOIN sites s ON s.site = l.site GROUP BY s.region ORDER BY s.region

SELECT s.site, s.beds, COALESCE(l.n, 0) AS n
FROM sites s LEFT JOIN (SELECT site, COUNT(*) AS n FROM visits WHERE site <> 'east' GROUP BY site) l USING (site)
ORDER BY s.site

SELECT b.region, SUM(l.n) AS n, MAX(b.beds) AS beds
FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) l
JOIN (SELECT site, region, SUM(beds) OVER (PARTITION BY region) AS beds FROM sites) b ON b.site = l.site
GROUP BY b.region ORDER BY b.region

WITH loads AS (SELECT site, COUNT(*) AS n FROM visits GROUP BY site), big AS (SELECT site FROM sites WHERE beds > 30)
SELECT site, n FROM loads WHERE site IN (SELECT site FROM big) ORDER BY site

SELECT l.site, l.n, (SELECT s.beds FROM sites s WHERE s.site = l.site) AS beds
FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) l ORDER BY l.site

WITH sites AS (SELECT site, beds * 100 AS beds FROM sites)
SELECT l.site, l.n, s.beds FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) l JOIN main.sites s USING (site)

SELECT l.site, s.beds FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) l
JOIN sites s ON s.site = l.site AND EXISTS (SELECT 1 FROM sites o WHERE o.region = s.region AND o.beds > 60)

WITH g AS (SELECT site, COUNT(*) AS n FROM visits GROUP BY site)
SELECT r.site, s.beds FROM g r JOIN sites s ON s.site = r.site AND s.beds < (SELECT MAX(n) FROM g)

SELECT q.* FROM (SELECT r.*, s.beds FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) r JOIN sites s USING (site)) q

--: refused unknown-name
SELECT l.site, s.beds FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) l JOIN secret.sites s USING (site)

--: refused unknown-name
SELECT l.site, (SELECT MAX(beds) FROM secret.sites) AS most FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) l

--: refused unknown-name
SELECT l.site, s.beds FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) l
JOIN sites s ON s.site = l.site AND EXISTS (SELECT 1 FROM patients p WHERE p.age = s.beds)

--: refused unknown-name
SELECT l.site, s.beds FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) l
JOIN sites s ON s.site = l.site AND s.beds < (SELECT MAX(n) FROM released0)

--: refused syntax
SELECT l.site, p.age FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) l JOIN patients p ON p.age = l.n

--: refused syntax
SELECT l.site, (SELECT MAX(p.age) FROM (SELECT age FROM patients) p) AS oldest
FROM (SELECT site, COUNT(*) AS n FROM visits GROUP BY site) l JOIN patients q ON q.city = l.site

--= parts of texts, and complete units
--: delta
SELECT SPLIT_PART(job, 'r', 1) AS part, COUNT(*) AS n FROM patients GROUP BY 1 ORDER BY 1

SELECT SPLIT_PART(city, 'o', -1) AS part, COUNT(*) AS n FROM patients GROUP BY part ORDER BY part

SELECT COUNT(*) AS n FROM patients WHERE SUBSTRING_INDEX(city, 'i', 1) = 'L'
--~ SELECT COUNT(*) AS n FROM patients WHERE SPLIT_PART(city, 'i', 1) = 'L'

SELECT AVG(TIMESTAMPDIFF(YEAR, born, DATE '2024-06-30')) AS age FROM patients
--~ SELECT AVG(DATE_SUB('year', born, DATE '2024-06-30')) FROM patients

SELECT SUM(TIMESTAMPDIFF(WEEK, seen, DATE '2024-12-31')) AS weeks FROM visits
--~ SELECT SUM(DATE_SUB('week', seen, DATE '2024-12-31')) FROM visits
