-- Which deals have changed their stage since the last quarter began, from which stage to which?
--
-- Parameters:
--   since, until   changes seen from this day on and before that one: from the begin of the last calendar quarter that is over
--   stage_field, name_field, owner_field   the deal's fields
--
-- The API has only current values. These are the changes that parley observed, with the time at which it did: none
-- from before its first backfill, and of several between two reads only the last. Deals that were deleted since are left
-- out. Names of CRM fields differ between workspaces: SELECT name, label, type FROM crm_fields WHERE object = 'deal'.
WITH parameters AS (
  SELECT
    date('now', 'start of month', '-' || ((strftime('%m', 'now') - 1) % 3 + 3) || ' months') AS since,
    date('now', '+1 day') AS until,
    'stage_id' AS stage_field,
    'name' AS name_field,
    'owner_id' AS owner_field
)
SELECT
  substr(c.observed_at, 1, 16) AS seen,
  coalesce(d.fields ->> p.name_field, d.id) AS deal,
  coalesce(f.fields ->> 'name', c.old_value ->> '$', 'none') AS from_stage,
  coalesce(t.fields ->> 'name', c.new_value ->> '$', 'none') AS to_stage,
  coalesce(m.name, iif(d.fields ->> p.owner_field IS NULL, 'nobody', 'not a member now')) AS owner,
  d.id AS deal_id
FROM parameters p
CROSS JOIN crm_record_changes c ON c.object = 'deal' AND c.field = p.stage_field
  AND c.observed_at >= p.since AND c.observed_at < p.until
JOIN live_crm_records d ON d.object = 'deal' AND d.id = c.record_id
LEFT JOIN live_crm_records f ON f.object = 'stage' AND f.id = c.old_value ->> '$'
LEFT JOIN live_crm_records t ON t.object = 'stage' AND t.id = c.new_value ->> '$'
LEFT JOIN live_members m ON m.id = d.fields ->> p.owner_field
ORDER BY c.observed_at, deal, deal_id;
