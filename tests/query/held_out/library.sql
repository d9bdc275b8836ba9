SELECT education_level, COUNT(*) FROM members GROUP BY education_level

SELECT education_level, gender, AVG(books_borrowed) FROM members WHERE age >= 18 GROUP BY education_level, gender HAVING COUNT(*) > 10

SELECT CAST(FLOOR(age / 10) * 10 AS INTEGER) AS age_binned, AVG(books_borrowed) AS books FROM members GROUP BY age_binned ORDER BY age_binned

SELECT YEAR(date_joined) AS joined, COUNT(*) AS n FROM members GROUP BY joined ORDER BY joined

SELECT genre, COUNT(DISTINCT member_id) AS readers FROM checkouts GROUP BY genre ORDER BY readers DESC

SELECT b.author, COUNT(*) AS n FROM checkouts c JOIN books b USING (isbn) GROUP BY b.author

SELECT b.author, AVG(b.price) AS price FROM checkouts AS c INNER JOIN books AS b ON c.isbn = b.isbn GROUP BY b.author

SELECT b.price, COUNT(*) AS n FROM checkouts c JOIN books b ON c.isbn = b.isbn GROUP BY b.price ORDER BY b.price

SELECT b.title, COUNT(*) AS n FROM checkouts c JOIN books b ON c.isbn = b.isbn GROUP BY b.title ORDER BY n DESC, title LIMIT 3

SELECT COUNT(*) FROM checkouts c JOIN books b ON c.isbn = b.isbn WHERE YEAR(c.checkout_date) - b.publication_year > 20

SELECT m.gender, AVG(t.n) AS mean FROM members m JOIN (SELECT member_id, COUNT(*) AS n FROM checkouts GROUP BY member_id) t ON t.member_id = m.id GROUP BY m.gender

SELECT AVG(n) FROM (SELECT member_id, COUNT(DISTINCT genre) AS n FROM checkouts GROUP BY member_id)

SELECT n, COUNT(*) AS members FROM (SELECT member_id, COUNT(*) AS n FROM checkouts GROUP BY member_id) GROUP BY n ORDER BY n

WITH first_loan AS (SELECT member_id, MIN(checkout_date) AS first_date FROM checkouts GROUP BY member_id) SELECT EXTRACT(MONTH FROM first_date) AS month, COUNT(*) AS new_readers FROM first_loan GROUP BY month ORDER BY month

SELECT COUNT(*) FROM members WHERE id IN (SELECT member_id FROM checkouts WHERE genre = 'Mystery') AND id NOT IN (SELECT member_id FROM checkouts WHERE genre = 'Romance')

SELECT m.education_level, COUNT(DISTINCT c.member_id) AS active FROM members m LEFT JOIN checkouts c ON m.id = c.member_id GROUP BY m.education_level

SELECT DATE_TRUNC('month', checkout_date) AS m, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY DATE_TRUNC('month', checkout_date)) AS total FROM checkouts GROUP BY m ORDER BY m

SELECT genre, COUNT(*) FILTER (WHERE days_kept > 21) * 1.0 / COUNT(*) AS late_share FROM checkouts GROUP BY genre

SELECT genre, APPROX_COUNT_DISTINCT(isbn) FROM checkouts GROUP BY genre

SELECT DAYNAME(checkout_date) AS d, COUNT(*) FROM checkouts GROUP BY d

--: about
SELECT gender, QUANTILE_CONT(age, 0.25), QUANTILE_CONT(age, 0.75) FROM members GROUP BY gender

SELECT COUNT(*) FROM members WHERE age > (SELECT AVG(price) FROM books)

--: delta
SELECT zip_code, COUNT(*) AS n FROM members GROUP BY zip_code ORDER BY n DESC, zip_code

SELECT INITCAP(gender) AS g, COUNT(*) FROM members GROUP BY g
--~ SELECT UPPER(gender[1]) || LOWER(gender[2:]) AS g, COUNT(*) FROM members GROUP BY g

