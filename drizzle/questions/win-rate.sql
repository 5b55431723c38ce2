-- What is our win rate, by number and by amount, by pipeline and by owner?
--
-- Parameters:
--   period   of the close dates
--
-- won and lost of those that are won or lost; the deals of an owner include renewals. Amounts are in the currency of
-- reports (reporting.currency, reporting.rates in the settings); without_amount counts deals that no amount includes.
-- outcome_unknown counts deals of which nothing says whether they are won, or whether they are closed: where they are
-- many, the rates say little. Deals without a close date are not counted.
WITH parameters AS (SELECT 'last 365 days' AS period),
closed AS (
  SELECT d.*
  FROM parameters
  JOIN period_days p USING (period)
  JOIN deals d ON d.close_date = p.day
  WHERE d.outcome <> 'open'
),
parts AS (
  SELECT 'pipeline' AS part, pipeline AS name, pipeline_id AS id, outcome, amount_reporting AS amount FROM closed
  UNION ALL SELECT 'owner', owner, owner_id, outcome, amount_reporting FROM closed
)
SELECT part, name, count(CASE WHEN outcome = 'won' THEN 1 END) AS won, count(CASE WHEN outcome = 'lost' THEN 1 END) AS lost,
  round(1e2 * avg(CASE outcome WHEN 'won' THEN 1 WHEN 'lost' THEN 0 END), 1) AS win_percent,
  sum(CASE WHEN outcome = 'won' THEN amount END) AS won_amount, sum(CASE WHEN outcome = 'lost' THEN amount END) AS lost_amount,
  round(1e2 * sum(CASE WHEN outcome = 'won' THEN amount ELSE 0 END)
    / nullif(sum(CASE WHEN outcome IN ('won', 'lost') THEN amount END), 0), 1) AS win_percent_by_amount,
  count(CASE WHEN outcome IN ('won', 'lost') AND amount IS NULL THEN 1 END) AS without_amount,
  count(CASE WHEN outcome IN ('closed', 'unknown') THEN 1 END) AS outcome_unknown, id
FROM parts
GROUP BY part, name, id
ORDER BY part DESC, count(CASE WHEN outcome IN ('won', 'lost') THEN 1 END) DESC, id NULLS LAST;
