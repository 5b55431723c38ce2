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
  SELECT d.*
  FROM parameters q
  JOIN deals d ON d.outcome = 'won' OR (d.outcome IN ('open', 'unknown') AND d.forecast_category = q.category)
)
SELECT p.period, p.from_day, coalesce(sum(c.won_deals), 0) AS won, sum(c.won_amount) AS won_amount,
  coalesce(sum(c.open_deals), 0) AS committed, sum(c.open_amount) AS committed_amount,
  coalesce(sum(c.won_deals + c.open_deals), 0) - count(c.won_amount) - count(c.open_amount) AS without_amount,
  (SELECT count(*) FROM counted WHERE outcome = 'open' AND close_date IS NULL) AS committed_without_date,
  (SELECT count(*) FROM counted WHERE outcome = 'unknown') AS outcome_unknown
FROM periods p
LEFT JOIN counted c ON c.close_date >= p.from_day AND c.close_date < p.to_day
WHERE p.period IN ('last fiscal quarter', 'this fiscal quarter')
GROUP BY p.period, p.from_day
ORDER BY p.from_day;
