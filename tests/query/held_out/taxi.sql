SELECT COUNT(*) AS total_trips, ROUND(AVG(trip_distance), 2) AS avg_distance, ROUND(AVG(total_amount), 2) AS avg_total FROM trips

SELECT EXTRACT(HOUR FROM tpep_pickup_datetime) AS hour, COUNT(*) AS trip_count, AVG(total_amount) AS avg_fare FROM trips GROUP BY hour ORDER BY hour

SELECT DAYNAME(tpep_pickup_datetime) AS day_name, DAYOFWEEK(tpep_pickup_datetime) AS day_num, COUNT(*) AS n FROM trips GROUP BY day_name, day_num HAVING n > 0 ORDER BY day_num

--: refused bounds
SELECT payment_type, AVG(tip_amount / fare_amount) * 100 AS tip_pct FROM trips WHERE fare_amount > 0 GROUP BY payment_type

SELECT payment_type, AVG(tip_amount / fare_amount) * 100 AS tip_pct FROM trips WHERE fare_amount >= 1 GROUP BY payment_type

SELECT payment_type, SUM(tip_amount) / SUM(fare_amount) AS tip_pct FROM trips GROUP BY payment_type

SELECT CASE payment_type WHEN 1 THEN 'Credit card' WHEN 2 THEN 'Cash' ELSE 'Other' END AS method, COUNT(*) AS n FROM trips GROUP BY method ORDER BY n DESC

SELECT passenger_count, AVG(total_amount) FROM trips WHERE passenger_count > 0 GROUP BY passenger_count ORDER BY passenger_count

SELECT z.Borough, COUNT(*) AS pickups, SUM(t.total_amount) AS revenue FROM trips t JOIN zones z ON t.PULocationID = z.LocationID GROUP BY z.Borough ORDER BY pickups DESC

SELECT z.Zone, COUNT(*) AS n FROM trips t LEFT JOIN zones z ON t.PULocationID = z.LocationID GROUP BY z.Zone ORDER BY n DESC LIMIT 5

SELECT AVG(DATE_DIFF('minute', tpep_pickup_datetime, tpep_dropoff_datetime)) AS minutes FROM trips

SELECT AVG(EXTRACT(EPOCH FROM (tpep_dropoff_datetime - tpep_pickup_datetime)) / 60) AS minutes FROM trips

SELECT AVG(trip_distance / (DATE_DIFF('minute', tpep_pickup_datetime, tpep_dropoff_datetime) / 60.0)) AS mph FROM trips WHERE DATE_DIFF('minute', tpep_pickup_datetime, tpep_dropoff_datetime) > 1

SELECT CAST(tpep_pickup_datetime AS DATE) AS day, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY CAST(tpep_pickup_datetime AS DATE)) AS running FROM trips GROUP BY 1 ORDER BY 1

