SELECT SUM(total) AS revenue
FROM orders
WHERE status = 'completed';

SELECT country, COUNT(*) AS customers FROM customers GROUP BY country ORDER BY customers DESC;

SELECT channel, AVG(total) AS aov, COUNT(*) AS orders
FROM orders
WHERE status IN ('completed', 'returned')
GROUP BY channel
ORDER BY orders DESC;

SELECT SPLIT_PART(email, '@', 2) AS domain, COUNT(*) AS users
FROM customers
WHERE email IS NOT NULL
GROUP BY domain
ORDER BY users DESC;

SELECT p.category, SUM(oi.quantity * oi.unit_price) AS sales, SUM(oi.quantity) AS units
FROM order_items oi
LEFT JOIN products p ON oi.sku = p.sku
GROUP BY p.category
ORDER BY sales DESC;

WITH monthly AS (
  SELECT DATE_TRUNC('month', ordered_at) AS mth, SUM(total) AS revenue
  FROM orders
  WHERE status = 'completed'
  GROUP BY DATE_TRUNC('month', ordered_at)
)
SELECT mth,
       revenue,
       revenue - LAG(revenue) OVER (ORDER BY mth) AS change,
       SUM(revenue) OVER (ORDER BY mth ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS running_total
FROM monthly
ORDER BY mth;

SELECT country,
       COUNTIF(o.status = 'cancelled') AS cancelled,
       SAFE_DIVIDE(COUNTIF(o.status = 'cancelled'), COUNT(*)) AS cancel_rate
FROM `orders` o
JOIN `customers` c ON c.customer_id = o.customer_id
GROUP BY country;
--~ SELECT country,
--~        COUNT(*) FILTER (o.status = 'cancelled') AS cancelled,
--~        COUNT(*) FILTER (o.status = 'cancelled') / COUNT(*) AS cancel_rate
--~ FROM orders o
--~ JOIN customers c ON c.customer_id = o.customer_id
--~ GROUP BY country

SELECT AVG(IFNULL(discount_pct, 0)) AS avg_discount,
       COUNT(*) - COUNT(discount_pct) AS no_discount_recorded
FROM orders;

SELECT COALESCE(coupon, '(none)') AS coupon_code, COUNT(*) AS orders, COUNT(DISTINCT customer_id) AS buyers
FROM orders
GROUP BY COALESCE(coupon, '(none)')
ORDER BY coupon_code;

WITH clv AS (
  SELECT customer_id, SUM(total) AS spend
  FROM orders
  WHERE status = 'completed'
  GROUP BY customer_id
)
SELECT CASE WHEN spend < 100 THEN 'a: under 100'
            WHEN spend < 300 THEN 'b: 100-299'
            WHEN spend < 1000 THEN 'c: 300-999'
            ELSE 'd: 1000+' END AS bucket,
       COUNT(*) AS customers
FROM clv
GROUP BY bucket
ORDER BY bucket;

SELECT EXTRACT(HOUR FROM ordered_at) AS hour, COUNT(*) AS orders
FROM orders
GROUP BY hour
ORDER BY hour;

SELECT COUNT(CASE WHEN n > 1 THEN 1 END) * 1.0 / COUNT(*) AS repeat_rate
FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) AS x;

SELECT c.country, AVG(b.lines) AS avg_lines
FROM (
    SELECT customer_id, order_id, COUNT(*) AS lines
    FROM order_items
    GROUP BY customer_id, order_id
) b
JOIN customers c ON c.customer_id = b.customer_id
GROUP BY c.country
ORDER BY c.country;

--: about
SELECT IFF(opt_in, 'yes', 'no') AS opted, AVG(loyalty_points) AS pts, MEDIAN(loyalty_points) AS med_pts
FROM customers
GROUP BY 1
ORDER BY 1;
--~ SELECT CASE WHEN opt_in THEN 'yes' ELSE 'no' END AS opted, AVG(loyalty_points) AS pts, MEDIAN(loyalty_points) AS med_pts
--~ FROM customers
--~ GROUP BY 1
--~ ORDER BY 1

SELECT p.category, oi.sku, SUM(oi.quantity) AS units
FROM order_items oi
JOIN products p USING (sku)
GROUP BY p.category, oi.sku
QUALIFY ROW_NUMBER() OVER (PARTITION BY p.category ORDER BY SUM(oi.quantity) DESC) = 1
ORDER BY p.category;

SELECT TO_CHAR(ordered_at, 'YYYY-MM') AS ym,
       SUM(CASE WHEN status = 'completed' THEN 1 ELSE 0 END) AS completed,
       SUM(CASE WHEN status = 'returned' THEN 1 ELSE 0 END) AS returned
FROM orders
GROUP BY TO_CHAR(ordered_at, 'YYYY-MM')
ORDER BY ym;
--~ SELECT strftime(ordered_at, '%Y-%m') AS ym,
--~        SUM(CASE WHEN status = 'completed' THEN 1 ELSE 0 END) AS completed,
--~        SUM(CASE WHEN status = 'returned' THEN 1 ELSE 0 END) AS returned
--~ FROM orders
--~ GROUP BY ym
--~ ORDER BY ym

SELECT 'born before 1980' AS grp, COUNT(*) AS n FROM customers WHERE birth_year < 1980
UNION ALL
SELECT 'born 1980 or later', COUNT(*) FROM customers WHERE birth_year >= 1980
UNION ALL
SELECT 'unknown', COUNT(*) FROM customers WHERE birth_year IS NULL;

SELECT o.channel, AVG(i.unit_price) AS avg_price, COUNT(*) AS lines
FROM orders o
JOIN order_items i
  ON i.order_id = o.order_id
 AND i.customer_id = o.customer_id
WHERE o.status = 'completed'
GROUP BY o.channel
ORDER BY lines DESC;

--: refused syntax
SELECT customer_id, SUM(total) AS spend
FROM orders
GROUP BY customer_id
ORDER BY spend DESC
LIMIT 10;

SELECT AVG(DATEDIFF('day', c.signup_date, f.first_order)) AS avg_days
FROM customers c
JOIN (SELECT customer_id, CAST(MIN(ordered_at) AS DATE) AS first_order FROM orders GROUP BY customer_id) f
  ON f.customer_id = c.customer_id
WHERE c.signup_date < DATE '2024-01-01';
