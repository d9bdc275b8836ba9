SELECT p.married, AVG(age) AS aa FROM PUMS.PUMS AS p GROUP BY married;

SELECT TOP 5 educ, AVG(income) FROM PUMS.PUMS GROUP BY educ;
--~ SELECT educ, AVG(income) FROM PUMS.PUMS GROUP BY educ ORDER BY educ LIMIT 5

SELECT 3 AS three, p.married, educ, AVG(income) FROM PUMS.PUMS AS p GROUP BY educ, married;

SELECT (SUM(age)) AS age FROM PUMS.PUMS;

--: refused unknown-name
SELECT PI(), RAND(), POWER(AVG(age), 2) FROM PUMS.PUMS;

SELECT PI(), POWER(AVG(age), 2) FROM PUMS.PUMS;

SELECT educ, COUNT(*) FROM pums GROUP BY educ HAVING (COUNT(*) / CAST(educ AS INTEGER)) > 5

SELECT sex as educ, educ as sex, COUNT(*) AS n FROM pums GROUP BY sex, educ HAVING educ > 2
--~ SELECT sex as a, educ as b, COUNT(*) AS n FROM pums GROUP BY sex, educ HAVING educ > 2

SELECT educ as sex, sex as educ, COUNT(*) AS n FROM pums GROUP BY sex, educ HAVING educ > 2
--~ SELECT educ as a, sex as b, COUNT(*) AS n FROM pums GROUP BY sex, educ HAVING educ > 2

SELECT sex AS gender, educ FROM pums GROUP BY sex, educ ORDER by sex DESC, educ

SELECT sex AS gender, educ AS sex FROM pums GROUP BY sex, educ ORDER by gender DESC, 2
--~ SELECT sex AS gender, educ AS e FROM pums GROUP BY sex, educ ORDER by gender DESC, 2

SELECT sex AS gender, educ AS sex FROM pums GROUP BY sex, educ ORDER by (CAST(gender AS INTEGER) * -1) DESC, educ ASC
--~ SELECT sex AS gender, educ AS e FROM pums GROUP BY sex, educ ORDER by gender, e

SELECT sex AS gender, educ AS sex FROM pums GROUP BY sex, educ ORDER by sex DESC, gender
--~ SELECT sex AS gender, educ AS e FROM pums GROUP BY sex, educ ORDER by e DESC, gender

SELECT educ FROM pums GROUP BY educ ORDER by CAST(educ AS INTEGER) DESC

SELECT educ FROM pums GROUP BY educ ORDER by CAST(educ AS VARCHAR) DESC

SELECT educ, COUNT(DISTINCT pid) AS n FROM pums GROUP BY educ ORDER by COUNT(pid) DESC, educ

SELECT CHOOSE(educ % 3 + 1, 12.0, 13.99, 229.9) AS XX, COUNT(*) FROM pums GROUP BY XX;
--~ SELECT CASE educ % 3 WHEN 0 THEN 12.0 WHEN 1 THEN 13.99 ELSE 229.9 END AS XX, COUNT(*) FROM pums GROUP BY XX

SELECT DEGREES(PI()/4) AS DG, COUNT(*) FROM pums;

SELECT LN(COUNT(*)), CEIL(COUNT(*)), LOG2(COUNT(*)) FROM pums;

SELECT STDEV(age) FROM pums;
--~ SELECT STDDEV(age) FROM pums

SELECT CASE WHEN age < 30 THEN 1 WHEN age >= 30 AND age < 50 THEN 2 ELSE 4 END AS [Age Bucket], COUNT(*) FROM PUMS.PUMS GROUP BY [Age Bucket];
--~ SELECT CASE WHEN age < 30 THEN 1 WHEN age >= 30 AND age < 50 THEN 2 ELSE 4 END AS b, COUNT(*) FROM PUMS.PUMS GROUP BY b

SELECT IIF(income > 50000, 'Big', 'Small') AS Size, COUNT(*) FROM pums GROUP BY IIF(income > 50000, 'Big', 'Small');
--~ SELECT CASE WHEN income > 50000 THEN 'Big' ELSE 'Small' END AS Size, COUNT(*) FROM pums GROUP BY 1