--: refused unknown-name
SELECT gender, STRING_AGG(zip_code, ',') FROM members GROUP BY gender

SELECT LEFT(zip_code, 3) AS area, COUNT(*) FROM members WHERE LEFT(zip_code, 3) IN ('275','277') GROUP BY area

SELECT m.gender, c.genre, COUNT(*) AS n FROM members m JOIN checkouts c ON m.id = c.member_id GROUP BY ROLLUP (m.gender, c.genre)

SELECT AVG(DATE_DIFF('day', m.date_joined, c.checkout_date)) AS lag FROM members m JOIN checkouts c ON c.member_id = m.id

SELECT COUNT(*) FROM checkouts c WHERE c.days_kept > (SELECT AVG(d.days_kept) FROM checkouts d WHERE d.member_id = c.member_id)

SELECT COUNT(*) FROM checkouts c WHERE c.checkout_date = (SELECT MIN(d.checkout_date) FROM checkouts d WHERE d.member_id = c.member_id)

SELECT genre, COUNT(*) AS n FROM checkouts WHERE MONTH(checkout_date) IN (6, 7, 8) GROUP BY genre ORDER BY n DESC LIMIT 2

SELECT age_group, SUM(books_borrowed) FROM (SELECT books_borrowed, CASE WHEN age < 18 THEN 'minor' ELSE 'adult' END AS age_group FROM members) GROUP BY age_group

--: about
SELECT gender, COUNT(*) AS n, AVG(age) AS mean_age, STDDEV_SAMP(age) AS sd, MIN(age) AS lo, MAX(age) AS hi FROM members GROUP BY gender

SELECT genre, SUM(days_kept) AS total_days, SUM(days_kept) * 100.0 / SUM(SUM(days_kept)) OVER () AS share FROM checkouts GROUP BY genre ORDER BY share DESC

SELECT m.gender, COUNT(*) FILTER (WHERE c.genre = 'Mystery') AS mystery, COUNT(*) FILTER (WHERE c.genre = 'Romance') AS romance FROM members m JOIN checkouts c ON m.id = c.member_id GROUP BY m.gender

SELECT COUNT(DISTINCT member_id) FROM checkouts WHERE checkout_date BETWEEN '2021-03-01' AND '2021-05-31'

SELECT CASE WHEN n >= 3 THEN 'heavy' ELSE 'light' END AS kind, AVG(age) AS age FROM (SELECT m.age, t.n FROM members m JOIN (SELECT member_id, COUNT(*) AS n FROM checkouts GROUP BY member_id) t ON t.member_id = m.id) GROUP BY kind

SELECT education_level FROM members GROUP BY education_level HAVING COUNT(*) > 30 ORDER BY education_level

SELECT author, COUNT(DISTINCT member_id) AS readers FROM checkouts NATURAL JOIN books GROUP BY author ORDER BY readers DESC

SELECT YEAR(date_joined) AS y, MONTH(date_joined) AS m, COUNT(*) AS n FROM members GROUP BY 1, 2 HAVING COUNT(*) > 2 ORDER BY 1, 2

SELECT COUNT(*) * 1.0 / COUNT(DISTINCT member_id) AS loans_per_member FROM checkouts

SELECT age / 10 * 10 AS decade, COUNT(*) AS n FROM members GROUP BY 1 HAVING n > 0 ORDER BY 1

SELECT COUNT(*) FROM members WHERE EXTRACT(DOW FROM date_joined) IN (0, 6)

SELECT gender, CORR(age, books_borrowed) AS r FROM members GROUP BY gender

SELECT genre, isbn, COUNT(*) AS n FROM checkouts GROUP BY genre, isbn QUALIFY RANK() OVER (PARTITION BY genre ORDER BY COUNT(*) DESC) = 1

