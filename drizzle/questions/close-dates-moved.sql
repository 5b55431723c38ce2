-- Of which open deals was the close date moved lately, how often, and by how many days?
--
-- Parameters:
--   since, until   changes seen from this day on and before that one: the last 90 days
--   close_field    the deal's field with the day on which it is to be closed
--   name_field, amount_field, owner_field, stage_field   the deal's other fields
--   closed_field   the deal's field that says that it is closed: true, a day, anything but false, 0 and empty
--   closed_stages  names of stages that mean closed, as a JSON list, where there is no such field
--
-- Each change of the date counts as a move, also when it was first set or was removed; put off means that the new date
-- is later. days_later counts from the date before the first of these changes to the present one; it is less
-- than 0 where that is earlier. These are the changes that parley observed: none from before its first backfill, and of
-- several between two reads only the last. Names of CRM fields differ between workspaces:
-- SELECT name, label, type FROM crm_fields WHERE object = 'deal'.
WITH parameters AS (
  SELECT
    date('now', '-90 days') AS since,
    date('now', '+1 day') AS until,
    'close_date' AS close_field,
    'name' AS name_field,
    'amount' AS amount_field,
    'owner_id' AS owner_field,
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
moves AS (
  SELECT c.record_id, c.observed_at, c.old_value ->> '$' AS old_date, c.new_value ->> '$' AS new_date,
    row_number() OVER (PARTITION BY c.record_id ORDER BY c.observed_at) AS place
  FROM parameters p
  CROSS JOIN crm_record_changes c ON c.object = 'deal' AND c.field = p.close_field
    AND c.observed_at >= p.since AND c.observed_at < p.until
),
moved AS (
  SELECT record_id, count(*) AS times_moved, count(*) FILTER (WHERE new_date > old_date) AS times_put_off,
    max(old_date) FILTER (WHERE place = 1) AS date_before, max(observed_at) AS last_at
  FROM moves
  GROUP BY record_id
)
SELECT
  coalesce(d.fields ->> p.name_field, d.id) AS deal,
  coalesce(s.fields ->> 'name', 'stage not known') AS stage,
  d.fields ->> p.amount_field AS amount,
  coalesce(m.name, iif(d.fields ->> p.owner_field IS NULL, 'nobody', 'not a member now')) AS owner,
  x.times_moved,
  x.times_put_off,
  substr(x.date_before, 1, 10) AS date_before,
  substr(d.fields ->> p.close_field, 1, 10) AS date_now,
  CAST(julianday(substr(d.fields ->> p.close_field, 1, 10)) - julianday(substr(x.date_before, 1, 10)) AS BIGINT)
    AS days_later,
  substr(x.last_at, 1, 16) AS last_moved,
  d.id AS deal_id
FROM parameters p
CROSS JOIN closing
CROSS JOIN moved x
JOIN live_crm_records d ON d.object = 'deal' AND d.id = x.record_id
LEFT JOIN live_crm_records s ON s.object = 'stage' AND s.id = d.fields ->> p.stage_field
LEFT JOIN live_members m ON m.id = d.fields ->> p.owner_field
WHERE lower(coalesce(d.fields ->> closing.field, '')) IN ('', '0', 'false')
  AND coalesce(s.fields ->> 'name', '') NOT IN (SELECT value FROM json_each(p.closed_stages))
ORDER BY days_later DESC, x.times_moved DESC, deal, deal_id;
