SELECT subject, term, AVG(score) AS avg_score
FROM test_scores
GROUP BY subject, term
ORDER BY subject, term;

select grade_level, avg(gpa) gpa, count(*) students from students group by grade_level order by grade_level

SELECT s.faculty,
       AVG(CASE WHEN t.score >= s.pass_mark THEN 1.0 ELSE 0.0 END) AS pass_rate
FROM test_scores t
JOIN subjects s ON s.subject = t.subject
WHERE t.score IS NOT NULL
GROUP BY s.faculty;

SELECT AVG(sp.score - fa.score) AS mean_gain
FROM test_scores fa
JOIN test_scores sp
  ON sp.student_id = fa.student_id AND sp.subject = fa.subject
WHERE fa.term = 'fall' AND sp.term = 'spring' AND fa.subject = 'math';

SELECT s.borough, COUNT(*) AS chronically_absent
FROM students s
WHERE (SELECT COUNT(*) FROM absences a WHERE a.student_id = s.student_id) >= 5
GROUP BY s.borough
ORDER BY s.borough;

SELECT FLOOR(score / 10) * 10 AS bin, COUNT(*) AS freq
FROM test_scores
WHERE subject = 'math' AND score BETWEEN 40 AND 99
GROUP BY bin
ORDER BY bin;

SELECT DAYNAME(day) AS weekday, COUNT(*) AS absences, SUM(hours_missed) AS hours
FROM absences
WHERE reason <> 'other'
GROUP BY DAYNAME(day)
ORDER BY absences DESC;

SELECT NVL(club, 'no club') AS club_name, ROUND(AVG(gpa), 2) AS avg_gpa, COUNT(*) AS members
FROM students
GROUP BY NVL(club, 'no club')
HAVING COUNT(*) >= 30
ORDER BY members DESC;
--~ SELECT COALESCE(club, 'no club') AS club_name, ROUND(AVG(gpa), 2) AS avg_gpa, COUNT(*) AS members
--~ FROM students
--~ GROUP BY COALESCE(club, 'no club')
--~ HAVING COUNT(*) >= 30
--~ ORDER BY members DESC

--: refused unknown-name
SELECT STRING_AGG(s.name, ', ' ORDER BY s.name) AS failing
FROM students s
JOIN test_scores t USING (student_id)
WHERE t.subject = 'math' AND t.term = 'spring' AND t.score < 40;

--: refused syntax, missing: a comparison with an average over everybody
SELECT gender, COUNT(*) AS above_mean
FROM students
WHERE gpa > (SELECT AVG(gpa) FROM students)
GROUP BY gender
ORDER BY gender;
