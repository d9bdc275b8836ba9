SELECT COUNT(*) FROM events WHERE AdvEngineID <> 0

SELECT SUM(AdvEngineID), COUNT(*), AVG(ResolutionWidth) FROM events

SELECT COUNT(DISTINCT user_id) FROM events

SELECT COUNT(DISTINCT SearchPhrase) FROM events

--: about
SELECT MIN(event_at), MAX(event_at) FROM events

SELECT AdvEngineID, COUNT(*) FROM events WHERE AdvEngineID <> 0 GROUP BY AdvEngineID ORDER BY COUNT(*) DESC

SELECT RegionID, COUNT(DISTINCT user_id) AS u FROM events GROUP BY RegionID ORDER BY u DESC, RegionID LIMIT 10

SELECT RegionID, SUM(AdvEngineID), COUNT(*) AS c, AVG(ResolutionWidth), COUNT(DISTINCT user_id) FROM events GROUP BY RegionID ORDER BY c DESC LIMIT 10

--: delta
SELECT SearchPhrase, COUNT(*) AS c FROM events WHERE SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10

--: delta
SELECT device, SearchPhrase, COUNT(DISTINCT user_id) AS u FROM events WHERE SearchPhrase <> '' GROUP BY device, SearchPhrase ORDER BY u DESC, device, SearchPhrase LIMIT 10

--: refused syntax
SELECT user_id, COUNT(*) FROM events GROUP BY user_id ORDER BY COUNT(*) DESC LIMIT 10

SELECT SUM(ResolutionWidth), SUM(ResolutionWidth + 1), SUM(ResolutionWidth + 2), SUM(ResolutionWidth + 3) FROM events

SELECT DATE_TRUNC('hour', event_at) AS h, COUNT(*) AS n FROM events WHERE event_at >= '2024-03-01' AND event_at < '2024-03-03' GROUP BY h HAVING COUNT(*) > 0 ORDER BY h

SELECT DATE_TRUNC('month', event_at) AS m, COUNT(DISTINCT user_id) AS mau FROM events GROUP BY 1 ORDER BY 1

SELECT CAST(event_at AS DATE) AS d, COUNT(*) AS n FROM events WHERE event_at BETWEEN '2024-02-01' AND '2024-02-29' GROUP BY d HAVING n > 0 ORDER BY d

SELECT EXTRACT(HOUR FROM event_at) AS hour, COUNT(*) AS n FROM events GROUP BY hour ORDER BY hour

SELECT EXTRACT(DOW FROM event_at) AS dow, AVG(amount) FROM events WHERE event_name = 'purchase' GROUP BY dow ORDER BY dow

SELECT COUNT(DISTINCT CASE WHEN event_name = 'purchase' THEN user_id END) * 1.0 / COUNT(DISTINCT user_id) AS conversion FROM events

WITH buyers AS (SELECT DISTINCT user_id FROM events WHERE event_name = 'purchase') SELECT u.country, COUNT(*) AS buyers FROM users u JOIN buyers b ON u.user_id = b.user_id GROUP BY u.country

WITH per_user AS (SELECT user_id, SUM(amount) AS spent, MAX(amount) AS top FROM events WHERE event_name = 'purchase' GROUP BY user_id) SELECT AVG(spent) AS mean, STDDEV(spent) AS sd, COUNT(user_id) AS n FROM per_user

WITH per_user AS (SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id) SELECT CASE WHEN n = 1 THEN '1' WHEN n <= 3 THEN '2-3' ELSE '4+' END AS freq, COUNT(*) AS users FROM per_user GROUP BY freq

SELECT u.plan, e.event_name, COUNT(*) AS n FROM users u JOIN events e ON u.user_id = e.user_id WHERE e.event_at >= u.signup_at GROUP BY u.plan, e.event_name

WITH cohorts AS (SELECT user_id, DATE_TRUNC('month', signup_at) AS cohort FROM users) SELECT cohort, COUNT(*) AS size FROM cohorts GROUP BY cohort HAVING COUNT(*) > 0 ORDER BY cohort

WITH base AS (SELECT user_id, CAST(DATE_TRUNC('month', signup_at) AS DATE) AS cohort, CAST(signup_at AS DATE) AS d0 FROM users) SELECT b.cohort, COUNT(DISTINCT CASE WHEN DATE_DIFF('day', b.d0, CAST(e.event_at AS DATE)) BETWEEN 1 AND 30 THEN e.user_id END) AS retained FROM base b JOIN events e ON e.user_id = b.user_id GROUP BY b.cohort HAVING retained > 0 ORDER BY b.cohort

SELECT c.channel, COUNT(*) AS n, SUM(c.cpm) AS cost FROM events e JOIN campaigns c ON e.device = c.device GROUP BY c.channel

