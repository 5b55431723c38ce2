-- Where do the open deals stand, and what are they worth?
--
-- amount is in currency; weighted is the amount times the probability of winning it. amount_reporting is in the currency
-- of reports, where a rate is known. outcome_unknown counts deals of which nothing says whether they are open; they are
-- in no other column.
SELECT pipeline, stage, currency, sum(open_deals) AS deals,
  sum(CASE WHEN outcome = 'open' THEN amount END) AS amount,
  sum(CASE WHEN outcome = 'open' THEN amount * probability END) AS weighted, sum(open_amount) AS amount_reporting,
  sum(open_deals) - count(CASE WHEN outcome = 'open' THEN amount END) AS without_amount,
  count(*) - sum(open_deals) AS outcome_unknown
FROM deals
WHERE outcome IN ('open', 'unknown')
GROUP BY pipeline, stage_position, stage, stage_id, currency
ORDER BY pipeline NULLS LAST, stage_position NULLS LAST, stage_id NULLS LAST, currency NULLS LAST;
