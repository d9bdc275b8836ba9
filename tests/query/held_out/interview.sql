--: refused syntax, missing: complete months of texts
WITH signup AS (SELECT user_id, DATE_FORMAT(signup_date, '%Y-%m') AS cohort_month FROM users), user_activity AS (SELECT a.user_id, DATE_FORMAT(a.activity_date, '%Y-%m') AS activity_month, DATE_FORMAT(u.signup_date, '%Y-%m') AS cohort_month, TIMESTAMPDIFF(MONTH, DATE_FORMAT(u.signup_date, '%Y-%m-01'), DATE_FORMAT(a.activity_date, '%Y-%m-01')) AS retention_month FROM activity a JOIN users u ON a.user_id = u.user_id) SELECT cohort_month, retention_month, COUNT(DISTINCT user_id) AS retained_users FROM user_activity GROUP BY cohort_month, retention_month ORDER BY cohort_month, retention_month;
--~ SELECT strftime(u.signup_date, '%Y-%m') AS c, date_diff('month', u.signup_date, a.activity_date) AS r, COUNT(DISTINCT a.user_id) FROM activity a JOIN users u USING (user_id) GROUP BY 1, 2 ORDER BY 1, 2

SELECT EXTRACT(MONTH FROM curr_month.event_date) AS mth, COUNT(DISTINCT curr_month.user_id) AS monthly_users FROM user_actions AS curr_month WHERE EXISTS (SELECT last_month.user_id FROM user_actions AS last_month WHERE last_month.user_id = curr_month.user_id AND EXTRACT(MONTH FROM last_month.event_date) = EXTRACT(MONTH FROM curr_month.event_date - interval '1 month')) AND EXTRACT(MONTH FROM curr_month.event_date) = 7 AND EXTRACT(YEAR FROM curr_month.event_date) = 2022 GROUP BY EXTRACT(MONTH FROM curr_month.event_date);

with extracted as (select cast(extract(month from event_date) as INTEGER) mth, user_id from user_actions where event_date>='2022-06-01' and event_date<'2022-08-01') SELECT c.mth as month, count(distinct p.user_id) monthly_active_users from extracted c join extracted p on c.user_id = p.user_id and c.mth = p.mth + 1 group by c.mth having c.mth=7;

SELECT tweet_count_per_user AS tweet_bucket, COUNT(user_id) AS users_num FROM (SELECT user_id, COUNT(tweet_id) AS tweet_count_per_user FROM tweets WHERE tweet_date BETWEEN '2022-01-01' AND '2022-12-31' GROUP BY user_id) AS total_tweets GROUP BY tweet_count_per_user;

SELECT app_id, ROUND(100.0 * SUM(CASE WHEN event_type = 'click' THEN 1 ELSE 0 END) / SUM(CASE WHEN event_type = 'impression' THEN 1 ELSE 0 END), 2) AS ctr_rate FROM events WHERE timestamp >= '2022-01-01' AND timestamp < '2023-01-01' GROUP BY app_id;

SELECT COUNT(*) FILTER (WHERE device_type = 'laptop') AS laptop_views, COUNT(*) FILTER (WHERE device_type IN ('tablet', 'phone')) AS mobile_views FROM viewership;

SELECT EXTRACT(MONTH FROM submit_date) as mth, product_id, ROUND(AVG(stars), 2) AS avg_stars FROM reviews GROUP BY EXTRACT(MONTH FROM submit_date), product_id ORDER BY mth, product_id;

SELECT age.age_bucket, ROUND(100.0 * SUM(activities.time_spent) FILTER (WHERE activities.activity_type = 'send') / SUM(activities.time_spent), 2) AS send_perc, ROUND(100.0 * SUM(activities.time_spent) FILTER (WHERE activities.activity_type = 'open') / SUM(activities.time_spent), 2) AS open_perc FROM activities INNER JOIN age_breakdown AS age ON activities.user_id = age.user_id WHERE activities.activity_type IN ('send', 'open') GROUP BY age.age_bucket;

WITH ranked_spending_cte AS (SELECT category, product, SUM(spend) AS total_spend, RANK() OVER (PARTITION BY category ORDER BY SUM(spend) DESC) AS ranking FROM product_spend WHERE EXTRACT(YEAR FROM transaction_date) = 2022 GROUP BY category, product) SELECT category, product, total_spend FROM ranked_spending_cte WHERE ranking <= 2 ORDER BY category, ranking;