SELECT u.country, SUM(e.amount) AS revenue, ROUND(100.0 * SUM(e.amount) / SUM(SUM(e.amount)) OVER (), 2) AS pct FROM users u JOIN events e USING (user_id) WHERE e.event_name = 'purchase' GROUP BY u.country ORDER BY revenue DESC

SELECT device, SUM(CASE WHEN event_name = 'view' THEN 1 ELSE 0 END) AS views, SUM(CASE WHEN event_name = 'click' THEN 1 ELSE 0 END) AS clicks, SUM(CASE WHEN event_name = 'click' THEN 1 ELSE 0 END) * 1.0 / NULLIF(SUM(CASE WHEN event_name = 'view' THEN 1 ELSE 0 END), 0) AS ctr FROM events GROUP BY device

SELECT COUNT(*) FROM users u WHERE EXISTS (SELECT 1 FROM events e WHERE e.user_id = u.user_id AND e.event_at < u.signup_at)

SELECT COUNT(*) FROM users u WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.user_id = u.user_id AND e.event_name = 'purchase')

WITH firsts AS (SELECT user_id, MIN(event_at) AS first_at FROM events GROUP BY user_id) SELECT DATE_TRUNC('month', first_at) AS m, COUNT(*) AS new_users FROM firsts GROUP BY m HAVING COUNT(*) > 0 ORDER BY m

SELECT COUNT(*) FROM (SELECT user_id FROM events WHERE device = 'mobile' INTERSECT SELECT user_id FROM events WHERE device = 'desktop')

SELECT COUNT(*) FROM (SELECT user_id FROM events WHERE device = 'mobile' EXCEPT SELECT user_id FROM events WHERE device = 'desktop')

SELECT COUNT(DISTINCT user_id) FROM (SELECT user_id FROM events WHERE event_name = 'click' UNION SELECT user_id FROM users WHERE plan = 'pro')

SELECT age // 10 AS bucket, plan, COUNT(*) FROM users GROUP BY ALL

SELECT country, MODE(plan) FROM users GROUP BY country

SELECT event_name, HISTOGRAM(amount, 4) AS bin, COUNT(*) FROM events GROUP BY 1, 2
--~ SELECT event_name, amount // 50 * 50 AS bin, COUNT(*) FROM events GROUP BY 1, 2

SELECT WIDTH_BUCKET(amount, 0, 200, 4) AS bin, COUNT(*) AS n FROM events GROUP BY bin ORDER BY bin
--~ SELECT CASE WHEN amount >= 200 THEN 5 ELSE amount // 50 + 1 END AS bin, COUNT(*) AS n FROM events GROUP BY bin ORDER BY bin

SELECT country, COUNT(*) AS n FROM users WHERE signup_at > TIMESTAMP '2024-03-01 00:00:00' GROUP BY country

SELECT STRFTIME(event_at, '%Y-%m') AS month, SUM(amount) FROM events GROUP BY month HAVING SUM(amount) > 0 ORDER BY month

SELECT device, event_name, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY device ORDER BY COUNT(*) DESC) AS rn FROM events GROUP BY device, event_name QUALIFY rn = 1

SELECT device, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY device) AS diff FROM events GROUP BY device ORDER BY device

SELECT country, COUNT(*) FROM users GROUP BY country HAVING COUNT(*) > (SELECT COUNT(*) / 3 FROM users)

--: about
SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY amount) FROM events

SELECT user_count, COUNT(*) FROM (SELECT event_name, COUNT(DISTINCT user_id) AS user_count FROM events GROUP BY event_name) GROUP BY user_count

SELECT country, COUNT(*) AS users, SUM(CASE WHEN plan = 'pro' THEN 1 ELSE 0 END) AS pro, AVG(CASE WHEN plan = 'pro' THEN 1.0 ELSE 0.0 END) AS rate FROM users GROUP BY country

SELECT event_name, COUNT(*) AS events, COUNT(DISTINCT user_id) AS users, COUNT(*) * 1.0 / COUNT(DISTINCT user_id) AS per_user FROM events GROUP BY event_name

WITH funnel AS (SELECT user_id, MAX(CASE WHEN event_name = 'view' THEN 1 ELSE 0 END) AS viewed, MAX(CASE WHEN event_name = 'click' THEN 1 ELSE 0 END) AS clicked, MAX(CASE WHEN event_name = 'purchase' THEN 1 ELSE 0 END) AS bought FROM events GROUP BY user_id) SELECT SUM(viewed) AS v, SUM(viewed * clicked) AS vc, SUM(viewed * clicked * bought) AS vcb FROM funnel

