--: delta
SELECT fruit, COUNT(fruit) FROM FruitEaten GROUP BY fruit;

--: delta
SELECT result.fruit, result.number_eaten FROM (SELECT per_person.fruit, SUM(per_person.fruit_count) as number_eaten, COUNT(uid) as number_eaters FROM (SELECT fruit, uid, COUNT(fruit) as fruit_count FROM FruitEaten GROUP BY fruit, uid) as per_person GROUP BY per_person.fruit) as result WHERE result.number_eaters > 20;

--: delta
SELECT fruit, ANON_COUNT(*) FROM FruitEaten GROUP BY fruit
--~ SELECT fruit, COUNT(*) FROM FruitEaten GROUP BY fruit

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1000, delta = 1e-5, max_groups_contributed = 3, privacy_unit_column=VisitorId) Day, COUNT(*, contribution_bounds_per_group => (0, 1)) AS `Total Visitors (DP)` FROM week_data GROUP BY Day
--~ SELECT Day, COUNT(*) FROM week_data GROUP BY Day

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=1e-5, kappa=3, privacy_unit_column=VisitorId) `Day`, SUM(CAST (`Money spent (euros)` AS INT32), contribution_bounds_per_group => (10, 50)) AS `Total money spent (DP)` FROM week_data GROUP BY `Day`
--~ SELECT Day, SUM(LEAST(GREATEST("Money spent (euros)", 10), 50)) FROM week_data GROUP BY Day

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1000, delta=1e-5, max_groups_contributed=3, privacy_unit_column=VisitorId) CAST(SAFE_MULTIPLY(CEIL(SAFE_DIVIDE(CAST(`Time spent (minutes)` AS DOUBLE), 10.0)), 10.0) AS INT32) AS `Time Spent`, COUNT(CAST(SAFE_MULTIPLY(CEIL(SAFE_DIVIDE(CAST(`Time spent (minutes)` AS DOUBLE), 10.0)), 10.0) AS INT32), contribution_bounds_per_group => (0, 3)) AS `Total visitors (DP)` FROM week_data GROUP BY `Time Spent`
--~ SELECT CAST(CEIL("Time spent (minutes)" / 10.0) * 10 AS INT) AS t, COUNT(*) FROM week_data GROUP BY t

SELECT `Day`, COUNT(*) AS `Total Visitors (DP)` FROM week_data GROUP BY `Day`
--~ SELECT Day, COUNT(*) FROM week_data GROUP BY Day

WITH matches_table AS (SELECT si.user_id, si.campaign_id, s.sale_id, s.sale_price FROM socialco_impressions si JOIN socialco_users su ON su.user_id = si.user_id JOIN athletic_brand_sales s ON s.emailsha256 = su.emailsha256 WHERE s.timestamp > si.timestamp UNION ALL SELECT si.user_id, si.campaign_id, s.sale_id, s.sale_price FROM socialco_impressions si JOIN socialco_users su ON su.user_id = si.user_id JOIN athletic_brand_sales s ON s.phonesha256 = su.phonesha256 WHERE s.timestamp > si.timestamp) SELECT COUNT (DISTINCT user_id) as unique_users FROM matches_table GROUP BY campaign_id ORDER BY COUNT (DISTINCT user_id) DESC LIMIT 5

SELECT campaign_id, COUNT(DISTINCT user_id) AS reach, COUNT(*) AS impressions, COUNT(*) * 1.0 / COUNT(DISTINCT user_id) AS frequency FROM socialco_impressions GROUP BY campaign_id

--: refused syntax, missing: windows over the rows of a person
SELECT COUNT(*) FROM (SELECT user_id, campaign_id, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY timestamp) AS row FROM socialco_impressions) t WHERE row = 1 AND campaign_id = 'c1'

SELECT frequency, COUNT(*) AS users FROM (SELECT user_id, COUNT(*) AS frequency FROM socialco_impressions GROUP BY user_id) GROUP BY frequency ORDER BY frequency

SELECT COUNT(age) AS count_age FROM t1 WHERE age >= 20 and age <= 100 GROUP BY score

SELECT COUNT(age) AS count_age, AVG(LEAST(GREATEST(age, 20), 60)) AS clamped FROM t1

SELECT SUM(CASE WHEN TRY_CAST(age AS INTEGER) BETWEEN 18 AND 40 THEN 1 ELSE 0 END) AS n FROM t1

--: about
SELECT score, DP_INTERVAL_LOW(n), DP_INTERVAL_HIGH(n) FROM (SELECT score, COUNT(*) AS n FROM t1 GROUP BY score)
--~ SELECT score, COUNT(*), COUNT(*) FROM t1 GROUP BY score

