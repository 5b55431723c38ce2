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
  JOIN periods p USING (period)
  JOIN deals d ON d.close_date >= p.from_day AND d.close_date < p.to_day
  WHERE d.outcome <> 'open'
),
parts AS (
  SELECT 'pipeline' AS part, pipeline AS name, pipeline_id AS id, outcome, amount_reporting AS amount FROM closed
  UNION ALL SELECT 'owner', owner, owner_id, outcome, amount_reporting FROM closed
),
sums AS (
  SELECT part, name, id, count(CASE WHEN outcome = 'won' THEN 1 END) AS won,
    count(CASE WHEN outcome = 'lost' THEN 1 END) AS lost, sum(CASE WHEN outcome = 'won' THEN amount END) AS won_amount,
    sum(CASE WHEN outcome = 'lost' THEN amount END) AS lost_amount,
    count(CASE WHEN outcome IN ('won', 'lost') AND amount IS NULL THEN 1 END) AS without_amount,
    count(CASE WHEN outcome IN ('closed', 'unknown') THEN 1 END) AS outcome_unknown
  FROM parts
  GROUP BY part, name, id
)
SELECT part, name, won, lost, round(1e2 * won / nullif(won + lost, 0), 1) AS win_percent, won_amount, lost_amount,
  round(1e2 * coalesce(won_amount, 0) / nullif(coalesce(won_amount, 0) + coalesce(lost_amount, 0), 0), 1)
    AS win_percent_by_amount, without_amount, outcome_unknown, id
FROM sums
ORDER BY part DESC, won + lost DESC, id NULLS LAST;