WITH monthly AS (SELECT DATE_TRUNC('month', checkout_date) AS m, COUNT(*) AS n FROM checkouts GROUP BY 1) SELECT AVG(n) AS mean, MAX(n) AS peak FROM monthly

SELECT COUNT(*) FROM checkouts c JOIN members m ON m.id = c.member_id WHERE c.checkout_date < m.date_joined

SELECT m.gender, AVG(CASE WHEN c.genre = 'History' THEN 1.0 ELSE 0 END) AS history_share FROM checkouts c JOIN members m ON m.id = c.member_id GROUP BY m.gender

SELECT COALESCE(gender, 'unknown') AS g, COUNT(*) FROM members GROUP BY g

SELECT SUM(books_borrowed) FROM members WHERE education_level LIKE '%degree'

SELECT LENGTH(gender) AS l, COUNT(*) FROM members GROUP BY l

SELECT COUNT(*) FROM (SELECT DISTINCT member_id FROM checkouts WHERE genre = 'Mystery') a JOIN (SELECT DISTINCT member_id FROM checkouts WHERE genre = 'Sci-Fi') b ON a.member_id = b.member_id

SELECT k, COUNT(*) AS members FROM (SELECT m.id, COUNT(c.isbn) AS k FROM members m LEFT JOIN checkouts c ON c.member_id = m.id AND c.genre = 'History' GROUP BY m.id) GROUP BY k ORDER BY k

SELECT genre, AVG(days_kept) AS a FROM checkouts GROUP BY genre HAVING AVG(days_kept) > (SELECT AVG(days_kept) FROM checkouts)

SELECT gender, COUNT(*) FROM members GROUP BY gender ORDER BY COUNT(*) DESC FETCH FIRST 1 ROW ONLY

--: about
SELECT APPROX_QUANTILES(age, 4) AS q FROM members
--~ SELECT [MIN(age), QUANTILE_CONT(age, 0.25), QUANTILE_CONT(age, 0.5), QUANTILE_CONT(age, 0.75), MAX(age)] FROM members

--: refused syntax
SELECT ANY_VALUE(gender) FROM members

SELECT IFNULL(SUM(days_kept), 0) AS s FROM checkouts WHERE genre = 'Mystery'

--: refused syntax
SELECT m.id, COUNT(*) FROM members m JOIN checkouts c ON m.id = c.member_id GROUP BY m.id

SELECT gender, education_level, COUNT(*) AS total FROM members WHERE age BETWEEN 18 AND 65 GROUP BY gender, education_level

SELECT AVG(LEAST(books_borrowed, 20)) AS typical_books FROM members WHERE education_level <> 'up-to-high-school'

SELECT m.gender, AVG(c.days_kept) AS avg_days FROM checkouts c INNER JOIN members m ON m.id = c.member_id WHERE m.age < 40 GROUP BY m.gender

SELECT b.author, COUNT(*) AS loans, SUM(b.price) AS value FROM checkouts JOIN books b USING (isbn) GROUP BY b.author ORDER BY loans DESC

SELECT genre, QUARTER(checkout_date) AS q, COUNT(DISTINCT member_id) AS readers FROM checkouts GROUP BY genre, q ORDER BY genre, q

--: delta
SELECT zip_code, COUNT(*) AS members FROM members GROUP BY zip_code HAVING COUNT(*) >= 20 ORDER BY members DESC

SELECT COUNT(*) AS lapsed FROM members m LEFT JOIN checkouts c ON m.id = c.member_id AND c.checkout_date >= DATE '2021-10-01' WHERE c.member_id IS NULL

SELECT AVG(n) AS books_per_member FROM (SELECT member_id, COUNT(DISTINCT isbn) AS n FROM checkouts GROUP BY member_id) AS t

SELECT COUNT(*) AS rereads FROM checkouts c WHERE EXISTS (SELECT 1 FROM checkouts e WHERE e.member_id = c.member_id AND e.isbn = c.isbn AND e.checkout_date < c.checkout_date)

