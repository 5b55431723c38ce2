-- What do we commit to this quarter, and what did the last one bring?
--
-- Parameters:
--   category   the forecast category that means a commitment
--
-- won: won deals with a close date in the fiscal quarter. committed: open deals in the category with one; those of the
-- last quarter have slipped. Amounts are in the currency of reports; without_amount counts deals that no
-- amount includes. committed_without_date counts those without a close date, and outcome_unknown deals in the category of
-- which nothing says whether they are open: both may be of either quarter.
WITH parameters AS (SELECT 'Commit' AS category),
counted AS (
  SELECT p.period, p.from_day, k.day, d.close_date, d.amount_reporting AS amount,
    CASE WHEN d.outcome = 'won' OR d.forecast_category = q.category THEN d.outcome END AS outcome
  FROM parameters q
  CROSS JOIN periods p
  CROSS JOIN deals d
  LEFT JOIN period_days k ON k.period = p.period AND k.day = d.close_date
  WHERE p.period IN ('last fiscal quarter', 'this fiscal quarter')
)
SELECT period, from_day, count(CASE WHEN outcome = 'won' THEN day END) AS won,
  sum(CASE WHEN outcome = 'won' AND day IS NOT NULL THEN amount END) AS won_amount,
  count(CASE WHEN outcome = 'open' THEN day END) AS committed,
  sum(CASE WHEN outcome = 'open' AND day IS NOT NULL THEN amount END) AS committed_amount,
  count(CASE WHEN outcome IN ('won', 'open') AND amount IS NULL THEN day END) AS without_amount,
  count(CASE WHEN outcome = 'open' AND close_date IS NULL THEN 1 END) AS committed_without_date,
  count(CASE WHEN outcome = 'unknown' THEN 1 END) AS outcome_unknown
FROM counted
GROUP BY period, from_day
ORDER BY from_day;
