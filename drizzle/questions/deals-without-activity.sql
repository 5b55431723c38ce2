-- Which open deals have had no activity for 14 days?
--
-- Parameters:
--   today          the day to count back from
--   days           how many days without activity are too many
--   counted        the kinds of activity that count, as a JSON list
--   name_field, owner_field, amount_field, stage_field   the deal's fields
--   closed_field   the deal's field that says that it is closed: true, a day, anything but false, 0 and empty
--   closed_stages  names of stages that mean closed, as a JSON list, where there is no such field
--
-- Names of CRM fields differ between workspaces: SELECT name, label, type FROM crm_fields WHERE object = 'deal'.
-- A change of a record (OBJECT_CHANGE_EVENT) does not count unless you add it: an import into the CRM changes records
-- every night, and nobody spoke to anyone.
-- A deal without any activity counts from the day it was created; where that is not known either, it is shown last.
WITH parameters AS (
  SELECT
    date('now') AS today,
    14 AS days,
    '["MEETING", "MESSAGE"]' AS counted,
    'name' AS name_field,
    'owner_id' AS owner_field,
    'amount' AS amount_field,
    'stage_id' AS stage_field,
    'is_closed' AS closed_field,
    '[]' AS closed_stages
),
closing AS MATERIALIZED (
  -- Where deals lack the field, nothing says which are closed. The question then fails with this text.
  SELECT CASE WHEN p.closed_stages <> '[]'
      OR EXISTS (SELECT 1 FROM crm_fields WHERE object = 'deal' AND name = p.closed_field)
      OR EXISTS (SELECT 1 FROM live_crm_records WHERE object = 'deal' AND (fields -> p.closed_field) IS NOT NULL)
      OR NOT EXISTS (SELECT 1 FROM live_crm_records WHERE object = 'deal')
    THEN p.closed_field
    ELSE json_extract('{}', 'No deal has the field ' || coalesce(p.closed_field, 'NULL')
      || ': set closed_field or closed_stages') END AS field
  FROM parameters p
),
open_deals AS MATERIALIZED (
  SELECT d.id, d.created_at, d.fields, p.*,
    coalesce(s.fields ->> 'name', 'stage not known') AS stage,
    (SELECT max(a.occurred_at) FROM activity_links l JOIN live_activities a ON a.id = l.activity_id
     WHERE l.context_type = 'deal' AND l.context_id = d.id
       AND instr(p.counted, '"' || a.source_type || '"') > 0) AS last_activity_at
  FROM parameters p
  CROSS JOIN closing
  CROSS JOIN live_crm_records d ON d.object = 'deal'
  LEFT JOIN live_crm_records s ON s.object = 'stage' AND s.id = d.fields ->> p.stage_field
  WHERE lower(coalesce(d.fields ->> closing.field, '')) IN ('', '0', 'false')
    AND coalesce(s.fields ->> 'name', '') NOT IN (SELECT value FROM json_each(p.closed_stages))
),
quiet AS (
  SELECT *, CAST(julianday(today) - julianday(substr(coalesce(last_activity_at, created_at), 1, 10)) AS BIGINT)
    AS days_quiet
  FROM open_deals
)
SELECT
  days_quiet,
  substr(last_activity_at, 1, 16) AS last_activity,
  coalesce(q.fields ->> q.name_field, q.id) AS deal,
  q.stage,
  coalesce(m.name, iif(q.fields ->> q.owner_field IS NULL, 'nobody', 'not a member now')) AS owner,
  q.fields ->> q.amount_field AS amount,
  q.id AS deal_id
FROM quiet q
LEFT JOIN live_members m ON m.id = q.fields ->> q.owner_field
WHERE days_quiet IS NULL OR days_quiet >= q.days
ORDER BY days_quiet DESC, deal, deal_id;
