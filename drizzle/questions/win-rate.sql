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
  JOIN deals d ON d.close_date = p.day AND d.outcome <> 'open'
),
parts AS (
  SELECT 'pipeline' AS part, pipeline AS name, pipeline_id AS id, closed.* FROM closed
  UNION ALL SELECT 'owner', owner, owner_id, closed.* FROM closed
)
SELECT part, name, sum(won_deals) AS won, sum(lost_deals) AS lost,
  round(1e2 * sum(won_deals) / nullif(sum(won_deals + lost_deals), 0), 1) AS win_percent,
  sum(won_amount) AS won_amount, sum(lost_amount) AS lost_amount,
  round(1e2 * sum(coalesce(won_amount, 0)) / nullif(sum(coalesce(won_amount, lost_amount)), 0), 1) AS win_percent_by_amount,
  sum(won_deals + lost_deals) - count(won_amount) - count(lost_amount) AS without_amount,
  count(*) - sum(won_deals + lost_deals) AS outcome_unknown, id
FROM parts
GROUP BY part, name, id
ORDER BY part DESC, sum(won_deals + lost_deals) DESC, id NULLS LAST;
