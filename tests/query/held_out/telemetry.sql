--= opendp/smartnoise-sdk sql/tests/query/queries/validate_pums/validate_pums.sql
SELECT COUNT(*), VAR(age) AS var_age FROM PUMS.PUMS;
--~ SELECT COUNT(*), VAR_SAMP(age) AS var_age FROM PUMS

--: delta
SELECT married, educ, income, AVG(age) FROM PUMS.PUMS GROUP BY married, educ, income;
--~ SELECT married, educ, income, AVG(age) FROM PUMS GROUP BY married, educ, income HAVING COUNT(*) > 1

SELECT COUNT(married), AVG(age) FROM PUMS.PUMS;
--~ SELECT COUNT(married), AVG(age) FROM PUMS

SELECT educ FROM PUMS.PUMS GROUP BY educ;
--~ SELECT educ FROM PUMS GROUP BY educ

SELECT SUM(age) * 1 AS age FROM PUMS.PUMS;
--~ SELECT SUM(age) * 1 AS age FROM PUMS

SELECT SUM(age) FROM PUMS.PUMS GROUP BY married, CASE WHEN age > 90 THEN 1 ELSE 0 END;
--~ SELECT SUM(age) FROM PUMS GROUP BY married, CASE WHEN age > 90 THEN 1 ELSE 0 END

--= opendp/smartnoise-sdk sql/tests/query/test_having_expressions.py
SELECT educ, COUNT(DISTINCT pid) AS n FROM pums GROUP BY educ HAVING n > 50

--= opendp/smartnoise-sdk sql/tests/query/test_order_by_expressions.py
--: ties
SELECT sex AS gender, educ FROM pums GROUP BY sex, educ ORDER by sex DESC

SELECT educ, COUNT(DISTINCT pid) AS n FROM pums GROUP BY educ ORDER by COUNT(pid) DESC

--= opendp/smartnoise-sdk sql/tests/query/test_top.py
SELECT TOP 20 age, married, COUNT(*) AS n, SUM(income) AS income FROM PUMS.PUMS GROUP BY age, married ORDER BY married, age DESC
--~ SELECT age, married, COUNT(*) AS n, SUM(income) AS income FROM PUMS GROUP BY age, married ORDER BY married, age DESC LIMIT 20

--: ties
SELECT age, married, COUNT(*) AS n, SUM(income) AS income FROM PUMS.PUMS GROUP BY age, married ORDER BY income DESC LIMIT 50
--~ SELECT age, married, COUNT(*) AS n, SUM(income) AS inc FROM PUMS GROUP BY age, married ORDER BY inc DESC LIMIT 50

--= opendp/smartnoise-sdk sql/tests/query/queries/compare/compare.sql
SELECT OEM, TrialGroup, COUNT(DeviceID) AS N, SUM(Crashes) FROM (
       SELECT Crashes, T.* FROM Telemetry.Crashes JOIN (
        SELECT DeviceID, OEM, TrialGroup FROM
         (Telemetry.Census JOIN Telemetry.Rollouts USING(DeviceID)) AS Q
             ) AS T USING(DeviceID)
      ) AS Z GROUP BY OEM, TrialGroup ORDER BY OEM, TrialGroup;
--~ SELECT OEM, TrialGroup, COUNT(*), SUM(c.Crashes) FROM Crashes c JOIN Census USING (DeviceID) JOIN Rollouts USING (DeviceID) GROUP BY ALL ORDER BY 1, 2

SELECT  TrialGroup, COUNT(DeviceID) AS N, AVG(Temperature) FROM (
       SELECT TC.*, T.TrialGroup, T.OEM FROM Telemetry.Crashes AS TC JOIN (
        SELECT DeviceID, OEM, TrialGroup FROM
         (Telemetry.Census JOIN Telemetry.Rollouts USING(DeviceID)) AS Q
             ) AS T USING(DeviceID)
      ) AS Z GROUP BY  TrialGroup ORDER BY  TrialGroup;
--~ SELECT TrialGroup, COUNT(*), AVG(Temperature) FROM Crashes c JOIN Census USING (DeviceID) JOIN Rollouts USING (DeviceID) GROUP BY ALL ORDER BY 1

SELECT OEM, AVG(Temperature) FROM Telemetry.Census JOIN Telemetry.Crashes USING(DeviceID) GROUP BY OEM ORDER BY OEM;
--~ SELECT OEM, AVG(Temperature) FROM Census JOIN Crashes USING(DeviceID) GROUP BY OEM ORDER BY OEM

SELECT SUM(Crashes), TrialGroup FROM Telemetry.Census JOIN Telemetry.Crashes USING(DeviceID) JOIN Telemetry.Rollouts USING(DeviceID) GROUP BY TrialGroup ORDER BY TrialGroup;
--~ SELECT SUM(c.Crashes), TrialGroup FROM Census JOIN Crashes c USING (DeviceID) JOIN Rollouts USING (DeviceID) GROUP BY TrialGroup ORDER BY TrialGroup

--= opendp/smartnoise-sdk sql/tests/query/queries/parse/expressions.sql
SELECT Building, SUM(Crashes) AS total_crash, AVG(Crashes) AS avg_crashes, AVG(Temperature) FROM Telemetry.Crashes WHERE Refurbished = TRUE GROUP BY Building;
--~ SELECT Building, SUM(c.Crashes), AVG(c.Crashes), AVG(Temperature) FROM Crashes c WHERE Refurbished GROUP BY Building

SELECT LOG2(COUNT(*)) FROM PUMS.PUMS;
--~ SELECT LOG2(COUNT(*)) FROM PUMS

--= opendp/smartnoise-sdk sql/tests/query/queries/validate_pums/validate_pums_fail.sql
SELECT SUM(Age + Income) FROM PUMS.PUMS;
--~ SELECT SUM(Age + Income) FROM PUMS

SELECT COUNT(*) FROM (SELECT * FROM PUMS.PUMS);
--~ SELECT COUNT(*) FROM (SELECT * FROM PUMS)

SELECT SUM(CASE WHEN age > 90 THEN 1 ELSE 0 END) AS age FROM PUMS.PUMS;
--~ SELECT SUM(CASE WHEN age > 90 THEN 1 ELSE 0 END) AS age FROM PUMS

--: refused syntax
SELECT a.pid, b.income FROM PUMS.PUMS AS a JOIN PUMS.PUMS AS b ON b.pid = a.pid;

--= opendp/smartnoise-samples data/README.md
SELECT AVG(Income) / AVG(Age) FROM PUMS GROUP BY married

--= opendp/smartnoise-sdk sql/tests/query/queries/parse/groupby.sql (names of PUMS)
SELECT sex, race, SUM(DISTINCT educ), AVG(income), COUNT(ALL married) FROM PUMS GROUP BY sex, race;