--: refused syntax
SELECT user_id, spend, transaction_date FROM (SELECT user_id, spend, transaction_date, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY transaction_date) AS row_num FROM product_spend) AS trans_num WHERE row_num = 3;

SELECT ROUND(COUNT(texts.email_id)::DECIMAL / COUNT(DISTINCT emails.email_id), 2) AS activation_rate FROM emails LEFT JOIN texts ON emails.email_id = texts.email_id AND texts.signup_action = 'Confirmed';
--~ SELECT ROUND(COUNT(texts.email_id)::DOUBLE / COUNT(DISTINCT emails.email_id), 2) AS activation_rate FROM emails LEFT JOIN texts ON emails.email_id = texts.email_id AND texts.signup_action = 'Confirmed'

SELECT ROUND(COUNT(DISTINCT user_id) / (SELECT COUNT(DISTINCT user_id) FROM activity), 2) AS fraction FROM activity WHERE (user_id, DATE_SUB(activity_date, INTERVAL 1 DAY)) IN (SELECT user_id, MIN(activity_date) AS first_login FROM activity GROUP BY user_id);
--~ SELECT ROUND(COUNT(DISTINCT a.user_id) / (SELECT COUNT(DISTINCT user_id) FROM activity), 2) FROM activity a JOIN (SELECT user_id, MIN(activity_date) AS f FROM activity GROUP BY user_id) m ON a.user_id = m.user_id AND a.activity_date - 1 = m.f

SELECT activity_date AS day, COUNT(DISTINCT user_id) AS active_users FROM activity WHERE DATEDIFF('2022-02-27', activity_date) < 30 AND DATEDIFF('2022-02-27', activity_date) >= 0 GROUP BY activity_date;
--~ SELECT activity_date AS day, COUNT(DISTINCT user_id) AS active_users FROM activity WHERE activity_date BETWEEN '2022-01-29' AND '2022-02-27' GROUP BY activity_date

SELECT DATE_FORMAT(trans_date, '%Y-%m') AS month, country, COUNT(id) AS trans_count, SUM(IF(state = 'approved', 1, 0)) AS approved_count, SUM(amount) AS trans_total_amount, SUM(IF(state = 'approved', amount, 0)) AS approved_total_amount FROM transactions GROUP BY month, country;
--~ SELECT strftime(trans_date, '%Y-%m') AS month, country, COUNT(id), COUNT(*) FILTER (WHERE state = 'approved'), SUM(amount), SUM(CASE WHEN state = 'approved' THEN amount ELSE 0 END) FROM transactions GROUP BY month, country

SELECT country, SUM(state = 'approved') AS approved_count FROM transactions GROUP BY country
--~ SELECT country, COUNT(*) FILTER (WHERE state = 'approved') FROM transactions GROUP BY country

SELECT ROUND(AVG(order_date = customer_pref_delivery_date) * 100, 2) AS immediate_percentage FROM delivery WHERE (user_id, order_date) IN (SELECT user_id, MIN(order_date) FROM delivery GROUP BY user_id);
--~ SELECT ROUND(AVG(CASE WHEN order_date = customer_pref_delivery_date THEN 1 ELSE 0 END) * 100, 2) FROM delivery WHERE (user_id, order_date) IN (SELECT user_id, MIN(order_date) FROM delivery GROUP BY user_id)

SELECT 'Low Salary' AS category, SUM(CASE WHEN income < 20000 THEN 1 ELSE 0 END) AS accounts_count FROM accounts UNION SELECT 'Average Salary' AS category, SUM(CASE WHEN income BETWEEN 20000 AND 50000 THEN 1 ELSE 0 END) AS accounts_count FROM accounts UNION SELECT 'High Salary' AS category, SUM(CASE WHEN income > 50000 THEN 1 ELSE 0 END) AS accounts_count FROM accounts;

SELECT contest_id, ROUND(COUNT(DISTINCT user_id) * 100 / (SELECT COUNT(user_id) FROM users), 2) AS percentage FROM register GROUP BY contest_id ORDER BY percentage DESC, contest_id ASC;

