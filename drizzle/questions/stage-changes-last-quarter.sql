-- Which deals have changed their stage since the last quarter began, from which stage to which?
--
-- Parameters:
--   period   changes since it began
--
-- The API has only current values. These are the changes that parley observed, on the day on which it did: of several
-- between two reads only the last. A deal's first stage is no change. Deals that were deleted since are left out.
WITH parameters AS (SELECT 'last quarter' AS period)
SELECT v.from_day AS seen_on, d.deal, b.stage AS stage_before, v.stage, d.owner, d.amount, d.currency, d.deal_id
FROM parameters
JOIN periods p USING (period)
JOIN deal_versions v ON v.from_day >= p.from_day
JOIN deal_versions b ON b.deal_id = v.deal_id AND b.to_at = v.from_at AND b.stage_id IS DISTINCT FROM v.stage_id
  AND b.stage_id IS NOT NULL
JOIN deals d ON d.deal_id = v.deal_id
ORDER BY v.from_day, d.deal, d.deal_id, v.from_at;
