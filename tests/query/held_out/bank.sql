SELECT COUNT(*) AS mortgage_clients FROM clients WHERE has_mortgage;

SELECT gender, AVG(income) AS mean_income, STDDEV_POP(income) AS sd_income
FROM clients
GROUP BY gender;

SELECT b.city, COUNT(*) AS clients
FROM clients c, branches b
WHERE c.branch_id = b.branch_id
GROUP BY b.city
ORDER BY clients DESC;

SELECT MEDIAN(income) AS median_income
FROM clients
WHERE occupation = 'Engineer';

SELECT merchant, -SUM(amount) AS spent, COUNT(*) AS payments
FROM transactions
WHERE kind = 'card'
GROUP BY merchant
ORDER BY merchant;

SELECT SUM(CASE WHEN amount > 0 THEN amount ELSE 0 END) AS credits,
       SUM(CASE WHEN amount < 0 THEN ABS(amount) ELSE 0 END) AS debits,
       SUM(amount) AS net
FROM transactions;

SELECT status, COUNT(*) AS loans, SUM(principal) AS book, AVG(rate) AS avg_rate
FROM loans
GROUP BY status
ORDER BY status;

SELECT SUM(principal * rate) / NULLIF(SUM(principal), 0) AS weighted_rate
FROM loans
WHERE status <> 'paid';

SELECT c.risk,
       COUNT(*) AS n_loans,
       AVG(CASE WHEN l.status = 'default' THEN 1 ELSE 0 END) AS default_rate
FROM loans l
JOIN clients c ON l.client_id = c.client_id
GROUP BY c.risk
ORDER BY default_rate DESC;

SELECT DATE_PART('year', issued) AS yr, COUNT(*) AS issued_loans
FROM loans
GROUP BY yr
ORDER BY yr;

SELECT TOP 2 b.region, COUNT(*) AS cnt
FROM clients AS c
INNER JOIN branches AS b ON b.branch_id = c.branch_id
GROUP BY b.region
ORDER BY cnt DESC;
--~ SELECT b.region, COUNT(*) AS cnt
--~ FROM clients AS c
--~ INNER JOIN branches AS b ON b.branch_id = c.branch_id
--~ GROUP BY b.region
--~ ORDER BY cnt DESC
--~ LIMIT 2

SELECT ISNULL(occupation, 'Unknown') AS occupation, COUNT(*) AS [number of clients]
FROM clients
GROUP BY ISNULL(occupation, 'Unknown')
ORDER BY 1;
--~ SELECT COALESCE(occupation, 'Unknown') AS occupation, COUNT(*) AS "number of clients"
--~ FROM clients
--~ GROUP BY 1
--~ ORDER BY 1

SELECT AVG(cnt) AS avg_tx, STDDEV(cnt) AS sd_tx
FROM (SELECT client_id, COUNT(*) AS cnt FROM transactions GROUP BY client_id) AS s;

WITH k AS (
    SELECT c.client_id, COUNT(l.client_id) AS loans
    FROM clients c LEFT JOIN loans l ON l.client_id = c.client_id
    GROUP BY c.client_id
)
SELECT loans, COUNT(*) AS clients
FROM k
GROUP BY loans
ORDER BY loans;

--: refused syntax, missing: ROW_NUMBER over the rows of each person
WITH ranked AS (
  SELECT client_id, kind, amount,
         ROW_NUMBER() OVER (PARTITION BY client_id ORDER BY posted_on DESC, amount) AS rn
  FROM transactions
)
SELECT kind, COUNT(*) AS clients_last_kind
FROM ranked
WHERE rn = 1
GROUP BY kind
ORDER BY kind;

SELECT YEAR(joined) AS join_year,
       COUNT(*) AS n,
       100.0 * COUNT(*) / (SELECT COUNT(*) FROM clients) AS pct_of_all
FROM clients
GROUP BY YEAR(joined)
ORDER BY join_year;

SELECT branch_id, risk, COUNT(*) AS n
FROM clients
GROUP BY GROUPING SETS ((branch_id), (risk), ())
ORDER BY branch_id, risk;

SELECT CONCAT('Q', QUARTER(posted_on)) AS qtr, COUNT(DISTINCT client_id) AS paid_clients
FROM transactions
WHERE kind = 'salary'
GROUP BY qtr
ORDER BY qtr;

SELECT COUNT(*) AS loan_without_salary
FROM (
  SELECT client_id FROM loans WHERE status IN ('current', 'late')
  EXCEPT
  SELECT client_id FROM transactions WHERE kind = 'salary'
) d;

--: about
SELECT APPROX_QUANTILE(income, 0.1) AS p10,
       APPROX_QUANTILE(income, 0.5) AS p50,
       APPROX_QUANTILE(income, 0.9) AS p90
FROM clients;
--~ SELECT quantile_cont(income, 0.1) AS p10, quantile_cont(income, 0.5) AS p50, quantile_cont(income, 0.9) AS p90
--~ FROM clients

SELECT REGR_SLOPE(rate, term_months) AS slope, COVAR_SAMP(rate, term_months) AS cov
FROM loans;

--: refused syntax
SELECT c.phone, l.principal
FROM clients c
JOIN loans l ON c.client_id = l.client_id
WHERE l.status = 'default';

SELECT CASE WHEN (2024 - EXTRACT(YEAR FROM dob)) < 30 THEN 'young'
            WHEN (2024 - EXTRACT(YEAR FROM dob)) < 60 THEN 'middle'
            ELSE 'older' END AS life_stage,
       AVG(has_mortgage::int) AS mortgage_share
FROM clients
GROUP BY life_stage;

WITH m AS (
  SELECT date_trunc('month', posted_on)::date AS mon, SUM(amount) AS net
  FROM transactions
  GROUP BY 1
)
SELECT mon, net,
       AVG(net) OVER (ORDER BY mon ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS ma3
FROM m
ORDER BY mon;

SELECT WITH ANONYMIZATION OPTIONS(epsilon=20, delta=1e-5, kappa=3)
  status,
  ANON_COUNT(*) AS n,
  ANON_SUM(principal CLAMPED BETWEEN 0 AND 150000) AS total_principal
FROM loans
GROUP BY status;
--~ SELECT status, COUNT(*) AS n, SUM(principal) AS total_principal
--~ FROM loans
--~ GROUP BY status
