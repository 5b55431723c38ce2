-- Which deals have changed their stage since the last quarter began, from which stage to which?
--
-- Parameters:
--   period   changes since it began
--
-- The API has only current values. These are the changes that parley observed, on the day on which it did: of several
-- between two reads only the last. Deals that were deleted since are left out.
WITH parameters AS (SELECT 'last quarter' AS period),
versions AS (
  SELECT deal_id, from_at, from_day, stage_id, stage, is_first_read,
    lag(stage_id) OVER (PARTITION BY deal_id ORDER BY from_at) AS id_before,
    lag(stage) OVER (PARTITION BY deal_id ORDER BY from_at) AS stage_before
  FROM deal_versions
)
SELECT v.from_day AS seen_on, d.deal, v.stage_before, v.stage, d.owner, d.amount, d.currency, d.deal_id
FROM parameters
JOIN periods p USING (period)
JOIN versions v ON v.from_day >= p.from_day
JOIN deals d ON d.deal_id = v.deal_id
WHERE NOT v.is_first_read AND v.stage_id IS DISTINCT FROM v.id_before
ORDER BY v.from_day, d.deal, d.deal_id, v.from_at;
