SELECT l_returnflag, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base, SUM(l_extendedprice * (1 - l_discount)) AS sum_disc, AVG(l_quantity) AS avg_qty, COUNT(*) AS n FROM lineitem WHERE l_shipdate <= DATE '1996-12-01' - INTERVAL '90' DAY GROUP BY l_returnflag ORDER BY l_returnflag

SELECT o_orderpriority, COUNT(*) AS order_count FROM orders WHERE o_orderdate >= DATE '1995-07-01' AND o_orderdate < DATE '1995-07-01' + INTERVAL '3' MONTH AND EXISTS (SELECT * FROM lineitem WHERE lineitem.o_orderkey = orders.o_orderkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority ORDER BY o_orderpriority

SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM customer, orders, lineitem, nation WHERE c_custkey = o_custkey AND lineitem.o_orderkey = orders.o_orderkey AND c_nationkey = n_nationkey AND n_region = 'EUROPE' GROUP BY n_name ORDER BY revenue DESC

SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= DATE '1995-06-01' AND l_shipdate < DATE '1996-06-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24

SELECT l_shipmode, SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high, SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low FROM orders JOIN lineitem ON orders.o_orderkey = lineitem.o_orderkey WHERE l_shipmode IN ('AIR','RAIL') AND l_commitdate < l_receiptdate GROUP BY l_shipmode ORDER BY l_shipmode

SELECT c_count, COUNT(*) AS custdist FROM (SELECT c_custkey, COUNT(o_orderkey) AS c_count FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_orderpriority <> '5-LOW' GROUP BY c_custkey) AS c_orders GROUP BY c_count ORDER BY custdist DESC, c_count DESC

SELECT 100.00 * SUM(CASE WHEN l_shipmode = 'AIR' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) / SUM(l_extendedprice * (1 - l_discount)) AS promo FROM lineitem

SELECT EXTRACT(YEAR FROM o_orderdate) AS o_year, SUM(o_totalprice) AS total FROM orders GROUP BY o_year ORDER BY o_year

SELECT COUNT(*) FROM customer WHERE c_acctbal > 0 AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey AND o_orderstatus = 'P')

SELECT AVG(l_quantity) FROM lineitem l JOIN orders o USING (o_orderkey) WHERE o.o_orderstatus = 'F'

SELECT o_orderstatus, AVG(n) FROM (SELECT o.o_custkey, o.o_orderkey, o.o_orderstatus, COUNT(*) AS n FROM orders o JOIN lineitem l ON o.o_orderkey = l.o_orderkey GROUP BY o.o_custkey, o.o_orderkey, o.o_orderstatus) t GROUP BY o_orderstatus

SELECT COUNT(*) FROM orders o WHERE (SELECT SUM(l_quantity) FROM lineitem l WHERE l.o_orderkey = o.o_orderkey) > 60

SELECT COUNT(*) FROM lineitem l WHERE l.l_quantity < (SELECT 0.5 * AVG(x.l_quantity) FROM lineitem x WHERE x.o_orderkey = l.o_orderkey)

SELECT COUNT(*) FROM lineitem l1 WHERE l1.l_receiptdate > l1.l_commitdate AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.o_orderkey = l1.o_orderkey AND l2.l_linenumber <> l1.l_linenumber)

SELECT c_mktsegment, COUNT(DISTINCT c_custkey) AS buyers, SUM(o_totalprice) AS spent, SUM(o_totalprice) / COUNT(DISTINCT c_custkey) AS per_buyer FROM customer JOIN orders ON o_custkey = c_custkey GROUP BY c_mktsegment

WITH big AS (SELECT o_custkey FROM orders GROUP BY o_custkey HAVING SUM(o_totalprice) > 6000) SELECT c_mktsegment, COUNT(*) FROM customer WHERE c_custkey IN (SELECT o_custkey FROM big) GROUP BY c_mktsegment