SELECT COUNT(DISTINCT user_id) FILTER (WHERE event_name = 'view') AS viewers, COUNT(DISTINCT user_id) FILTER (WHERE event_name = 'purchase') AS buyers FROM events

SELECT u.country, COUNT(DISTINCT CASE WHEN e.event_name = 'purchase' THEN e.user_id END) * 100.0 / COUNT(DISTINCT u.user_id) AS pct FROM users u LEFT JOIN events e ON e.user_id = u.user_id GROUP BY u.country

SELECT device, AVG(amount) AS aov FROM events WHERE event_name = 'purchase' AND amount > 0 GROUP BY device ORDER BY aov DESC

SELECT DATE_TRUNC('week', event_at) AS w, COUNT(DISTINCT user_id) AS wau FROM events WHERE event_at >= '2024-02-01' AND event_at < '2024-03-01' GROUP BY w ORDER BY w

SELECT COUNT(*) FROM users WHERE user_id NOT IN (SELECT user_id FROM events WHERE event_at >= '2024-06-01')

SELECT AVG(n) FROM (SELECT user_id, COUNT(DISTINCT CAST(event_at AS DATE)) AS n FROM events GROUP BY user_id)

SELECT plan, AVG(days) FROM (SELECT u.plan, DATE_DIFF('day', CAST(u.signup_at AS DATE), CAST(f.first_at AS DATE)) AS days FROM users u JOIN (SELECT user_id, MIN(event_at) AS first_at FROM events GROUP BY user_id) f ON f.user_id = u.user_id) GROUP BY plan

SELECT CASE WHEN amount BETWEEN 0 AND 49 THEN '0-49' WHEN amount BETWEEN 50 AND 99 THEN '50-99' ELSE '100+' END AS band, COUNT(*) AS n FROM events WHERE event_name = 'purchase' GROUP BY band ORDER BY band

SELECT HOUR(event_at) AS h, device, COUNT(*) AS n FROM events GROUP BY h, device HAVING n >= 5 ORDER BY n DESC, h, device LIMIT 5

SELECT COUNT(*) FROM events WHERE DATE(event_at) = '2024-05-01'

SELECT SUM(amount) AS revenue FROM events WHERE event_name = 'purchase' AND event_at >= TIMESTAMP '2024-01-01' AND event_at < TIMESTAMP '2024-04-01'

SELECT u.plan, SUM(e.amount) / COUNT(DISTINCT u.user_id) AS arpu FROM users u JOIN events e USING (user_id) GROUP BY u.plan

SELECT IsRefresh = 1 AS refresh, COUNT(*) FROM events GROUP BY refresh

SELECT RegionID, COUNT(*) AS c FROM events WHERE RegionID IN (1, 2) GROUP BY RegionID

--: refused unknown-name, missing: REGEXP_REPLACE
SELECT REGEXP_REPLACE(SearchPhrase, 's$', '') AS k, COUNT(*) FROM events GROUP BY k

SELECT COUNT(*) FROM events WHERE SearchPhrase LIKE '%at%' AND device IN ('mobile', 'tablet')

SELECT country, plan, COUNT(*) AS n, ROUND(COUNT(*) * 100.0 / SUM(COUNT(*)) OVER (PARTITION BY country), 1) AS pct FROM users GROUP BY country, plan ORDER BY country, plan

SELECT a.country, a.n - b.n AS diff FROM (SELECT country, COUNT(*) AS n FROM users WHERE plan = 'free' GROUP BY country) a JOIN (SELECT country, COUNT(*) AS n FROM users WHERE plan = 'pro' GROUP BY country) b USING (country) ORDER BY a.country

SELECT COUNT(*) FROM users u JOIN events e ON u.user_id = e.user_id JOIN campaigns c ON c.device = e.device WHERE c.channel = 'web' AND u.country = 'DE'

SELECT age, COUNT(*) FROM users WHERE age BETWEEN 30 AND 35 GROUP BY age HAVING COUNT(*) > 0 ORDER BY age

SELECT MAX(cnt) FROM (SELECT device, COUNT(*) AS cnt FROM events GROUP BY device)

--: about
SELECT event_name, MEDIAN(amount) AS med FROM events GROUP BY event_name

SELECT * FROM (SELECT device, COUNT(*) AS n FROM events GROUP BY device) WHERE n > 100 ORDER BY n DESC

SELECT STDDEV(spend) FROM (SELECT user_id, SUM(amount) AS spend FROM events GROUP BY user_id)

SELECT COUNT(*), COUNT(DISTINCT user_id) FROM events WHERE event_at >= TIMESTAMP '2024-06-01 00:00:00' AND device = 'mobile'

SELECT MOD(RegionID, 2) AS parity, COUNT(*) FROM events GROUP BY parity

SELECT event_name, AVG(EXTRACT(EPOCH FROM event_at)) AS mean_time FROM events GROUP BY event_name

