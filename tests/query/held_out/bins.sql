--= diffix/pg_diffix test/sql/validation.sql, noisy.sql
SELECT COUNT(*) FROM test_customers
  GROUP BY substring(city, 1, 1);

SELECT city, COUNT(DISTINCT id) FROM test_customers GROUP BY 1;

SELECT 2 * length(city) FROM test_customers GROUP BY city;

SELECT city FROM test_customers GROUP BY 1 HAVING length(city) <> 4;

SELECT COUNT(city)
FROM (
  SELECT city FROM test_customers
  GROUP BY 1
) x;

SELECT COUNT(*), COUNT(x.city), COUNT(DISTINCT x.user_id)
FROM (
  SELECT y.city as city, y.id as user_id
  FROM ( SELECT * FROM test_customers ) y
) x;

SELECT COUNT(c.city), COUNT(p.name) FROM test_customers c
  LEFT JOIN test_purchases ON c.id = cid
  LEFT JOIN test_products p ON pid = p.id;

SELECT COUNT(*) FROM test_customers GROUP BY city || 'xxx';

--: refused syntax, missing: CUBE of keys alone
SELECT city FROM test_customers GROUP BY CUBE ((city));
--~ SELECT city FROM test_customers GROUP BY CUBE (city)

SELECT COUNT(*) FROM test_customers GROUP BY round(discount), ceil(discount), ceiling(discount), floor(discount);
