SELECT SUM(education_num * age + 4 + LOG(age + 2)) AS my_sum FROM census;

SELECT age, sex, SUM(education_num) AS sum_education_num FROM census GROUP BY age, sex ORDER BY age DESC, sex;

SELECT COUNT(*) AS count_all, SUM(education_num) AS sum_education_num, AVG(education_num) AS avg_education_num, VARIANCE(education_num) AS var_education_num, STDDEV(education_num) AS stddev_education_num FROM census WHERE education_num > 0 AND education_num < 15;

SELECT (VARIANCE(education_num)) AS my_var, marital_status FROM census GROUP BY marital_status;

SELECT sex, SUM(capital_loss / 10000) AS my_sum, SUM(education_num) AS sum_education_num FROM census GROUP BY sex HAVING NOT ( sex = 'Female' ) ORDER BY my_sum DESC LIMIT 10;

SELECT marital_status, SUM(capital_loss / 100000) AS my_sum, SUM(education_num) AS sum_education_num FROM census GROUP BY marital_status HAVING marital_status = 'Divorced';

SELECT POWER(AVG(age), 2) AS my_res FROM census;

SELECT SUM(education_num) AS my_sum FROM census GROUP BY LOG(CASE WHEN age < 50 THEN 50 ELSE 1 END);

SELECT age AS age1, SUM(education_num) AS my_sum FROM census GROUP BY age1 ORDER BY age1;

SELECT SUM(age) AS my_sum FROM census GROUP BY marital_status, CASE WHEN age > 60 THEN 1 ELSE 0 END ORDER BY my_sum;

SELECT ( 2 * (SUM(CASE WHEN age > 80 THEN 1 ELSE 0 END))) AS s1 FROM census;

SELECT capital_loss, COUNT(1) AS my_count FROM census GROUP BY capital_loss;

SELECT age, COUNT(*) AS my_count FROM census WHERE age NOT BETWEEN 18 AND 30 GROUP BY age;

SELECT native_country, COUNT(*) AS my_count FROM census WHERE native_country NOT IN ('Holand-Netherlands', 'Cuba', 'Italy', 'England') GROUP BY native_country;

SELECT CAST(age AS VARCHAR) AS my_age, COUNT(*) AS my_count FROM census GROUP BY age;

SELECT LOWER(marital_status)AS m, COUNT(*) AS my_count FROM census GROUP BY marital_status;

SELECT CONCAT(age, marital_status) AS m , COUNT(*) AS my_count FROM census GROUP BY age, marital_status;

SELECT COALESCE(age, 1) AS new_age, COUNT(*) AS my_count FROM census GROUP BY COALESCE(age, 1) ORDER BY new_age;

SELECT TRIM(education) AS new_capital_loss, COUNT(*) AS my_count FROM census GROUP BY TRIM(education);

SELECT SUBSTRING(education FROM 1 FOR 4) AS m, COUNT(*) AS my_count FROM census GROUP BY education;

SELECT POSITION('m' in education) AS m , COUNT(*) AS my_count FROM census GROUP BY education;

SELECT CHAR_LENGTH(education) AS m, COUNT(*) AS my_count FROM census GROUP BY education;

SELECT table1.sex AS c1, SUM(table1.age) AS c2, SUM(age) AS c3 FROM census AS table1 GROUP BY table1.sex;

SELECT COUNT("table_alias"."age") AS "count_alias"  FROM census AS "table_alias";

SELECT age AS "my age", 3 * COS(COUNT(*)) AS my_ln_count, AVG(education_num) AS "my avg" FROM census GROUP BY age ORDER BY age, "my avg";

SELECT age, 3 * COUNT(*) AS c1, CASE WHEN COUNT(*) > 20 THEN 'large' ELSE 'small' END AS c2, COUNT(*) AS c3 FROM census GROUP BY age;

SELECT age, CASE WHEN age IN (20, 30, 40, 50) THEN 'decade' ELSE '-' END AS case_age, COUNT(*) AS c1 FROM census GROUP BY age;

SELECT age, CASE WHEN age IS Null THEN 'Null' ELSE 'NotNull' END AS case_age, COUNT(*) AS c1 FROM census GROUP BY age;

