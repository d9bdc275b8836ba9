SELECT COUNT(*) FROM patients;

SELECT sex, AVG(bmi) AS avg_bmi, COUNT(bmi) AS measured
FROM patients
GROUP BY sex
ORDER BY sex;

select count(*) as n
from admissions
where emergency = true and triage <= 2;

SELECT d.dept_name, SUM(a.charge) AS total_charge, ROUND(AVG(a.charge), 2) AS avg_charge
FROM admissions AS a
INNER JOIN departments AS d ON d.dept_code = a.dept_code
GROUP BY d.dept_name
ORDER BY d.dept_name;

SELECT 100.0 * SUM(CASE WHEN smoker THEN 1 ELSE 0 END) / COUNT(*) AS pct_smokers
FROM patients
WHERE smoker IS NOT NULL;

SELECT DATE_TRUNC('month', admitted_at) AS month, COUNT(*) AS admissions
FROM admissions
WHERE admitted_at >= '2024-01-01' AND admitted_at < '2025-01-01'
GROUP BY 1
ORDER BY 1;

SELECT dept_code,
       AVG(EXTRACT(EPOCH FROM (discharged_at - admitted_at)) / 86400.0) AS avg_los_days
FROM admissions
WHERE discharged_at IS NOT NULL
GROUP BY dept_code
ORDER BY dept_code;

SELECT dept_code, AVG(CAST(DATEDIFF(day, admitted_at, discharged_at) AS FLOAT)) AS alos, COUNT(*) AS discharges
FROM admissions
WHERE discharged_at IS NOT NULL AND dept_code <> 'ER'
GROUP BY dept_code;
--~ SELECT dept_code, AVG(CAST(DATEDIFF('day', admitted_at, discharged_at) AS DOUBLE)) AS alos, COUNT(*) AS discharges
--~ FROM admissions
--~ WHERE discharged_at IS NOT NULL AND dept_code <> 'ER'
--~ GROUP BY dept_code

SELECT
  CASE
    WHEN date_diff('year', birth_date, DATE '2024-12-31') < 18 THEN '0-17'
    WHEN date_diff('year', birth_date, DATE '2024-12-31') < 40 THEN '18-39'
    WHEN date_diff('year', birth_date, DATE '2024-12-31') < 65 THEN '40-64'
    ELSE '65+'
  END AS age_band,
  COUNT(*) AS patients
FROM patients
GROUP BY age_band
ORDER BY age_band;

SELECT COUNT(*) AS frequent_patients
FROM (
  SELECT patient_id
  FROM admissions
  GROUP BY patient_id
  HAVING COUNT(*) >= 3
) t;

WITH per_patient AS (
  SELECT p.patient_id, COUNT(a.patient_id) AS n_adm
  FROM patients p
  LEFT JOIN admissions a ON a.patient_id = p.patient_id
  GROUP BY p.patient_id
)
SELECT AVG(n_adm) AS mean_admissions, MAX(n_adm) AS most FROM per_patient;

SELECT COUNT(DISTINCT p.patient_id)
FROM patients p
JOIN labs l ON p.patient_id = l.patient_id
WHERE p.smoker AND l.test = 'LDL' AND l.value > 140;

--: about
SELECT
  PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY value) AS q1,
  PERCENTILE_CONT(0.5)  WITHIN GROUP (ORDER BY value) AS q2,
  PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY value) AS q3
FROM labs
WHERE test = 'HBA1C';

--: refused syntax, missing: LAG over the rows of each person
WITH ordered AS (
  SELECT patient_id,
         admitted_at,
         LAG(discharged_at) OVER (PARTITION BY patient_id ORDER BY admitted_at) AS prev_discharge
  FROM admissions
)
SELECT
  COUNT(*) AS admissions,
  SUM(CASE WHEN admitted_at <= prev_discharge + INTERVAL 30 DAY THEN 1 ELSE 0 END) AS readmissions_30d
FROM ordered;