SELECT n.n_region, COUNT(*) AS customers, AVG(c.c_acctbal) AS bal FROM customer c INNER JOIN nation n ON n.n_nationkey = c.c_nationkey GROUP BY n.n_region HAVING COUNT(*) > 20

SELECT DATE_TRUNC('quarter', o_orderdate) AS q, SUM(o_totalprice) AS rev, SUM(o_totalprice) - LAG(SUM(o_totalprice)) OVER (ORDER BY DATE_TRUNC('quarter', o_orderdate)) AS delta FROM orders GROUP BY q ORDER BY q

SELECT o_orderpriority, o_orderstatus, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY o_orderpriority) AS tot FROM orders GROUP BY 1, 2

SELECT CASE WHEN c_acctbal < 0 THEN 'neg' WHEN c_acctbal < 5000 THEN 'mid' ELSE 'rich' END AS tier, COUNT(*) AS n, ROUND(AVG(c_acctbal), 2) AS mean FROM customer GROUP BY tier ORDER BY n DESC

SELECT COUNT(*) FILTER (WHERE first_year = 1995) AS y95, COUNT(*) FILTER (WHERE first_year = 1996) AS y96 FROM (SELECT o_custkey, YEAR(MIN(o_orderdate)) AS first_year FROM orders GROUP BY o_custkey)

SELECT DATE_DIFF('day', MIN_D, MAX_D) > 100 AS long, COUNT(*) FROM (SELECT o_custkey, MIN(o_orderdate) AS MIN_D, MAX(o_orderdate) AS MAX_D FROM orders GROUP BY o_custkey) GROUP BY 1

SELECT AVG(gap) FROM (SELECT o_custkey, MAX(o_totalprice) - MIN(o_totalprice) AS gap FROM orders GROUP BY o_custkey HAVING COUNT(*) > 1)

--: about
SELECT o_orderstatus, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY o_totalprice) AS med FROM orders GROUP BY o_orderstatus

SELECT COUNT(*) FROM orders WHERE o_custkey IN (SELECT c_custkey FROM customer WHERE c_mktsegment = 'AUTO') AND YEAR(o_orderdate) = 1995

SELECT SUM(o_totalprice * 0.19) AS tax, SUM(o_totalprice) * 1.19 AS gross FROM orders

SELECT o_orderstatus AS s, COUNT(*) AS n FROM orders GROUP BY s UNION ALL SELECT 'all', COUNT(*) FROM orders

SELECT COUNT(*) FROM customer c LEFT JOIN orders o ON o.o_custkey = c.c_custkey WHERE o.o_orderkey IS NULL

SELECT MONTHNAME(o_orderdate) AS month, COUNT(*) AS n FROM orders GROUP BY month, MONTH(o_orderdate) ORDER BY MONTH(o_orderdate)

SELECT c_nationkey, RANK() OVER (ORDER BY SUM(o_totalprice) DESC) AS r FROM customer JOIN orders ON o_custkey = c_custkey GROUP BY c_nationkey ORDER BY r

SELECT l_returnflag, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS base, SUM(l_extendedprice * (1 - l_discount)) AS disc, AVG(l_quantity), COUNT(*) FROM lineitem WHERE l_shipdate <= DATE '1996-09-01' - INTERVAL '60' DAY GROUP BY l_returnflag ORDER BY l_returnflag

SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem WHERE l_shipdate >= DATE '1995-06-01' AND l_shipdate < DATE '1995-06-01' + INTERVAL '1' YEAR AND l_discount BETWEEN 0.03 AND 0.07 AND l_quantity < 24

SELECT n_name, SUM(o_totalprice) AS total FROM customer, orders, nation WHERE c_custkey = o_custkey AND c_nationkey = n_nationkey AND n_region = 'EUROPE' GROUP BY n_name ORDER BY total DESC

