SELECT plan, COUNT(*) AS subs, AVG(CASE WHEN churned THEN 1.0 ELSE 0.0 END) AS churn_rate
FROM subscribers
GROUP BY plan
ORDER BY plan;

SELECT SUM(monthly_fee) AS mrr
FROM subscribers
WHERE churned = FALSE;

SELECT p.plan, p.price AS list_price, AVG(s.monthly_fee) AS paid, AVG(s.monthly_fee) - p.price AS diff
FROM subscribers s
JOIN plans p ON p.plan = s.plan
GROUP BY p.plan, p.price
ORDER BY p.plan;

SELECT MONTHNAME(month) AS m, SUM(data_gb) AS gb, COUNT(DISTINCT subscriber_id) AS active
FROM `usage`
GROUP BY MONTHNAME(month);
--~ SELECT MONTHNAME(month) AS m, SUM(data_gb) AS gb, COUNT(DISTINCT subscriber_id) AS active
--~ FROM usage
--~ GROUP BY MONTHNAME(month)

SELECT COUNT(DISTINCT u.subscriber_id) AS over_cap
FROM usage u
JOIN subscribers s ON s.subscriber_id = u.subscriber_id
JOIN plans p ON p.plan = s.plan
WHERE u.data_gb > p.cap_gb;

SELECT tier, COUNT(*) AS subscribers, AVG(total_gb) AS avg_gb
FROM (
  SELECT subscriber_id, SUM(data_gb) AS total_gb,
         CASE WHEN SUM(data_gb) >= 300 THEN 'heavy'
              WHEN SUM(data_gb) >= 60 THEN 'regular'
              ELSE 'light' END AS tier
  FROM usage
  GROUP BY subscriber_id
) t
GROUP BY tier
ORDER BY tier;

SELECT CASE WHEN device LIKE 'iPhone%' THEN 'Apple'
            WHEN device LIKE 'Galaxy%' THEN 'Samsung'
            WHEN device IS NULL THEN 'unknown'
            ELSE 'other' END AS maker,
       COUNT(*) AS n
FROM subscribers
GROUP BY maker
ORDER BY n DESC;

SELECT topic,
       COUNT(*) AS tickets,
       SUM(IIF(DATEDIFF('hour', opened_at, closed_at) <= 24, 1, 0)) AS within_day
FROM tickets
WHERE closed_at IS NOT NULL
GROUP BY topic;
--~ SELECT topic,
--~        COUNT(*) AS tickets,
--~        SUM(CASE WHEN DATEDIFF('hour', opened_at, closed_at) <= 24 THEN 1 ELSE 0 END) AS within_day
--~ FROM tickets
--~ WHERE closed_at IS NOT NULL
--~ GROUP BY topic

SELECT 100.0 * (SUM(CASE WHEN csat >= 9 THEN 1 ELSE 0 END) - SUM(CASE WHEN csat <= 6 THEN 1 ELSE 0 END)) / COUNT(csat) AS nps
FROM tickets;

SELECT has_ticket, COUNT(*) AS n, AVG(churned::INT) AS churn_rate
FROM (
  SELECT s.subscriber_id, s.churned,
         EXISTS (SELECT 1 FROM tickets t WHERE t.subscriber_id = s.subscriber_id) AS has_ticket
  FROM subscribers s
) q
GROUP BY has_ticket;

SELECT CAST(FLOOR(tenure_months / 12.0) AS INT) AS tenure_years, COUNT(*) AS n
FROM subscribers
GROUP BY CAST(FLOOR(tenure_months / 12.0) AS INT)
ORDER BY tenure_years;

WITH r AS (
  SELECT CASE WHEN MONTH(month) IN (7, 8) THEN 'summer' ELSE 'rest' END AS season,
         AVG(CASE WHEN roaming THEN 1.0 ELSE 0 END) AS roaming_share
  FROM usage
  GROUP BY 1
)
SELECT MAX(CASE WHEN season = 'summer' THEN roaming_share END)
     / MAX(CASE WHEN season = 'rest' THEN roaming_share END) AS uplift
FROM r;

SELECT region, plan, APPROX_COUNT_DISTINCT(subscriber_id) AS subs
FROM subscribers
GROUP BY CUBE (region, plan);
--~ SELECT region, plan, COUNT(DISTINCT subscriber_id) AS subs
--~ FROM subscribers
--~ GROUP BY CUBE (region, plan)

--: refused syntax, missing: LAG over the rows of each person
SELECT AVG(delta) AS avg_change, COUNT(delta) AS pairs
FROM (
  SELECT data_gb - LAG(data_gb) OVER (PARTITION BY subscriber_id ORDER BY month) AS delta
  FROM usage
) z;

--: refused unknown-name
SELECT region, GROUP_CONCAT(msisdn) AS numbers
FROM subscribers
WHERE churned
GROUP BY region;

--: refused bounds
SELECT SUM(CAST(msisdn AS BIGINT)) FROM subscribers;