SELECT age, CASE WHEN COUNT(*) BETWEEN 0 AND 20 THEN 0 ELSE 1 END AS case_age, COUNT(*) AS c1 FROM census GROUP BY age;

SELECT CASE WHEN SUM(age) > 90 THEN 90 ELSE SUM(age) END AS s1 FROM census;

SELECT age, COUNT(*) AS count_all FROM census GROUP BY age LIMIT 20 OFFSET 1
--~ SELECT age, COUNT(*) AS count_all FROM census GROUP BY age ORDER BY age LIMIT 20 OFFSET 1

--: all keys
SELECT SUM(capital_loss) AS s1 FROM census GROUP BY capital_loss;
--~ SELECT COALESCE(SUM(capital_loss), 0) FROM RANGE(4357) AS all_keys(k) LEFT JOIN census ON capital_loss = k GROUP BY k

SELECT SUM(-100 * age) AS s1 FROM census WHERE age = 40;

SELECT AVG(grouped_sum_age) AS res FROM (SELECT SUM(table1.capital_loss) AS grouped_sum_age FROM census AS table1 GROUP BY age) AS subquery;

SELECT SUM(log_capital_loss) AS res1, SUM(sqrt_capital_loss) AS res2, SUM(inv_capital_loss) AS res3 FROM (SELECT LOG(capital_loss + 1.) AS log_capital_loss, SQRT(capital_loss) AS sqrt_capital_loss, 1/(capital_loss+1) AS inv_capital_loss FROM census) AS subquery;

WITH my_table1 AS ( SELECT age, marital_status, COUNT(*) AS count_all FROM census GROUP BY age, marital_status ORDER BY age, marital_status ), my_table2 AS ( SELECT 2 * age AS two_age, marital_status, count_all FROM my_table1 ) SELECT two_age, COUNT(*)  AS res FROM my_table2 GROUP BY two_age LIMIT 15;
--~ SELECT 2 * age AS two_age, COUNT(DISTINCT marital_status) FROM census GROUP BY age ORDER BY age LIMIT 15

SELECT sex, COUNT(DISTINCT age) AS my_count, SUM(DISTINCT age) AS my_age, VARIANCE(DISTINCT age) AS my_var, STDDEV (DISTINCT age) AS my_stddev FROM census GROUP BY sex;

SELECT SUM(s1) AS res1, SUM(s2)  AS res2 FROM (SELECT SUM(DISTINCT capital_loss) AS s1, SUM(DISTINCT age) AS s2 FROM census GROUP BY sex HAVING COUNT(*) > 5) AS sq;

SELECT DISTINCT SUM(age) AS res FROM census;

SELECT COUNT(DISTINCT age) AS res, SUM(DISTINCT age) AS res2, AVG(DISTINCT age) AS res3, VARIANCE(DISTINCT age) AS res4, STDDEV(DISTINCT age) AS res5 FROM census;

SELECT SUM(DISTINCT age) AS my_sum FROM census WHERE sex = 'Female' HAVING COUNT(*) > 5;

SELECT COUNT(*) AS res, SUM(DISTINCT age) AS my_sum FROM census GROUP BY CEIL(capital_loss / 100);

--: nobody, missing: groups that nobody is in
SELECT capital_loss, COUNT(*) AS res, SUM(DISTINCT age) AS my_sum FROM census GROUP BY capital_loss ORDER BY capital_loss, my_sum LIMIT 5;
--~ SELECT k, COUNT(pid), COALESCE(SUM(DISTINCT age), 0) FROM RANGE(4357) AS all_keys(k) LEFT JOIN census ON capital_loss = k GROUP BY k ORDER BY k LIMIT 5

--: refused syntax
WITH my_table1 AS (SELECT * FROM census), my_table2 AS (SELECT * FROM census) SELECT COUNT(*) AS res, SUM(DISTINCT my_table1.age) AS res1, SUM(DISTINCT my_table2.age) AS res2 FROM my_table1 JOIN my_table2 ON my_table1.fnlwgt = my_table2.fnlwgt;
