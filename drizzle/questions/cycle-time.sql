-- How long do we take to win a deal, and how long to lose one?
--
-- Parameters:
--   period   of the close dates
--
-- Days from the creation of the deal to its close date. without_time counts deals whose creation is not known, or comes
-- after the close date. closed is a deal of which nothing says whether it is won. Renewals are included;
-- deals of which nothing says whether they are closed are left out.
WITH parameters AS (SELECT 'last 365 days' AS period),
placed AS (
  SELECT d.outcome, d.days_to_close AS days, count(d.days_to_close) OVER (PARTITION BY d.outcome) AS timed,
    row_number() OVER (PARTITION BY d.outcome ORDER BY d.days_to_close NULLS LAST) AS place
  FROM parameters
  JOIN period_days p USING (period)
  JOIN deals d ON d.close_date = p.day AND d.outcome IN ('won', 'lost', 'closed')
)
SELECT outcome, count(*) AS deals,
  avg(CASE WHEN 2 * place BETWEEN timed AND timed + 2 THEN days END) AS median_days, round(avg(days), 1) AS mean_days,
  count(*) - count(days) AS without_time
FROM placed
GROUP BY outcome
ORDER BY outcome DESC;
