SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=.01, max_groups_contributed=3, privacy_unit_column=id) item, COUNT(*) AS times_requested FROM professors GROUP BY item
--~ SELECT item, COUNT(*) FROM professors GROUP BY item

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=.01, privacy_unit_column=id) item, AVG(quantity) AS average_quantity FROM mydataset.professors GROUP BY item
--~ SELECT item, AVG(quantity) FROM professors GROUP BY item

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=.01, privacy_unit_column=id) SUM(quantity) AS q, COUNT(DISTINCT id) AS people FROM professors
--~ SELECT SUM(quantity), COUNT(DISTINCT id) FROM professors

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=.01, privacy_unit_column=id) AVG(test_score, contribution_bounds_per_group => (0,100)) AS s FROM students
--~ SELECT AVG(test_score) FROM students

--: about
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=.01, privacy_unit_column=id) PERCENTILE_CONT(test_score, 0.5, contribution_bounds_per_row => (0,100)) AS p FROM students
--~ SELECT QUANTILE_CONT(test_score, 0.5) FROM students

SELECT WITH ANONYMIZATION OPTIONS(epsilon=1000, delta=.01, kappa=3) item, ANON_SUM(quantity CLAMPED BETWEEN 0 AND 300) AS q FROM professors GROUP BY item
--~ SELECT item, SUM(quantity) FROM professors GROUP BY item

SELECT WITH ANONYMIZATION OPTIONS(epsilon=1000, delta=.01) ANON_COUNT(*) AS n, ANON_AVG(test_score) AS a FROM students
--~ SELECT COUNT(*), AVG(test_score) FROM students

SELECT item, SUM(quantity) AS total FROM `mydataset.professors` GROUP BY item ORDER BY total DESC
--~ SELECT item, SUM(quantity) AS total FROM professors GROUP BY item ORDER BY total DESC

--: about
SELECT APPROX_QUANTILES(test_score, 2)[OFFSET(1)] AS median FROM students
--~ SELECT QUANTILE_CONT(test_score, 0.5) FROM students

SELECT year, COUNTIF(test_score >= 50) AS passed FROM students GROUP BY year
--~ SELECT year, COUNT_IF(test_score >= 50) FROM students GROUP BY year

SELECT year, SAFE_DIVIDE(SUM(test_score), COUNT(*)) AS mean FROM students GROUP BY year
--~ SELECT year, SUM(test_score)/COUNT(*) FROM students GROUP BY year

SELECT item, AVG(quantity) FROM professors GROUP BY item QUALIFY ROW_NUMBER() OVER (ORDER BY AVG(quantity) DESC) = 1

SELECT year, ROUND(AVG(test_score), 1) AS mean, ROUND(STDDEV_POP(test_score), 1) AS sd FROM students GROUP BY year ORDER BY year

SELECT IF(test_score >= 50, 'pass', 'fail') AS result, COUNT(*) AS n FROM students GROUP BY result
--~ SELECT CASE WHEN test_score >= 50 THEN 'pass' ELSE 'fail' END, COUNT(*) FROM students GROUP BY 1

SELECT s.year, SUM(p.quantity) AS q FROM students s JOIN professors p ON s.id = p.id GROUP BY s.year

--: refused unknown-name, missing: LOGICAL_OR
SELECT LOGICAL_OR(quantity > 50) FROM professors

--: refused unknown-name, missing: RANGE_BUCKET
SELECT RANGE_BUCKET(test_score, [0, 50, 80]) AS b, COUNT(*) FROM students GROUP BY b

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1000, delta = .01, max_groups_contributed = 2, privacy_unit_column = id) item, COUNT(*) AS orders FROM professors GROUP BY item
--~ SELECT item, COUNT(*) AS orders FROM professors GROUP BY item

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1000, delta = 1e-5, privacy_unit_column = id) year, AVG(test_score, contribution_bounds_per_group => (0, 100)) AS score FROM students GROUP BY year
--~ SELECT year, AVG(test_score) AS score FROM students GROUP BY year

SELECT `year`, APPROX_COUNT_DISTINCT(test_score) AS scores FROM `mydataset.students` GROUP BY `year`
--~ SELECT year, COUNT(DISTINCT test_score) AS scores FROM students GROUP BY year

