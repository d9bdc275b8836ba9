--= uvm-plaid/chorus ElasticSensitivityAnalysisTest.scala
SELECT COUNT(ROUND(order_date, 1)) FROM orders

SELECT order_date, COUNT(*) FROM orders GROUP BY 1

SELECT COUNT(*)
      FROM orders JOIN recommendations ON orders.customer_id = recommendations.customer_id
      WHERE orders.product_id = 1

WITH t1 AS
        (SELECT * FROM orders JOIN customers ON orders.customer_id = customers.customer_id)
      SELECT COUNT(*) FROM t1 JOIN orders ON t1.order_id = orders.order_id

--: refused syntax
WITH t1 AS (SELECT ROUND(customer_id, 1) as customer_id FROM customers)
      SELECT COUNT(*) FROM recommendations JOIN t1 ON recommendations.customer_id = t1.customer_id

--: refused syntax
SELECT COUNT(*) FROM orders, customers

--= uvm-plaid/chorus HistogramAnalysisTest.scala
SELECT order_date+1 as bin, COUNT(*) FROM orders GROUP BY bin

SELECT product_id, ROUND(COUNT(*), 0) FROM orders GROUP BY 1

--: refused syntax, missing: questions about public tables alone
SELECT (AVG(price) / COUNT(*)) as "result" FROM products

--= uvm-plaid/chorus MechanismExamples.scala
SELECT SUM(order_cost) FROM orders WHERE product_id = 1
