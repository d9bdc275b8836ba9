--= docs.snowflake.com tutorials/diff-privacy
--: about
SELECT COUNT(DISTINCT patient_id) as c,
  DP_INTERVAL_LOW(c) as LOW,
  DP_INTERVAL_HIGH(c) as HIGH
  FROM dp_db.dp_schema.dp_tutorial_diabetes_survey
  WHERE income_code = 5;
--~ SELECT COUNT(DISTINCT patient_id), COUNT(DISTINCT patient_id), COUNT(DISTINCT patient_id) FROM dp_tutorial_diabetes_survey WHERE income_code = 5

--= docs.snowflake.com differential-privacy-analyst (code index 68525739257, 40948033949)
SELECT COUNT(*)
  FROM patients
  LEFT JOIN (SELECT zip_code, ANY_VALUE(state) AS residence_state
            FROM geo_lookup
            GROUP BY zip_code)
  USING (zip_code)
  WHERE birth_state = residence_state;

SELECT COUNT(DISTINCT patient_id)
  FROM patients
  WHERE insurance_type = 'Commercial';

SELECT COUNT(bmi)
  FROM (SELECT patient_id, ANY_VALUE(bmi) as bmi, ANY_VALUE(state) as state
      FROM patients AS p
      JOIN geo_lookup AS g
        ON p.zip_code = g.zip_code
      GROUP BY patient_id)
  WHERE state='CA';

SELECT COUNT(num_visits)
  FROM (SELECT COUNT((visit_reason<>'Regular checkup')::INT) AS num_visits
        FROM doctor_visits
        WHERE visit_reason IS NOT NULL
        GROUP BY patient_id)
  WHERE num_visits > 0 AND num_visits < 20;

SELECT COUNT(*)
FROM (SELECT patient_id, COUNT(visit_reason) FROM doctor_visits GROUP BY patient_id) AS g1
    INNER JOIN (SELECT * FROM patients) AS g2
    ON g1.patient_id=g2.patient_id;

--: about
SELECT insurance_type, COUNT(x) AS c, DP_INTERVAL_LOW(c) FROM (SELECT insurance_type, 1 + bmi AS x FROM patients) GROUP BY insurance_type
--~ SELECT insurance_type, COUNT(bmi), COUNT(bmi) FROM patients GROUP BY 1

--= Snowflake horizon demo, privacy and aggregation (code index 53751041262)
SELECT
    DEPARTMENT,
    COUNT(DISTINCT EMPLOYEE_ID) AS headcount,
    ROUND(AVG(SALARY), 2) AS avg_salary,
    ROUND(AVG(BONUS), 2) AS avg_bonus
FROM HRZN_DB.HRZN_SCH.EMPLOYEES
GROUP BY DEPARTMENT
ORDER BY avg_salary DESC;
--~ SELECT
--~ DEPARTMENT,
--~ COUNT(DISTINCT EMPLOYEE_ID) AS headcount,
--~ ROUND(AVG(SALARY), 2) AS avg_salary,
--~ ROUND(AVG(BONUS), 2) AS avg_bonus
--~ FROM EMPLOYEES
--~ GROUP BY DEPARTMENT
--~ ORDER BY avg_salary DESC

--: about
-- DATA USER: how many employees earn $100K–$150K per department?
SELECT
    department,
    COUNT(salary) AS emp_count,
    DP_INTERVAL_LOW(emp_count) AS count_low,
    DP_INTERVAL_HIGH(emp_count) AS count_high
FROM (
    SELECT EMPLOYEE_ID, ANY_VALUE(DEPARTMENT) AS department, ANY_VALUE(SALARY) AS salary
    FROM HRZN_DB.HRZN_SCH.EMPLOYEES
    GROUP BY EMPLOYEE_ID
)
WHERE salary > 100000 AND salary < 150000
GROUP BY department;
--~ SELECT department, COUNT(*), COUNT(*), COUNT(*) FROM employees WHERE salary > 100000 AND salary < 150000 GROUP BY 1

--: refused syntax
SELECT * FROM HRZN_DB.HRZN_SCH.EMPLOYEES LIMIT 5;
