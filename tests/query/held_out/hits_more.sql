--= ClickHouse/ClickBench duckdb/queries.sql (stored version; thresholds scaled to the table)
SELECT EXTRACT(HOUR FROM EventTime) AS h, COUNT(*), COUNT(DISTINCT UserID) FROM hits GROUP BY h ORDER BY h;

SELECT TraficSourceID, COUNT(*) FILTER (WHERE IsMobile = 1) AS m, COUNT(*) FILTER (WHERE IsMobile = 0) AS d, COUNT(DISTINCT UserID) AS u FROM hits GROUP BY TraficSourceID ORDER BY u DESC LIMIT 25;

SELECT RegionID, COUNT(DISTINCT UserID) FILTER (WHERE IsMobile = 1) AS m_users, COUNT(DISTINCT UserID) FILTER (WHERE IsMobile = 0) AS d_users FROM hits GROUP BY RegionID ORDER BY m_users + d_users DESC LIMIT 25;

SELECT OS, RegionID, COUNT(*) AS c, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY OS) AS pct FROM hits GROUP BY OS, RegionID HAVING COUNT(*) > 10 ORDER BY OS, c DESC;

SELECT EventDate, RegionID, COUNT(*) AS c, ROW_NUMBER() OVER (PARTITION BY EventDate ORDER BY COUNT(*) DESC) AS rn FROM hits GROUP BY EventDate, RegionID QUALIFY rn <= 5 ORDER BY EventDate, rn;

WITH heavy_users AS (SELECT UserID FROM hits GROUP BY UserID HAVING COUNT(*) > 3) SELECT COUNT(*) FROM heavy_users;

WITH t AS (SELECT EventDate, COUNT(DISTINCT UserID) AS c FROM hits GROUP BY EventDate) SELECT EventDate, c, c - LAG(c) OVER (ORDER BY EventDate) AS diff FROM t ORDER BY EventDate;

SELECT COUNT(*) FROM hits WHERE UserID IN (SELECT UserID FROM hits WHERE SearchPhrase <> '' GROUP BY UserID HAVING COUNT(*) > 2);

SELECT URLHash % 100 AS bucket, COUNT(*), COUNT(DISTINCT UserID) FROM hits GROUP BY bucket ORDER BY bucket;

--: refused unknown-name, missing: REGEXP_REPLACE
SELECT REGEXP_REPLACE(URL, '^https?://([^/]+).*', '\1') AS host, COUNT(*) AS c FROM hits WHERE URL <> '' GROUP BY host ORDER BY c DESC LIMIT 25;

--: refused bounds, missing: the declared length of a text
SELECT EventDate, AVG(LENGTH(URL)), AVG(LENGTH(Title)), COUNT(DISTINCT UserID) FROM hits WHERE URL <> '' GROUP BY EventDate ORDER BY EventDate;

SELECT EventDate, COUNT(*) FILTER (WHERE Title LIKE '%news%') AS news, COUNT(*) FILTER (WHERE Title LIKE '%sport%') AS sport, COUNT(*) FILTER (WHERE Title LIKE '%video%') AS video FROM hits GROUP BY EventDate ORDER BY EventDate;

--: refused syntax
SELECT URL FROM hits WHERE URL LIKE '%news%' ORDER BY EventTime DESC LIMIT 25;