SELECT query_name, ROUND(AVG(rating / position), 2) AS quality, ROUND(SUM(IF(rating < 3, 1, 0)) * 100 / COUNT(*), 2) AS poor_query_percentage FROM queries GROUP BY query_name;
--~ SELECT query_name, ROUND(AVG(rating / position), 2) AS quality, ROUND(SUM(CASE WHEN rating < 3 THEN 1 ELSE 0 END) * 100 / COUNT(*), 2) FROM queries GROUP BY query_name

SELECT class FROM courses GROUP BY class HAVING COUNT(user_id) >= 45;

--: refused syntax
SELECT user_id FROM activity GROUP BY user_id HAVING COUNT(*) >= 3;

SELECT visited_on, SUM(SUM(amount)) OVER (ORDER BY visited_on ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS amount FROM customer_visits GROUP BY visited_on ORDER BY visited_on;

WITH first_orders AS (SELECT user_id, MIN(order_date) AS first_order FROM delivery GROUP BY user_id) SELECT DATE_TRUNC('month', first_order) AS cohort, COUNT(*) AS size FROM first_orders GROUP BY 1 ORDER BY 1;

--: refused syntax, missing: windows over the rows of a person
WITH ranked AS (SELECT user_id, activity_date, LAG(activity_date) OVER (PARTITION BY user_id ORDER BY activity_date) AS previous FROM activity) SELECT AVG(DATE_DIFF('day', previous, activity_date)) AS mean_gap FROM ranked WHERE previous IS NOT NULL;

--: refused syntax, missing: windows over the rows of a person
SELECT COUNT(*) AS users FROM (SELECT user_id, product_id, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY submit_date) AS rn FROM reviews) t WHERE rn = 1 AND product_id = 1;

--: refused syntax, missing: a number about everybody in a condition
SELECT COUNT(*) AS above FROM accounts WHERE income > (SELECT AVG(income) FROM accounts);

SELECT category, SUM(spend) / (SELECT SUM(spend) FROM product_spend) AS share FROM product_spend GROUP BY category ORDER BY share DESC;

SELECT country, trans_date, SUM(SUM(amount)) OVER (PARTITION BY country ORDER BY trans_date) AS running FROM transactions GROUP BY country, trans_date ORDER BY country, trans_date;

SELECT COUNT(DISTINCT CASE WHEN event_type = 'sign-in' THEN user_id END) AS step1, COUNT(DISTINCT CASE WHEN event_type = 'like' THEN user_id END) AS step2, COUNT(DISTINCT CASE WHEN event_type = 'comment' THEN user_id END) AS step3 FROM user_actions;

--: nobody, missing: groups that nobody is in
WITH daily AS (SELECT activity_date, COUNT(DISTINCT user_id) AS dau FROM activity GROUP BY activity_date), monthly AS (SELECT DATE_TRUNC('month', activity_date) AS m, COUNT(DISTINCT user_id) AS mau FROM activity GROUP BY 1) SELECT m.m, AVG(d.dau) / MAX(m.mau) AS stickiness FROM monthly m JOIN daily d ON DATE_TRUNC('month', d.activity_date) = m.m GROUP BY m.m ORDER BY m.m;
--~ WITH days AS (SELECT CAST(UNNEST(RANGE(DATE '2022-01-01', DATE '2022-07-01', INTERVAL 1 DAY)) AS DATE) AS day) SELECT DATE_TRUNC('month', day) AS m, COUNT(DISTINCT (user_id, day)) FILTER (WHERE user_id IS NOT NULL) / COUNT(DISTINCT day) / COUNT(DISTINCT user_id) FROM days LEFT JOIN activity ON activity_date = day GROUP BY m ORDER BY m

SELECT a.product AS p, COUNT(DISTINCT a.user_id) AS both_bought FROM product_spend a JOIN product_spend b ON a.user_id = b.user_id AND a.product < b.product GROUP BY a.product;

--: about
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY income) AS median_income, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY income) AS p90 FROM accounts;

SELECT CONCAT(country, ' - ', state) AS label, COUNT(*) AS n FROM transactions GROUP BY country, state ORDER BY n DESC LIMIT 3;

SELECT DAYNAME(trans_date) AS weekday, AVG(amount) AS average FROM transactions GROUP BY weekday;

SELECT YEAR(trans_date) AS y, WEEK(trans_date) AS w, COUNT(*) AS n FROM transactions GROUP BY YEAR(trans_date), WEEK(trans_date) HAVING COUNT(*) > 0 ORDER BY y, w;
