-- Where do the open deals stand, and what are they worth?
--
-- amount is in currency; weighted is the amount times the probability of winning it. amount_reporting is in the currency
-- of reports, where a rate is known. outcome_unknown counts deals of which nothing says whether they are open; they are
-- in no other column.
SELECT pipeline, stage, currency,
  count(CASE WHEN outcome = 'open' THEN 1 END) AS deals,
  sum(CASE WHEN outcome = 'open' THEN amount END) AS amount,
  sum(CASE WHEN outcome = 'open' THEN amount * probability END) AS weighted,
  sum(CASE WHEN outcome = 'open' THEN amount_reporting END) AS amount_reporting,
  count(CASE WHEN outcome = 'open' AND amount IS NULL THEN 1 END) AS without_amount,
  count(CASE WHEN outcome = 'unknown' THEN 1 END) AS outcome_unknown
FROM deals
WHERE outcome IN ('open', 'unknown')
GROUP BY pipeline, stage_position, stage, stage_id, currency
ORDER BY pipeline NULLS LAST, stage_position NULLS LAST, stage_id NULLS LAST, currency NULLS LAST;