SELECT COUNT(*) AS quick_returns FROM checkouts c WHERE EXISTS (SELECT 1 FROM checkouts e WHERE e.member_id = c.member_id AND e.checkout_date > c.checkout_date AND e.checkout_date <= c.checkout_date + INTERVAL 30 DAY)

SELECT DATE_TRUNC('year', date_joined) AS joined, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY DATE_TRUNC('year', date_joined)) AS members_so_far FROM members WHERE date_joined < '2022-01-01' GROUP BY joined ORDER BY joined

SELECT COUNT(*) FROM checkouts WHERE isbn NOT IN (SELECT isbn FROM books WHERE publication_year < 1995)

--: about
SELECT gender, COUNT(*) AS n, MIN(date_joined) AS first FROM members GROUP BY gender
--~ SELECT gender, COUNT(*) AS n, MIN(date_joined) FROM members GROUP BY gender

SELECT b.author, COUNT(*) AS loans, COUNT(DISTINCT c.member_id) AS readers FROM checkouts c JOIN books b ON c.isbn = b.isbn GROUP BY b.author

SELECT m.gender, COUNT(DISTINCT m.id) AS members, COUNT(DISTINCT c.member_id) AS active FROM members m LEFT JOIN checkouts c ON m.id = c.member_id AND c.checkout_date >= DATE '2021-07-01' GROUP BY m.gender

SELECT COUNT(*) FROM members WHERE id IN (SELECT member_id FROM checkouts WHERE genre = 'History') AND age < 30

SELECT COUNT(*) FROM members m WHERE (SELECT COUNT(DISTINCT genre) FROM checkouts c WHERE c.member_id = m.id) >= 3

SELECT genre, AVG(days_kept) AS kept FROM checkouts WHERE isbn IN (SELECT isbn FROM books WHERE publication_year >= 2000) GROUP BY genre

SELECT DATE_TRUNC('month', checkout_date) AS m, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY DATE_TRUNC('month', checkout_date)) AS running FROM checkouts GROUP BY 1 ORDER BY 1

SELECT DAYOFWEEK(checkout_date) AS wd, COUNT(*) AS n FROM checkouts GROUP BY wd

--: about
WITH per AS (SELECT member_id, SUM(days_kept) AS total FROM checkouts GROUP BY member_id) SELECT COUNT(*) AS n, AVG(total) AS mean, MAX(total) AS longest FROM per
--~ WITH per AS (SELECT member_id, SUM(days_kept) AS total FROM checkouts GROUP BY member_id) SELECT COUNT(*) AS n, AVG(total) AS mean, MAX(total) AS longest FROM per

SELECT education_level, COUNT(*) AS n FROM members WHERE NOT EXISTS (SELECT 1 FROM checkouts WHERE member_id = id AND genre IN ('Romance', 'Mystery')) GROUP BY education_level

SELECT COUNT(*) FROM checkouts c1 WHERE EXISTS (SELECT 1 FROM checkouts c2 WHERE c2.member_id = c1.member_id AND c2.checkout_date > c1.checkout_date AND c2.checkout_date <= c1.checkout_date + INTERVAL 30 DAY)

--: delta
SELECT zip_code, COUNT(*) AS n FROM members GROUP BY zip_code

SELECT gender, education_level, COUNT(*) AS n FROM members GROUP BY CUBE (gender, education_level)

SELECT COUNT(*) FROM members m JOIN checkouts c ON m.id = c.member_id WHERE c.checkout_date - m.date_joined > 365

SELECT SUM(b.price) AS value, AVG(b.price) AS mean FROM checkouts NATURAL JOIN books b

SELECT AVG(n) FROM (SELECT m.id, COUNT(c.member_id) AS n FROM members m LEFT JOIN checkouts c ON c.member_id = m.id AND c.genre = 'Sci-Fi' GROUP BY m.id) AS t
