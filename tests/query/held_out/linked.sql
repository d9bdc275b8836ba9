--= zhxchd/pac test/sql/pac_cte.test, pac_topk.test
WITH order_amounts AS (
    SELECT o_custkey, l_extendedprice, l_discount
    FROM lineitem
    JOIN orders ON lineitem.o_orderkey = orders.o_orderkey
)
SELECT SUM(l_extendedprice * (1 - l_discount)) FROM order_amounts;

WITH c_orders AS (
    SELECT
        c_custkey,
        COUNT(o_orderkey) AS c_count
    FROM
        customer
    LEFT OUTER JOIN orders ON
        c_custkey = o_custkey
        AND o_comment NOT LIKE '%urgent%'
    GROUP BY
        c_custkey
)
SELECT
    c_count,
    COUNT(*) AS custdist
FROM c_orders
GROUP BY
    c_count
ORDER BY
    custdist DESC,
    c_count DESC;

WITH supplier_revenue AS (
    SELECT s_suppkey, s_name, s_nationkey
    FROM supplier
),
customer_orders AS (
    SELECT c_custkey, o_orderkey
    FROM customer JOIN orders ON c_custkey = o_custkey
)
SELECT
    (SELECT COUNT(*) FROM supplier_revenue) AS supplier_count,
    (SELECT COUNT(*) FROM customer_orders) AS order_count;

WITH cust_base AS (
    SELECT c_custkey, c_nationkey FROM customer
),
cust_nation AS (
    SELECT c_custkey, n_name
    FROM cust_base JOIN nation ON c_nationkey = n_nationkey
)
SELECT COUNT(*) FROM cust_nation;

SELECT
        n_name,
        COUNT(*) AS order_count
    FROM
        orders,
        customer,
        nation
    WHERE
        o_custkey = c_custkey
        AND c_nationkey = n_nationkey
    GROUP BY
        n_name
    ORDER BY
        order_count DESC
    LIMIT 2

SELECT t.c_nationkey, t.total_price, n_name
    FROM (
        SELECT c_nationkey, SUM(l_extendedprice) AS total_price
        FROM customer, orders, lineitem
        WHERE c_custkey = o_custkey AND lineitem.o_orderkey = orders.o_orderkey
        GROUP BY c_nationkey
        ORDER BY total_price DESC
        LIMIT 3
    ) t
    JOIN nation ON t.c_nationkey = n_nationkey

WITH supplier_totals AS (
    SELECT
        l_suppkey,
        SUM(l_extendedprice * (1 - l_discount)) AS total_revenue
    FROM lineitem
    JOIN orders ON lineitem.o_orderkey = orders.o_orderkey
    GROUP BY l_suppkey
)
SELECT l_suppkey
FROM supplier_totals
WHERE total_revenue > 5000

--= duckdb community extension pac.md
SELECT l_returnflag, l_linestatus, SUM(l_extendedprice) FROM lineitem GROUP BY ALL;

--= zhxchd/pac test/sql/pac_cte.test, pac_topk.test
--: refused syntax
WITH cust_orders AS (
    SELECT c_custkey, COUNT(o_orderkey) AS order_count
    FROM customer
    LEFT JOIN orders ON c_custkey = o_custkey
    GROUP BY c_custkey
)
SELECT COUNT(*)
FROM cust_orders
WHERE order_count > (SELECT AVG(order_count) FROM cust_orders);
