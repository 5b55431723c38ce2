-- Which deals have moved since Monday, in stage, amount or close date?
--
-- Parameters:
--   period   since it began
--
-- Each deal as it is and as it was when the week began. Values before are NULL for a deal that parley has read since for
-- the first time. What changed and changed back has not moved. Deals that were closed and are closed are left out, unless
-- they were created since, and so are those that were deleted. outcome_before and outcome may be unknown. An amount has
-- moved, too, when its currency has.
WITH parameters AS (SELECT 'this week' AS period)
SELECT d.deal, d.owner, b.stage AS stage_before, d.stage, b.amount AS amount_before, d.amount,
  b.currency AS currency_before, d.currency, b.close_date AS close_date_before, d.close_date,
  b.outcome AS outcome_before, d.outcome, d.deal_id
FROM parameters
JOIN periods p USING (period)
CROSS JOIN deals d
LEFT JOIN deal_versions b ON b.deal_id = d.deal_id AND b.from_day < p.from_day
  AND (b.to_day >= p.from_day OR b.to_day IS NULL)
WHERE (b.deal_id IS NULL AND d.created_day >= p.from_day)
  OR ((d.outcome IN ('open', 'unknown') OR b.outcome IN ('open', 'unknown'))
  AND (b.deal_id IS NULL OR b.stage_id IS DISTINCT FROM d.stage_id OR b.amount IS DISTINCT FROM d.amount
    OR b.currency IS DISTINCT FROM d.currency OR b.close_date IS DISTINCT FROM d.close_date))
ORDER BY d.deal, d.deal_id;
