SELECT COUNT(*), COUNT(DISTINCT UserID), COUNT(DISTINCT URL) FROM hits WHERE Title LIKE '%news%' OR Title LIKE '%sport%' OR Title LIKE '%video%';

SELECT COUNT(*) FROM hits WHERE URL LIKE '%http%' AND Title NOT LIKE '%error%';

SELECT COUNT(DISTINCT URL), COUNT(DISTINCT Title), COUNT(DISTINCT SearchPhrase) FROM hits;

--: refused bounds, missing: the declared length of a text
SELECT BrowserCountry, MIN(LENGTH(URL)), MAX(LENGTH(URL)), AVG(LENGTH(URL)), COUNT(DISTINCT URL) FROM hits WHERE URL <> '' GROUP BY BrowserCountry ORDER BY 5 DESC LIMIT 25;

--: delta
SELECT BrowserCountry, COUNT(*), COUNT(DISTINCT UserID) FROM hits WHERE BrowserCountry <> '' GROUP BY BrowserCountry ORDER BY 2 DESC LIMIT 25;

SELECT ClientTimeZone, COUNT(*), AVG(ResolutionWidth), COUNT(DISTINCT UserID) FROM hits GROUP BY ClientTimeZone ORDER BY 2 DESC LIMIT 25;

SELECT RefererCategoryID, RegionID, COUNT(*), COUNT(DISTINCT UserID) FROM hits WHERE RefererCategoryID <> 0 GROUP BY RefererCategoryID, RegionID;

SELECT EventDate, COUNT(*), COUNT(DISTINCT UserID) FROM hits GROUP BY EventDate ORDER BY EventDate;

SELECT DATE_TRUNC('hour', EventTime) AS h, COUNT(*), COUNT(DISTINCT UserID) FROM hits GROUP BY h HAVING COUNT(*) > 0 ORDER BY h LIMIT 100;

SELECT EXTRACT(DOW FROM EventTime) AS d, COUNT(*), COUNT(DISTINCT UserID), COUNT(DISTINCT URL) FROM hits GROUP BY d ORDER BY d;

SELECT EventDate, AVG(SendTiming), AVG(DNSTiming), AVG(ConnectTiming), COUNT(DISTINCT UserID) FROM hits WHERE SendTiming > 0 GROUP BY EventDate ORDER BY EventDate;

SELECT EventDate, SUM(IsMobile) AS m, SUM(1 - IsMobile) AS d, SUM(IsRefresh) AS r, COUNT(DISTINCT UserID) AS u FROM hits GROUP BY EventDate ORDER BY EventDate;

--: refused unknown-name, missing: REGEXP_REPLACE
SELECT REGEXP_REPLACE(Referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS host, COUNT(DISTINCT UserID) AS u FROM hits WHERE Referer <> '' GROUP BY host HAVING COUNT(*) > 10 ORDER BY u DESC LIMIT 25;

--: delta
SELECT SUBSTRING(URL, 1, 12) AS prefix, COUNT(*), COUNT(DISTINCT UserID) FROM hits WHERE URL <> '' GROUP BY prefix ORDER BY 2 DESC LIMIT 25;

--: delta
SELECT BrowserCountry, COUNT(*) FROM hits WHERE Title <> '' AND POSITION('news' IN Title) > 0 GROUP BY BrowserCountry ORDER BY 2 DESC LIMIT 25;

--: delta
SELECT LENGTH(URL) AS l, COUNT(*), COUNT(DISTINCT UserID) FROM hits WHERE URL <> '' GROUP BY l HAVING COUNT(*) > 10 ORDER BY 2 DESC LIMIT 25;

SELECT RegionID, AVG(CASE WHEN AdvEngineID > 0 THEN 1.0 ELSE 0.0 END) AS adv_rate, COUNT(*) AS c, COUNT(DISTINCT UserID) AS u FROM hits GROUP BY RegionID HAVING COUNT(*) > 100 ORDER BY adv_rate DESC LIMIT 25;

SELECT OS, COUNT(*) FILTER (WHERE IsMobile = 1) AS m, COUNT(*) FILTER (WHERE IsMobile = 0) AS d, COUNT(DISTINCT UserID) AS u FROM hits GROUP BY OS ORDER BY m DESC LIMIT 25;

SELECT RegionID, COUNT(DISTINCT UserID) FILTER (WHERE IsMobile = 1) AS m_users, COUNT(DISTINCT UserID) FILTER (WHERE IsMobile = 0) AS d_users FROM hits GROUP BY RegionID ORDER BY m_users + d_users DESC, RegionID LIMIT 25;

SELECT CASE WHEN AdvEngineID = 0 AND SearchEngineID = 0 THEN 'organic' WHEN AdvEngineID > 0 THEN 'ad' ELSE 'search' END AS src, COUNT(*) AS c, COUNT(DISTINCT UserID) AS u FROM hits GROUP BY src ORDER BY c DESC;

--: refused bounds, missing: the declared length of a text
SELECT URL, AVG(LENGTH(Title)) AS at, COUNT(*) AS c FROM hits WHERE URL <> '' AND Title <> '' GROUP BY URL HAVING COUNT(*) > 10 ORDER BY at DESC LIMIT 25;

--: refused syntax
SELECT * FROM hits WHERE Title LIKE '%Google%' ORDER BY EventTime DESC LIMIT 10;

--: refused syntax
SELECT URL, EventTime FROM hits WHERE URL <> '' ORDER BY EventTime LIMIT 25 OFFSET 1000;

--: delta
SELECT DISTINCT URL FROM hits WHERE URL LIKE '%news%' ORDER BY URL LIMIT 100;

--: delta
SELECT DISTINCT BrowserCountry, BrowserLanguage FROM hits WHERE BrowserCountry <> '' ORDER BY BrowserCountry, BrowserLanguage LIMIT 100;

SELECT URLHash % 100 AS bucket, COUNT(*), COUNT(DISTINCT UserID) FROM hits GROUP BY bucket HAVING COUNT(*) > 0 ORDER BY bucket;

--: delta
SELECT FLOOR(ClientIP / 16777216) AS class_a, COUNT(*), COUNT(DISTINCT UserID) FROM hits GROUP BY class_a ORDER BY 2 DESC LIMIT 25;

SELECT FLOOR(LOG(GREATEST(ResolutionWidth, 1))) AS lw, COUNT(*), COUNT(DISTINCT UserID), AVG(ResolutionHeight) FROM hits GROUP BY lw ORDER BY lw;

--: delta
SELECT * FROM (SELECT URL, COUNT(*) AS c, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) AS rn FROM hits WHERE URL <> '' GROUP BY URL) t WHERE rn <= 25;