SELECT item, SAFE_DIVIDE(SUM(quantity), COUNT(DISTINCT id)) AS per_professor FROM mydataset.professors GROUP BY item
--~ SELECT item, SUM(quantity) / COUNT(DISTINCT id) AS per_professor FROM professors GROUP BY item

SELECT COUNTIF(test_score >= 60) / COUNT(*) AS pass_rate FROM students
--~ SELECT COUNT(*) FILTER (WHERE test_score >= 60) / COUNT(*) AS pass_rate FROM students

SELECT s.year, SUM(IF(p.item = 'pen', p.quantity, 0)) AS pens FROM professors AS p JOIN students AS s ON p.id = s.id GROUP BY s.year
--~ SELECT s.year, SUM(CASE WHEN p.item = 'pen' THEN p.quantity ELSE 0 END) AS pens FROM professors AS p JOIN students AS s ON p.id = s.id GROUP BY s.year

SELECT ROUND(VAR_SAMP(test_score), 2) AS v FROM students WHERE year IN UNNEST([1, 2])
--~ SELECT ROUND(VAR_SAMP(test_score), 2) AS v FROM students WHERE year IN (1, 2)

SELECT item, total FROM (SELECT item, SUM(quantity) AS total FROM professors GROUP BY item) WHERE total > 100 ORDER BY total DESC LIMIT 3

SELECT COUNT(*) AS heavy FROM students s WHERE (SELECT SUM(p.quantity) FROM professors p WHERE p.id = s.id) > 50

WITH spend AS (SELECT id, SUM(quantity) AS q FROM professors GROUP BY id) SELECT CASE WHEN q < 30 THEN 'low' WHEN q < 80 THEN 'mid' ELSE 'high' END AS band, COUNT(*) AS people FROM spend GROUP BY band

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=.01, max_groups_contributed=3, privacy_unit_column=id) item, SUM(quantity, contribution_bounds_per_group => (0, 300)) AS q, COUNT(*, contribution_bounds_per_group => (0, 3)) AS n FROM professors GROUP BY item
--~ SELECT item, SUM(quantity), COUNT(*) FROM professors GROUP BY item

SELECT year, COUNTIF(test_score > 90) / COUNT(*) AS top FROM mydataset.students GROUP BY year ORDER BY year
--~ SELECT year, COUNT_IF(test_score > 90) / COUNT(*) FROM students GROUP BY year ORDER BY year

SELECT item FROM professors WHERE quantity > 20 GROUP BY item HAVING COUNT(*) > 5

SELECT SUM(IF(item = 'pen', quantity, 0)) AS pens, SUM(IF(item = 'pencil', quantity, 0)) AS pencils FROM professors
--~ SELECT SUM(CASE WHEN item='pen' THEN quantity ELSE 0 END), SUM(CASE WHEN item='pencil' THEN quantity ELSE 0 END) FROM professors

SELECT COUNT(*) AS n FROM students AS s WHERE s.id IN (SELECT p.id FROM professors AS p WHERE p.item IN UNNEST(['pen', 'paper']) GROUP BY p.id HAVING SUM(p.quantity) > 50)
--~ SELECT COUNT(*) AS n FROM students AS s WHERE s.id IN (SELECT p.id FROM professors AS p WHERE p.item IN ('pen','paper') GROUP BY p.id HAVING SUM(p.quantity) > 50)

SELECT year, CAST(AVG(test_score) AS INT64) AS mean FROM students GROUP BY year
--~ SELECT year, CAST(AVG(test_score) AS BIGINT) FROM students GROUP BY year

SELECT item, COUNT(DISTINCT p.id) AS buyers, AVG(s.test_score) AS score FROM professors p INNER JOIN students s USING (id) WHERE s.year <> 1 GROUP BY item

--: refused syntax, missing: the patterns of printf
SELECT FORMAT('%d', year) AS y, COUNT(*) AS n FROM students GROUP BY year

SELECT FORMAT('{}', year) AS y, COUNT(*) AS n FROM students GROUP BY year