SELECT date_trunc('quarter', first_adm) AS cohort, COUNT(*) AS patients
FROM (SELECT patient_id, MIN(admitted_at) AS first_adm FROM admissions GROUP BY patient_id) f
WHERE first_adm < TIMESTAMP '2024-04-01'
GROUP BY cohort
ORDER BY cohort;

SELECT diagnosis, COUNT(DISTINCT patient_id) AS patients
FROM admissions
GROUP BY diagnosis
ORDER BY patients DESC
LIMIT 5;

SELECT dept_code, emergency, COUNT(*) AS n
FROM admissions
GROUP BY ROLLUP (dept_code, emergency)
ORDER BY dept_code NULLS LAST, emergency NULLS LAST;

SELECT CORR(triage, charge) AS r FROM admissions WHERE emergency;

SELECT dept_code,
       SUM(charge) AS revenue,
       SUM(charge) / SUM(SUM(charge)) OVER () AS share
FROM admissions
GROUP BY dept_code;

SELECT WITH DIFFERENTIAL_PRIVACY
  OPTIONS(epsilon=10, delta=1e-6, max_groups_contributed=6, privacy_unit_column=patient_id)
  dept_code,
  COUNT(*) AS visits,
  SUM(charge, contribution_bounds_per_group => (0, 120000)) AS charges
FROM admissions
GROUP BY dept_code;
--~ SELECT dept_code, COUNT(*) AS visits, SUM(charge) AS charges
--~ FROM admissions
--~ GROUP BY dept_code

SELECT insurance, COUNT(*) AS never_admitted
FROM patients p
WHERE NOT EXISTS (SELECT 1 FROM admissions a WHERE a.patient_id = p.patient_id)
GROUP BY insurance;

--: refused syntax
SELECT * FROM patients LIMIT 10;

SELECT IF(EXTRACT(dow FROM admitted_at) IN (0, 6), 'weekend', 'weekday') AS day_type,
       COUNT(*) AS n,
       AVG(triage) AS mean_triage
FROM admissions
GROUP BY 1;

SELECT p.insurance, STDDEV(a.charge) AS sd, VAR_SAMP(a.charge) AS variance
FROM patients p JOIN admissions a USING (patient_id)
GROUP BY p.insurance
ORDER BY 1;

--: refused syntax
SELECT full_name, birth_date
FROM patients
ORDER BY birth_date
LIMIT 5;

SELECT COUNT(*) AS tested_both
FROM patients
WHERE patient_id IN (SELECT patient_id FROM labs WHERE test = 'HBA1C')
  AND patient_id IN (SELECT patient_id FROM labs WHERE test = 'GLUC');

SELECT test,
       COUNT(*) FILTER (WHERE flag = 'H') AS high,
       COUNT(*) AS total,
       ROUND(high * 100.0 / total, 1) AS pct_high
FROM labs
GROUP BY test
ORDER BY pct_high DESC;

WITH loads AS (
  SELECT dept_code, COUNT(*) AS admissions
  FROM admissions
  WHERE YEAR(admitted_at) = 2023
  GROUP BY dept_code
)
SELECT d.building, SUM(l.admissions) AS admissions, SUM(d.beds) AS beds,
       SUM(l.admissions) * 1.0 / SUM(d.beds) AS admissions_per_bed
FROM loads l
JOIN departments d ON d.dept_code = l.dept_code
GROUP BY d.building
ORDER BY admissions_per_bed DESC;

SELECT CASE WHEN bmi IS NULL THEN 'unknown'
            WHEN bmi < 18.5 THEN 'underweight'
            WHEN bmi BETWEEN 18.5 AND 24.9 THEN 'normal'
            WHEN bmi < 30 THEN 'overweight'
            ELSE 'obese' END AS class,
       count(*) as n,
       round(100.0 * count(*) / sum(count(*)) over (), 1) as pct
FROM patients
GROUP BY 1
ORDER BY n DESC;

SELECT LEFT(zip3, 2) AS area, COUNT(*) AS residents
FROM patients
GROUP BY LEFT(zip3, 2)
HAVING COUNT(*) > 100
ORDER BY residents DESC;
