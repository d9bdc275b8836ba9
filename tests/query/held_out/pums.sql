SELECT COUNT(*) AS n FROM PUMS.PUMS WHERE age > 92 GROUP BY educ

SELECT married, AVG(income) AS income, COUNT(*) AS n FROM PUMS.PUMS GROUP BY married

SELECT COUNT(DISTINCT pid) FROM PUMS.PUMS WHERE latino

SELECT age, sex, COUNT(*) AS n FROM PUMS.PUMS GROUP BY age, sex HAVING COUNT(*) > 3 ORDER BY n DESC, age, sex

SELECT TOP 5 educ, COUNT(*) AS c FROM PUMS.PUMS GROUP BY educ ORDER BY c DESC, educ
--~ SELECT educ, COUNT(*) AS c FROM PUMS.PUMS GROUP BY educ ORDER BY c DESC, educ LIMIT 5

SELECT AVG(age) AS mean_age, STDDEV(age) sd, VAR(income) v FROM PUMS.PUMS
--~ SELECT AVG(age), STDDEV(age), VARIANCE(income) FROM PUMS.PUMS

SELECT sex, SUM(income) / COUNT(*) AS mean FROM PUMS.PUMS GROUP BY sex

SELECT (age / 10) * 10 AS decade, COUNT(*) FROM PUMS.PUMS GROUP BY decade

SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM PUMS.PUMS GROUP BY decade ORDER BY decade

SELECT COUNT(*) FROM PUMS.PUMS WHERE income > 100000 OR (educ >= 13 AND NOT married = 1)

--: delta
SELECT state, COUNT(*) FROM PUMS.PUMS GROUP BY state

SELECT race, sex, AVG(income) FROM PUMS.PUMS WHERE age BETWEEN 25 AND 64 GROUP BY race, sex

SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS grp, AVG(income) AS inc FROM PUMS.PUMS GROUP BY 1

--: about
SELECT MAX(age), MIN(age) FROM PUMS.PUMS

--: about
SELECT sex, MEDIAN(income) FROM PUMS.PUMS GROUP BY sex

SELECT married, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM PUMS.PUMS) AS pct FROM PUMS.PUMS GROUP BY married

SELECT educ, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM PUMS.PUMS GROUP BY educ ORDER BY r, educ

SELECT sex, married, COUNT(*) FROM PUMS.PUMS GROUP BY CUBE (sex, married)

SELECT CORR(age, income), REGR_SLOPE(income, educ) FROM PUMS.PUMS

SELECT SQRT(AVG(age*age) - AVG(age)*AVG(age)) AS sd FROM PUMS.PUMS

SELECT age, COUNT(*) AS n FROM PUMS.PUMS WHERE age IN (20, 30, 40) GROUP BY age

SELECT COUNT(*) AS n, COUNT(income) AS inc, SUM(CASE WHEN income = 0 THEN 1 ELSE 0 END) AS zero FROM PUMS.PUMS

SELECT sex, COUNT(*) n FROM (SELECT sex, age FROM PUMS.PUMS WHERE age > 40) AS t GROUP BY sex

SELECT AVG(LOG(income + 1)) FROM PUMS.PUMS

SELECT NTILE(4) OVER (ORDER BY educ) AS q, educ, COUNT(*) FROM PUMS.PUMS GROUP BY educ ORDER BY educ

SELECT married, AVG(income) AS avg_income, COUNT(*) AS respondents FROM PUMS.PUMS WHERE age >= 25 AND educ > 12 GROUP BY married

SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'senior' END AS bracket, STDDEV(income) AS sd FROM PUMS GROUP BY 1

SELECT COUNT(*) AS n, SUM(income) / COUNT(*) AS mean_income FROM PUMS WHERE NOT (race = 1 OR race = 2)

SELECT educ, sex, COUNT(pid) AS c FROM PUMS GROUP BY educ, sex HAVING COUNT(pid) > 5 ORDER BY c DESC, educ, sex

SELECT ROUND(AVG(CAST(married AS FLOAT)) * 100, 1) AS pct_married FROM PUMS

--: delta
SELECT state, AVG(age) FROM PUMS GROUP BY state ORDER BY AVG(age) DESC

SELECT FLOOR(income / 10000) * 10000 AS income_bin, COUNT(*) AS n FROM PUMS WHERE income < 60000 GROUP BY income_bin ORDER BY income_bin

SELECT sex, CORR(age, income) AS r, COVAR_POP(educ, income) AS cov FROM PUMS GROUP BY sex

SELECT AVG(income) FILTER (WHERE latino) - AVG(income) FILTER (WHERE NOT latino) AS gap FROM PUMS

SELECT age // 10 AS decade, race, SUM(CASE WHEN married = 1 AND sex = 0 THEN 1 ELSE 0 END) AS married_women FROM PUMS GROUP BY ALL

SELECT COUNT(*) AS rich FROM PUMS WHERE LN(income + 1) > 10.5 AND educ IN (13, 14, 15, 16)

SELECT married, COUNT(*) AS n, AVG(income) AS avg_income FROM PUMS.PUMS WHERE age BETWEEN 30 AND 50 GROUP BY married ORDER BY married

SELECT sex, race, SUM(income) AS total FROM PUMS GROUP BY sex, race ORDER BY total DESC LIMIT 3

SELECT CASE WHEN educ >= 13 THEN 'degree' ELSE 'none' END AS ed, STDDEV(income) AS sd FROM PUMS GROUP BY CASE WHEN educ >= 13 THEN 'degree' ELSE 'none' END

SELECT COUNT(*) FROM PUMS WHERE race IN UNNEST([1, 2, 3]) AND married = 1
--~ SELECT COUNT(*) FROM PUMS WHERE race IN (1,2,3) AND married = 1

SELECT sex, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS pct FROM PUMS GROUP BY sex

SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE income > 50000) AS rich, AVG(age) FILTER (WHERE income > 50000) AS rich_age FROM PUMS

SELECT COUNT(*) FROM PUMS WHERE (sex, married) IN ((0, 1), (1, 0))

SELECT race, COUNT(*) AS n FROM PUMS WHERE latino AND NOT (married = 1) GROUP BY race HAVING COUNT(*) >= 5 ORDER BY n DESC, race