SELECT COUNT(*) AS repeat_purchases FROM events e WHERE e.event_name = 'purchase' AND EXISTS (SELECT 1 FROM events p WHERE p.user_id = e.user_id AND p.event_name = 'purchase' AND p.event_at < e.event_at AND p.event_at >= e.event_at - INTERVAL '90 days')

SELECT COUNT(*) AS first_touches FROM events e WHERE (SELECT COUNT(*) FROM events x WHERE x.user_id = e.user_id AND x.event_at < e.event_at) = 0

--: refused syntax, missing: COUNT(DISTINCT id) of some people beside that of all
SELECT u.country, COUNT(DISTINCT e.user_id) * 100.0 / COUNT(DISTINCT u.user_id) AS active_pct FROM users u LEFT JOIN events e ON u.user_id = e.user_id AND e.event_at >= '2024-09-01' GROUP BY u.country

SELECT strftime(event_at, '%Y-%m') AS month, SUM(amount) AS revenue, SUM(amount) - LAG(SUM(amount)) OVER (ORDER BY strftime(event_at, '%Y-%m')) AS change FROM events WHERE event_name = 'purchase' AND event_at < '2024-12-01' GROUP BY month ORDER BY month

SELECT device, COUNT(*) FILTER (WHERE event_name = 'click') AS clicks, COUNT(*) FILTER (WHERE event_name = 'view') AS views FROM events GROUP BY device ORDER BY clicks DESC

--: about
SELECT CASE WHEN ResolutionWidth >= 1900 THEN 'hd' ELSE 'sd' END AS screen, MEDIAN(amount) AS median_amount FROM events GROUP BY screen

--: delta
SELECT SearchPhrase, MIN(amount) AS low, COUNT(*) AS c FROM events WHERE SearchPhrase LIKE '%s' GROUP BY SearchPhrase ORDER BY c DESC

SELECT plan, AVG(DATE_DIFF('day', CAST(signup_at AS DATE), DATE '2024-12-31')) AS tenure FROM users GROUP BY plan

SELECT COUNT(*) AS silent FROM users WHERE user_id NOT IN (SELECT user_id FROM events WHERE event_name IN ('click', 'purchase'))

SELECT country, plan, COUNT(*) AS users, ROUND(AVG(age), 1) AS age FROM users GROUP BY ALL

SELECT DATE_TRUNC('week', signup_at) AS wk, COUNT(*) AS n FROM users GROUP BY wk ORDER BY wk

SELECT EXTRACT(HOUR FROM event_at) AS h, COUNT(*) AS n FROM events GROUP BY h ORDER BY h

SELECT u.country, COUNT_IF(e.event_name = 'purchase') * 1.0 / COUNT(DISTINCT u.user_id) AS per_user FROM users u JOIN events e ON u.user_id = e.user_id GROUP BY u.country

SELECT COUNT(DISTINCT e.user_id) FROM events e JOIN users u ON e.user_id = u.user_id WHERE e.event_name = 'purchase' AND e.event_at < u.signup_at + INTERVAL '7 days'

SELECT device, COUNT(*) AS n, SUM(amount) AS rev FROM events WHERE event_at >= TIMESTAMP '2024-06-01 00:00:00' AND event_name = 'purchase' GROUP BY device QUALIFY RANK() OVER (ORDER BY SUM(amount) DESC) <= 2

SELECT c.channel, SUM(c.cpm) / 1000.0 AS cost FROM events e LEFT JOIN campaigns c ON e.device = c.device GROUP BY c.channel

SELECT COUNT(*) FROM users WHERE user_id NOT IN (SELECT user_id FROM events WHERE event_name = 'purchase')

--: delta
SELECT SearchPhrase, COUNT(*) AS c FROM events WHERE SearchPhrase <> '' GROUP BY SearchPhrase ORDER BY c DESC LIMIT 10

SELECT COUNT(DISTINCT event_id) FROM events WHERE ResolutionWidth > 1300

SELECT NTILE(3) OVER (ORDER BY COUNT(*)) AS t, RegionID, COUNT(*) AS n FROM events GROUP BY RegionID

SELECT CASE WHEN n = 1 THEN '1' WHEN n <= 3 THEN '2-3' ELSE '4+' END AS bucket, COUNT(*) AS users FROM (SELECT user_id, COUNT(*) AS n FROM events GROUP BY user_id) GROUP BY bucket

SELECT COUNT(*) FROM events WHERE amount = (SELECT MAX(x.amount) FROM events x WHERE x.user_id = events.user_id)

SELECT COUNT(*) FROM events WHERE (user_id, device) IN (SELECT user_id, device FROM events WHERE event_name = 'purchase')