SELECT l_shipmode, SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count FROM orders JOIN lineitem USING (o_orderkey) WHERE l_commitdate < l_receiptdate AND l_shipdate < l_commitdate GROUP BY l_shipmode ORDER BY l_shipmode

SELECT c_count, COUNT(*) AS custdist FROM (SELECT c_custkey, COUNT(o_orderkey) AS c_count FROM customer LEFT OUTER JOIN orders ON c_custkey = o_custkey AND o_orderstatus <> 'P' GROUP BY c_custkey) AS c_orders GROUP BY c_count ORDER BY custdist DESC, c_count DESC

SELECT COUNT(*) FROM customer WHERE c_acctbal > 5000 AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey AND o_orderstatus = 'O')

SELECT o_orderpriority, COUNT(*) AS order_count FROM orders WHERE EXISTS (SELECT * FROM lineitem WHERE lineitem.o_orderkey = orders.o_orderkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority ORDER BY o_orderpriority

SELECT COUNT(*) AS big_orders FROM orders WHERE o_orderkey IN (SELECT o_orderkey FROM lineitem GROUP BY o_orderkey HAVING SUM(l_quantity) > 60)

SELECT COUNT(*) AS unshipped FROM orders WHERE o_orderkey NOT IN (SELECT o_orderkey FROM lineitem WHERE l_shipmode = 'AIR')

SELECT EXTRACT(YEAR FROM o_orderdate) AS o_year, SUM(CASE WHEN n_name = 'BRAZIL' THEN o_totalprice ELSE 0 END) / SUM(o_totalprice) AS mkt_share FROM orders JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey GROUP BY o_year ORDER BY o_year

SELECT COUNT(*) FROM lineitem l WHERE l.l_quantity < (SELECT 0.5 * AVG(m.l_quantity) FROM lineitem m WHERE m.o_orderkey = l.o_orderkey)

SELECT AVG(gap) AS days_to_next FROM (SELECT o_custkey, DATE_DIFF('day', MIN(o_orderdate), MAX(o_orderdate)) AS gap FROM orders GROUP BY o_custkey HAVING COUNT(*) > 1) AS g

SELECT SUM(l_extendedprice) AS s FROM lineitem WHERE o_orderkey IN (SELECT o_orderkey FROM orders WHERE o_orderpriority = '1-URGENT')

SELECT c_mktsegment, COUNT(DISTINCT o_orderkey) AS orders, COUNT(DISTINCT c_custkey) AS customers FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_orderdate >= DATE '1996-01-01' GROUP BY c_mktsegment

--: delta
SELECT n_name, COUNT(*) AS c FROM customer, nation WHERE c_nationkey = n_nationkey AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey AND o_totalprice > 3000) GROUP BY n_name

SELECT l_shipmode, SUM(l_quantity) FROM lineitem JOIN orders USING (o_orderkey) JOIN customer ON o_custkey = c_custkey WHERE c_mktsegment = 'AUTO' AND l_shipdate > o_orderdate + 90 GROUP BY l_shipmode

SELECT COUNT(*) FROM orders o WHERE o_totalprice > (SELECT 1.2 * AVG(o2.o_totalprice) FROM orders o2 WHERE o2.o_custkey = o.o_custkey)

SELECT COUNT(*) FROM orders o WHERE o_totalprice IN (SELECT p.o_totalprice + 0 FROM orders p WHERE p.o_custkey = o.o_custkey AND p.o_orderstatus = 'F')

SELECT EXTRACT(QUARTER FROM o_orderdate) AS q, o_orderstatus, COUNT(*) AS n FROM orders GROUP BY GROUPING SETS ((q, o_orderstatus), (q), ())
--~ SELECT EXTRACT(QUARTER FROM o_orderdate) AS q, o_orderstatus, COUNT(*) AS n FROM orders GROUP BY GROUPING SETS ((EXTRACT(QUARTER FROM o_orderdate), o_orderstatus), (EXTRACT(QUARTER FROM o_orderdate)), ())