SELECT EventDate, COUNT(DISTINCT UserID) AS c, AVG(COUNT(DISTINCT UserID)) OVER (ORDER BY EventDate ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS ma3 FROM hits GROUP BY EventDate ORDER BY EventDate;

SELECT EventDate, RegionID, COUNT(*) AS c, ROW_NUMBER() OVER (PARTITION BY EventDate ORDER BY COUNT(*) DESC, RegionID) AS rn FROM hits GROUP BY EventDate, RegionID QUALIFY rn <= 5 ORDER BY EventDate, rn;

WITH heavy_users AS (SELECT UserID FROM hits GROUP BY UserID HAVING COUNT(*) > 5) SELECT COUNT(*) FROM heavy_users;

--: delta
WITH cnt AS (SELECT URL, COUNT(*) AS c FROM hits WHERE URL <> '' GROUP BY URL) SELECT MIN(c), MAX(c), AVG(c), COUNT(*) FROM cnt WHERE c > 10;

SELECT COUNT(*) FROM hits WHERE UserID IN (SELECT UserID FROM hits WHERE SearchPhrase <> '' GROUP BY UserID HAVING COUNT(*) > 3);

--: refused syntax
SELECT URL, COUNT(*) FROM hits WHERE URL IN (SELECT URL FROM hits WHERE Title LIKE '%news%' GROUP BY URL HAVING COUNT(*) > 100) GROUP BY URL ORDER BY 2 DESC LIMIT 25;

SELECT 'mobile' AS type, COUNT(*) AS c, COUNT(DISTINCT UserID) AS u FROM hits WHERE IsMobile = 1 UNION ALL SELECT 'desktop', COUNT(*), COUNT(DISTINCT UserID) FROM hits WHERE IsMobile = 0;

SELECT a.RegionID, a.mob, a.mob_users, b.desk, b.desk_users FROM (SELECT RegionID, COUNT(*) AS mob, COUNT(DISTINCT UserID) AS mob_users FROM hits WHERE IsMobile = 1 GROUP BY RegionID) a JOIN (SELECT RegionID, COUNT(*) AS desk, COUNT(DISTINCT UserID) AS desk_users FROM hits WHERE IsMobile = 0 GROUP BY RegionID) b ON a.RegionID = b.RegionID ORDER BY a.mob + b.desk DESC LIMIT 25;

SELECT DATE_TRUNC('week', EventDate) AS week, COUNT(*), COUNT(DISTINCT UserID) FROM hits GROUP BY week ORDER BY week;

SELECT OS, AVG(SendTiming + DNSTiming + ConnectTiming) AS total_ms, COUNT(*) AS c, COUNT(DISTINCT UserID) AS u FROM hits WHERE SendTiming > 0 GROUP BY OS HAVING COUNT(*) > 10 ORDER BY total_ms DESC LIMIT 25;

--: about
SELECT EventDate, MIN(EventTime), MAX(EventTime), COUNT(*), COUNT(DISTINCT UserID), COUNT(DISTINCT URL) FROM hits WHERE EventDate BETWEEN '2013-07-01' AND '2013-07-15' GROUP BY EventDate ORDER BY EventDate;

--: refused unknown-name, missing: REGEXP_REPLACE
SELECT REGEXP_REPLACE(SearchPhrase, '[0-9]+', 'N') AS k, COUNT(*) FROM hits WHERE SearchPhrase <> '' GROUP BY k ORDER BY 2 DESC LIMIT 25;
