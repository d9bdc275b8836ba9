SELECT COUNT(*) AS rides, COUNT(DISTINCT rider_id) AS riders FROM rides;

SELECT r.pass_type, ROUND(AVG(t.fare), 2) AS avg_fare, SUM(t.fare) AS revenue
FROM rides t JOIN riders r ON r.rider_id = t.rider_id
GROUP BY r.pass_type
ORDER BY revenue DESC;

SELECT origin, COUNT(*) AS boardings
FROM rides
GROUP BY origin
ORDER BY boardings DESC
LIMIT 3;

SELECT date_part('hour', tap_in) AS hr, COUNT(*) AS c
FROM rides
WHERE date_part('hour', tap_in) BETWEEN 6 AND 10
GROUP BY hr
ORDER BY hr;

SELECT CASE WHEN (HOUR(tap_in) BETWEEN 7 AND 9 OR HOUR(tap_in) BETWEEN 16 AND 18)
             AND ISODOW(tap_in) <= 5 THEN 'peak' ELSE 'off-peak' END AS period,
       COUNT(*) AS rides,
       AVG(distance_km) AS km
FROM rides
GROUP BY period;

SELECT line, AVG(TIMESTAMPDIFF(MINUTE, tap_in, tap_out)) AS avg_minutes
FROM rides
WHERE tap_out IS NOT NULL
GROUP BY line;
--~ SELECT line, AVG(date_sub('minute', tap_in, tap_out)) AS avg_minutes
--~ FROM rides
--~ WHERE tap_out IS NOT NULL
--~ GROUP BY line

SELECT COUNT(*) - COUNT(tap_out) AS missing_tap_out,
       (COUNT(*) - COUNT(tap_out)) / COUNT(*)::float AS share
FROM rides;

SELECT so.zone AS from_zone, sd.zone AS to_zone, COUNT(*) AS rides
FROM rides r
JOIN stations so ON so.station = r.origin
JOIN stations sd ON sd.station = r.destination
GROUP BY so.zone, sd.zone
HAVING COUNT(*) > 350
ORDER BY from_zone, to_zone;

SELECT s.step_free, COUNT(*) AS boardings, COUNT(DISTINCT r.rider_id) AS people
FROM rides r LEFT JOIN stations s ON r.origin = s.station
GROUP BY s.step_free;

SELECT CAST(tap_in AS DATE) AS day, COUNT(*) AS rides
FROM rides
WHERE tap_in >= TIMESTAMP '2025-05-05 00:00:00'
  AND tap_in <  TIMESTAMP '2025-05-12 00:00:00'
GROUP BY CAST(tap_in AS DATE)
ORDER BY day;

SELECT DATE_TRUNC('week', tap_in) AS wk, COUNT(*) AS rides, SUM(fare) AS revenue
FROM rides
WHERE tap_in >= '2025-03-03' AND tap_in < '2025-05-26'
GROUP BY wk
ORDER BY wk;

SELECT CASE WHEN n.rides >= 10 THEN 'frequent' ELSE 'occasional' END AS rider_group,
       AVG(s.rating) AS mean_rating,
       COUNT(*) AS answers
FROM survey s
JOIN (SELECT rider_id, COUNT(*) AS rides FROM rides GROUP BY rider_id) n
  ON n.rider_id = s.rider_id
GROUP BY 1;

SELECT COUNT(*) AS crowded_comments
FROM survey
WHERE LOWER(comment) LIKE '%crowd%' OR comment ILIKE '%late%';

SELECT rating,
       COUNT(*) AS n,
       COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS pct
FROM survey
GROUP BY rating
ORDER BY rating;

SELECT AVG(daily_riders) AS avg_daily_riders
FROM (
  SELECT CAST(tap_in AS DATE) AS d, COUNT(DISTINCT rider_id) AS daily_riders
  FROM rides
  WHERE tap_in < '2025-04-01'
  GROUP BY 1
) x;

SELECT origin,
       COUNT(*) FILTER (WHERE line = 'red')   AS red,
       COUNT(*) FILTER (WHERE line = 'blue')  AS blue,
       COUNT(*) FILTER (WHERE line = 'green') AS green
FROM rides
GROUP BY ALL
ORDER BY origin;

SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 50, delta = 0.00001, privacy_unit_column = rider_id)
  pass_type,
  COUNT(*) AS people,
  AVG(age, contribution_bounds_per_group => (5, 95)) AS mean_age
FROM riders
WHERE age IS NOT NULL
GROUP BY pass_type
--~ SELECT pass_type, COUNT(*) AS people, AVG(age) AS mean_age
--~ FROM riders
--~ WHERE age IS NOT NULL
--~ GROUP BY pass_type

WITH per_line AS (
  SELECT line, destination, COUNT(*) AS rides
  FROM rides
  GROUP BY line, destination
), r AS (
  SELECT line, destination, rides,
         DENSE_RANK() OVER (PARTITION BY line ORDER BY rides DESC) AS rk
  FROM per_line
)
SELECT line, destination, rides FROM r WHERE rk <= 2 ORDER BY line, rk;

--: refused syntax
SELECT tap_in, origin, destination, fare
FROM rides
WHERE rider_id = 'R0042'
ORDER BY tap_in;