SELECT date_trunc('day', tpep_pickup_datetime) AS day, AVG(COUNT(*)) OVER (ORDER BY date_trunc('day', tpep_pickup_datetime) ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week_avg FROM trips GROUP BY 1 ORDER BY 1

SELECT ROUND(trip_distance) AS miles, COUNT(*) AS n FROM trips WHERE trip_distance < 10 GROUP BY miles HAVING n > 0 ORDER BY miles

SELECT CASE WHEN EXTRACT(HOUR FROM tpep_pickup_datetime) BETWEEN 7 AND 9 THEN 'morning' WHEN EXTRACT(HOUR FROM tpep_pickup_datetime) BETWEEN 16 AND 19 THEN 'evening' ELSE 'off-peak' END AS period, AVG(fare_amount) FROM trips GROUP BY period

SELECT VendorID, COUNT(*) FILTER (WHERE tip_amount = 0) AS no_tip, COUNT(*) AS n FROM trips GROUP BY VendorID

--: about
SELECT QUANTILE_CONT(fare_amount, [0.25, 0.5, 0.75]) FROM trips

--: about
SELECT MEDIAN(trip_distance) FROM trips WHERE payment_type = 1

SELECT CORR(trip_distance, fare_amount) FROM trips

SELECT COUNT(*) FROM trips WHERE tpep_pickup_datetime::date = DATE '2023-01-15'

--: refused syntax, missing: the type TIME
SELECT COUNT(*) FROM trips WHERE tpep_pickup_datetime::time > TIME '18:00:00'

SELECT z.Borough, EXTRACT(HOUR FROM t.tpep_pickup_datetime) AS h, COUNT(*) AS n FROM trips t, zones z WHERE z.LocationID = t.PULocationID AND z.Borough IN ('Queens','Bronx') GROUP BY 1, 2 HAVING COUNT(*) > 2 ORDER BY n DESC, 1, 2

SELECT PULocationID, RANK() OVER (ORDER BY SUM(total_amount) DESC) AS rnk, SUM(total_amount) AS s FROM trips GROUP BY PULocationID ORDER BY rnk

SELECT COUNT(DISTINCT rider_id) AS riders, COUNT(*) * 1.0 / COUNT(DISTINCT rider_id) AS trips_per_rider FROM trips

SELECT n_trips, COUNT(*) AS riders FROM (SELECT rider_id, COUNT(*) AS n_trips FROM trips GROUP BY rider_id) GROUP BY n_trips ORDER BY n_trips

--: about
SELECT MAX(total_amount), MIN(total_amount) FROM trips

SELECT VendorID, payment_type, COUNT(*) FROM trips GROUP BY GROUPING SETS ((VendorID), (payment_type), ())

SELECT to_char(tpep_pickup_datetime, 'YYYY-MM-DD') AS d, COUNT(*) FROM trips GROUP BY d
--~ SELECT STRFTIME(tpep_pickup_datetime, '%Y-%m-%d') AS d, COUNT(*) FROM trips GROUP BY d

SELECT EXTRACT(ISODOW FROM tpep_pickup_datetime) IN (6, 7) AS weekend, AVG(tip_amount) FROM trips GROUP BY weekend

SELECT APPROX_COUNT_DISTINCT(PULocationID) FROM trips

SELECT VendorID, AVG(tip_amount / NULLIF(fare_amount, 0)) AS tip_share FROM trips WHERE payment_type = 1 AND fare_amount > 5 GROUP BY VendorID

SELECT EXTRACT(HOUR FROM tpep_pickup_datetime) AS h, COUNT(*) AS trips FROM trips WHERE EXTRACT(DOW FROM tpep_pickup_datetime) IN (0, 6) GROUP BY h ORDER BY h

SELECT AVG(DATE_DIFF('minute', tpep_pickup_datetime, tpep_dropoff_datetime)) AS minutes FROM trips WHERE trip_distance > 1

SELECT AVG(EXTRACT(EPOCH FROM (tpep_dropoff_datetime - tpep_pickup_datetime)) / 60) AS avg_minutes FROM trips

SELECT z.Borough, passenger_count, COUNT(*) AS n FROM trips t JOIN zones z ON t.PULocationID = z.LocationID GROUP BY z.Borough, passenger_count HAVING COUNT(*) > 0

SELECT PULocationID, SUM(total_amount) AS revenue, RANK() OVER (ORDER BY SUM(total_amount) DESC) AS place FROM trips GROUP BY PULocationID

SELECT COUNT(*) AS airport FROM trips WHERE PULocationID = (SELECT LocationID FROM zones WHERE Zone = 'JFK')

SELECT payment_type, COUNT(*) AS n, AVG(trip_distance) AS miles, SUM(fare_amount + tip_amount) AS gross FROM trips WHERE tpep_pickup_datetime BETWEEN '2023-01-10' AND '2023-01-20' GROUP BY payment_type

SELECT COUNT(*) AS long_for_rider FROM trips t WHERE t.trip_distance > (SELECT AVG(o.trip_distance) FROM trips o WHERE o.rider_id = t.rider_id)

SELECT COUNT(*) AS top_fares FROM trips t WHERE t.fare_amount = (SELECT MAX(o.fare_amount) FROM trips o WHERE o.rider_id = t.rider_id)

SELECT COUNT(*) AS top_fares FROM trips t JOIN (SELECT rider_id, MAX(fare_amount) AS top FROM trips GROUP BY rider_id) m ON m.rider_id = t.rider_id WHERE t.fare_amount = m.top

SELECT DATE(tpep_pickup_datetime) AS day, COUNT(DISTINCT rider_id) AS riders FROM trips GROUP BY DATE(tpep_pickup_datetime) ORDER BY day LIMIT 7

SELECT payment_type, SUM(tip_amount) / SUM(fare_amount) AS tip_rate FROM trips GROUP BY payment_type

SELECT DATE_DIFF('minute', tpep_pickup_datetime, tpep_dropoff_datetime) >= 30 AS long_trip, COUNT(*) AS n FROM trips GROUP BY 1

SELECT CAST(tpep_pickup_datetime AS DATE) AS day, SUM(total_amount) AS rev, AVG(SUM(total_amount)) OVER (ORDER BY CAST(tpep_pickup_datetime AS DATE) ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS avg7 FROM trips GROUP BY 1 ORDER BY 1

SELECT WIDTH_BUCKET(trip_distance, 0, 20, 4) AS b, COUNT(*) AS n FROM trips GROUP BY b
--~ SELECT CASE WHEN trip_distance >= 20 THEN 5 ELSE CAST(FLOOR(trip_distance/5) AS INT)+1 END AS b, COUNT(*) FROM trips GROUP BY b

SELECT AVG(EPOCH(tpep_dropoff_datetime) - EPOCH(tpep_pickup_datetime)) / 60 AS minutes FROM trips

--: about
SELECT VendorID, CORR(trip_distance, fare_amount) AS r, REGR_SLOPE(fare_amount, trip_distance) AS b FROM trips GROUP BY VendorID

SELECT HOUR(tpep_pickup_datetime) BETWEEN 7 AND 9 AS rush, COUNT(*) AS n FROM trips WHERE PULocationID IN (SELECT LocationID FROM zones WHERE Borough = 'Manhattan') GROUP BY rush
