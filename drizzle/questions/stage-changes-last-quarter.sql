-- Which deals have changed their stage since the last quarter began, from which stage to which?
--
-- Parameters:
--   period   changes since it began
--
-- The API has only current values. These are the changes that parley observed, on the day on which it did: of several
-- between two reads only the last. A deal's first stage is no change. Deals that were deleted since are left out.
WITH parameters AS (SELECT 'last quarter' AS period)
SELECT c.day AS seen_on, d.deal, c.stage_before, c.stage, d.owner, d.amount, d.currency, d.deal_id
FROM parameters
JOIN periods p USING (period)
JOIN deal_changes c ON c.day >= p.from_day AND c.stage_id_before <> coalesce(c.stage_id, '')
JOIN deals d ON d.deal_id = c.deal_id
ORDER BY c.day, d.deal, d.deal_id, c.seen_at;
