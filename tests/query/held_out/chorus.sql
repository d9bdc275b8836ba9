SELECT COUNT(*) FROM orders WHERE product_id = 1

WITH t1 AS (SELECT * FROM orders) SELECT COUNT(*) FROM t1

WITH t1 AS (SELECT COUNT(*) FROM orders) SELECT * FROM t1

SELECT COUNT(DISTINCT order_id) FROM orders

--: refused syntax
SELECT customer_id, COUNT(*) FROM orders GROUP BY 1

SELECT CASE WHEN customer_id = 0 THEN 0 else 1 END, COUNT(*) FROM orders GROUP BY 1

SELECT COUNT(order_id)=100 FROM orders

SELECT COUNT(*) FROM orders, customers WHERE orders.customer_id = customers.customer_id AND orders.customer_id != 1

--: refused syntax
SELECT COUNT(*) FROM orders, customers WHERE orders.customer_id = orders.customer_id

--: refused syntax
SELECT COUNT(*) FROM orders, customers WHERE orders.customer_id = customers.customer_id OR orders.customer_id != 1

SELECT COUNT(*) FROM orders JOIN customers ON orders.customer_id = customers.customer_id AND customers.customer_id > 10

SELECT COUNT(*) FROM orders JOIN customers ON orders.customer_id > 10 AND customers.customer_id = orders.customer_id

SELECT COUNT(*) FROM orders JOIN customers ON orders.customer_id = customers.customer_id AND (orders.product_id = 1 OR customers.customer_id = 1)

SELECT COUNT(*) FROM orders JOIN customers ON (orders.product_id = 1 AND (customers.customer_id = 1 AND (orders.customer_id = customers.customer_id)))

SELECT COUNT(*) FROM orders JOIN customers ON (orders.product_id = customers.address) AND (orders.customer_id = customers.customer_id)

SELECT orders.product_id, COUNT(*) FROM orders JOIN recommendations ON orders.customer_id = recommendations.customer_id WHERE orders.product_id = 1 GROUP BY 1

WITH t1 AS ( SELECT orders.customer_id FROM orders JOIN products ON orders.product_id = products.product_id ) SELECT COUNT(*) FROM t1 JOIN recommendations ON t1.customer_id = recommendations.customer_id

SELECT COUNT(*) FROM orders o1 JOIN orders o2 ON o1.order_id = o2.order_id

SELECT COUNT(*) FROM orders o1 JOIN orders o2 ON o1.customer_id = o2.customer_id

WITH t1 AS (SELECT COUNT(*) as mycount FROM orders JOIN customers ON orders.customer_id = customers.customer_id) SELECT mycount FROM t1

--: refused syntax
SELECT name, order_date FROM orders JOIN customers ON orders.customer_id = customers.customer_id

--: refused syntax, missing: questions about public tables alone
WITH t1 AS (SELECT COUNT(*) as mycount from products) SELECT mycount/100 FROM t1

WITH t1 AS (SELECT product_id, COUNT(quantity) as avg_quantity from orders GROUP BY 1) SELECT ROUND(avg_quantity,1) FROM t1

WITH t1 AS (SELECT order_date, COUNT(*)+1 as num_orders_plus_one FROM orders GROUP BY 1) SELECT COUNT(order_date) FROM t1 WHERE num_orders_plus_one < 10
--~ WITH t1 AS (SELECT order_date, COUNT(*)+1 as n FROM orders GROUP BY 1) SELECT COUNT(order_date) FROM t1 WHERE n < 10

--: refused syntax
SELECT COUNT(*) FROM orders JOIN customers ON orders.order_id < customers.customer_id

--: refused syntax, missing: questions about public tables alone
SELECT COUNT(*) FROM products p1 JOIN products p2 ON p1.product_id = p2.product_id

WITH t1 AS (SELECT * from products WHERE product_id = 1) SELECT COUNT(*) FROM orders JOIN t1 ON orders.product_id = t1.product_id

--: refused syntax
WITH t1 AS (SELECT COUNT(*) as customer_id FROM orders) SELECT COUNT(*) from t1 JOIN recommendations ON t1.customer_id = recommendations.customer_id
