-- How long do we take to win a deal, and how long to lose one?
--
-- Parameters:
--   period   of the close dates
--
-- Days from the creation of the deal to its close date. without_time counts deals whose creation is not known, or comes
-- after the close date. closed is a deal of which nothing says whether it is won. Renewals are included;
-- deals of which nothing says whether they are closed are left out.
WITH parameters AS (SELECT 'last 365 days' AS period),
closed AS (
  SELECT d.outcome, CASE WHEN d.days_to_close >= 0 THEN d.days_to_close END AS days
  FROM parameters
  JOIN period_days p USING (period)
  JOIN deals d ON d.close_date = p.day
  WHERE d.outcome IN ('won', 'lost', 'closed')
),
placed AS (
  SELECT closed.*, count(days) OVER (PARTITION BY outcome) AS timed,
    row_number() OVER (PARTITION BY outcome ORDER BY days NULLS LAST) AS place
  FROM closed
)
SELECT outcome, count(*) AS deals,
  avg(CASE WHEN 2 * place BETWEEN timed AND timed + 2 THEN days END) AS median_days, round(avg(days), 1) AS mean_days,
  count(*) - count(days) AS without_time
FROM placed
GROUP BY outcome
ORDER BY outcome DESC;
