--= Qrlew/pyqrlew tests/queries/dp_sarus_sql_queries.sql
SELECT SUM(education_num * age + 4 + LOG(age + 2)) AS my_sum FROM census WHERE education_num > 0 AND education_num < 15 AND age > 18 AND age < 90;

SELECT sex, SUM(capital_loss / 10000) AS my_sum, SUM(education_num) AS sum_education_num FROM census WHERE education_num > 0 AND education_num < 15 GROUP BY sex HAVING NOT ( sex = 'Female' ) ORDER BY my_sum DESC LIMIT 10;

SELECT SUM(education_num) AS my_sum FROM census  WHERE age >20 AND age < 90 AND education_num > 0 AND education_num < 15 GROUP BY LOG(CASE WHEN age < 50 THEN 50 ELSE 1 END);

SELECT CASE WHEN age > 80 THEN 1 ELSE 0 END, SUM(age) AS my_sum FROM census WHERE age >20 AND age < 90 GROUP BY marital_status, CASE WHEN age > 80 THEN 1 ELSE 0 END ORDER BY my_sum;

SELECT ( 2 * (SUM(CASE WHEN age > 90 THEN 1 ELSE 0 END))) AS s1 FROM census WHERE age >20 AND age < 90;

SELECT table1.sex AS c1, SUM(table1.age) AS c2, SUM(age) AS c3 FROM census AS table1 WHERE age > 20 ANd age < 90 GROUP BY table1.sex;

SELECT age, 3 * COUNT(*) AS c1, CASE WHEN COUNT(*) > 10 THEN 'large' ELSE 'small' END AS c2, COUNT(*) AS c3 FROM census GROUP BY age;

SELECT age AS "my age", 3 * COS(COUNT(*)) AS my_ln_count, AVG(education_num) AS "my avg" FROM census GROUP BY "my age" ORDER BY "my age", "my avg";

--: nobody, missing: groups that nobody is in
SELECT AVG(grouped_sum_age) AS res FROM (SELECT SUM(table1.capital_loss) AS grouped_sum_age FROM census AS table1 WHERE capital_loss > 2231 AND capital_loss < 4356 GROUP BY age) AS subquery;
--~ SELECT SUM(capital_loss) / 74 FROM census WHERE capital_loss > 2231 AND capital_loss < 4356

SELECT SUM(log_capital_loss) AS res1, SUM(sqrt_capital_loss) AS res2, SUM(inv_capital_loss) AS res3 FROM (SELECT LOG(capital_loss + 1.) AS log_capital_loss, SQRT(capital_loss) AS sqrt_capital_loss, 1/(capital_loss+1) AS inv_capital_loss FROM census WHERE capital_loss < 40000 AND capital_loss > 1) AS subquery;

WITH my_table1 AS ( SELECT age, marital_status, COUNT(*) AS count_all FROM census GROUP BY age, marital_status ORDER BY age, marital_status ), my_table2 AS ( SELECT 2 * age AS two_age, marital_status, count_all FROM my_table1 ) SELECT two_age, COUNT(*)  AS res FROM my_table2 GROUP BY two_age ORDER BY two_age LIMIT 15;

SELECT sex, COUNT(DISTINCT age) AS my_count, SUM(DISTINCT age) AS my_age, VARIANCE(DISTINCT age) AS my_var, STDDEV (DISTINCT age) AS my_stddev FROM census WHERE age > 20 AND age < 90 GROUP BY sex;

SELECT DISTINCT SUM(age) AS res FROM census WHERE age > 20 AND age < 90;

SELECT SUM(DISTINCT age) AS my_sum FROM census WHERE sex = 'Female' AND age > 20 AND age < 90 HAVING COUNT(*) > 5;

SELECT COUNT(*) AS res, SUM(DISTINCT age) AS my_sum FROM census WHERE age > 20 AND age < 90 GROUP BY CEIL(capital_loss / 100);

SELECT CASE WHEN SUM(age) > 90 THEN 90 WHEN SUM(age) < 10 THEN 10 ELSE 0 END AS s1 FROM census WHERE age > 20 AND age < 90;

SELECT SUM(s1) AS res1, SUM(s2)  AS res2 FROM (SELECT SUM(DISTINCT capital_loss) AS s1, SUM(DISTINCT age) AS s2 FROM census WHERE age > 20 AND age < 90 AND capital_loss > 2231 AND capital_loss < 4356 GROUP BY sex HAVING COUNT(*) > 5) AS sq;

--: refused syntax
WITH my_table1 AS (SELECT * FROM census), my_table2 AS (SELECT * FROM census) SELECT COUNT(*) AS res, SUM(DISTINCT my_table1.age) AS res1, SUM(DISTINCT my_table2.age) AS res2 FROM my_table1 JOIN my_table2 ON my_table1.fnlwgt = my_table2.fnlwgt WHERE my_table1.age > 20 AND my_table1.age < 90 AND my_table2.age > 20 AND my_table2.age < 90;

--= Qrlew/qrlew tests/integration.rs (names of census)
SELECT 1+SUM(age), count(education_num), sex FROM census GROUP BY sex
