--= opendp/tumult-analytics doc/tutorials/groupby-queries.rst
SELECT age, COUNT(id)
   FROM members
   WHERE age >= 80
   GROUP BY age

--= opendp/tumult-analytics doc/tutorials/simple-transformations.rst (as SQL)
SELECT CAST(age - age % 10 AS VARCHAR) || '-' || CAST(age - age % 10 + 9 AS VARCHAR) AS binned_age, gender, COUNT(*) AS count
FROM members GROUP BY binned_age, gender

SELECT City, COUNT(*) AS "count" FROM members JOIN nc_zip USING (zip_code) GROUP BY City ORDER BY "count" DESC LIMIT 10

--= OpenMined/PipelineDP examples/movie_view_ratings (as SQL)
SELECT movie_id, COUNT(*) AS count, SUM(rating) AS sum, AVG(rating) AS mean, VARIANCE(rating) AS variance, COUNT(DISTINCT user_id) AS privacy_id_count
FROM movie_view GROUP BY movie_id ORDER BY movie_id

--= IBM/differential-privacy-library docs: histogram, as SQL
SELECT WIDTH_BUCKET(age, 0, 100, 10) AS bin, COUNT(*) FROM members GROUP BY bin ORDER BY bin
--~ SELECT CASE WHEN age >= 100 THEN 11 ELSE CAST(FLOOR(age / 10) AS INT) + 1 END AS bin, COUNT(*) FROM members GROUP BY bin ORDER BY bin

--= docs.opendp.org tabular data, quantiles (as SQL)
SELECT quantile_cont(books_borrowed, [0.25, 0.5, 0.75]) FROM members WHERE books_borrowed <> 0

--= duckdb.org docs sql/aggregates
SELECT sum(amount), sum(amount) FILTER (region != 'north') FROM sales;

SELECT region FROM sales GROUP BY region HAVING sum(amount) > 100;

SELECT count(DISTINCT region) FROM sales;

--= motherduck.com glossary rollup, cube, filter-clause
SELECT region, city, SUM(amount) AS total_revenue
FROM sales
GROUP BY ROLLUP (region, city);

SELECT region, product, SUM(amount) AS total_revenue
FROM sales
GROUP BY CUBE (region, product);

SELECT
  region,
  COUNT(*) AS total_orders,
  COUNT(*) FILTER (WHERE status = 'completed') AS completed_orders,
  SUM(amount) FILTER (WHERE channel = 'online') AS online_revenue
FROM sales
GROUP BY region;

--= duckdb.org front page
-- Get the top-3 busiest train stations
SELECT
station_name,
count(*) AS num_services
FROM train_services
GROUP BY ALL
ORDER BY num_services DESC
LIMIT 3;

--= SQLite/DuckDB taxi tutorial (voagi.com)
SELECT hour_of_day, COUNT(1) as num_trips, ROUND(3600 * SUM(distance) / SUM(trip_seconds), 2) as avg_speed FROM ( SELECT CAST(STRFTIME('%H', pickup_datetime) AS INT) AS hour_of_day, trip_seconds, distance FROM taxi WHERE pickup_datetime > '2016-01-01' AND pickup_datetime < '2016-04-01' ORDER BY hour_of_day) GROUP BY hour_of_day ORDER BY hour_of_day;

--= PostgreSQL manual queries.sgml
SELECT product_id, p.name, (sum(s.units) * p.price) AS sales
    FROM catalogue p LEFT JOIN units s USING (product_id)
    GROUP BY product_id, p.name, p.price;

--= adswerve.com GA4 BigQuery guide
SELECT count(distinct user_pseudo_id) FROM analytics_1234.event_20221201
--~ SELECT count(distinct user_pseudo_id) FROM event_20221201
