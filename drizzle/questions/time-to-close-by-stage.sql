-- How long is it from the first meeting about a deal until the deal is closed, by the stage that it ended in?
--
-- Parameters:
--   stage_field      the deal's field that points at its stage
--   closed_field     the deal's field that says that it is closed: true, a day, anything but false, 0 and empty
--   closed_stages    names of stages that mean closed, as a JSON list, where there is no such field
--   closed_at_field  the deal's field with the day on which it was closed; NULL where there is none
--
-- Names of CRM fields differ between workspaces: SELECT name, label, type FROM crm_fields WHERE object = 'deal'.
-- Without a closed_at_field a deal was closed when parley saw its stage change for the last time; before parley was
-- there, at the last change of the record that the CRM or an activity tells of, which is never too early and may be too
-- late. closing_seen counts the first kind. Deals whose first meeting came after that have no time.
WITH parameters AS (
  SELECT
    'stage_id' AS stage_field,
    'is_closed' AS closed_field,
    '[]' AS closed_stages,
    NULL AS closed_at_field
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
deals AS (
  SELECT d.id, d.updated_at, s.id AS stage_id,
    coalesce(s.fields ->> 'name', 'stage not known') AS stage,
    nullif(d.fields ->> p.closed_at_field, '') AS stated,
    (SELECT max(c.observed_at) FROM crm_record_changes c
     WHERE c.object = 'deal' AND c.record_id = d.id AND c.field = p.stage_field) AS seen,
    (SELECT max(a.occurred_at) FROM activity_links l JOIN live_activities a ON a.id = l.activity_id
     WHERE l.context_type = 'deal' AND l.context_id = d.id AND l.origin = 'DIRECT'
       AND a.source_type = 'OBJECT_CHANGE_EVENT') AS told
  FROM parameters p
  CROSS JOIN closing
  CROSS JOIN live_crm_records d ON d.object = 'deal'
  LEFT JOIN live_crm_records s ON s.object = 'stage' AND s.id = d.fields ->> p.stage_field
  WHERE lower(coalesce(d.fields ->> closing.field, '')) NOT IN ('', '0', 'false')
    OR s.fields ->> 'name' IN (SELECT value FROM json_each(p.closed_stages))
),
dated AS MATERIALIZED (
  SELECT id, stage_id, stage, stated IS NULL AND seen IS NOT NULL AS is_seen,
    coalesce(stated, seen, CASE WHEN told > updated_at THEN told END, updated_at, told) AS closed_at,
    (SELECT min(a.occurred_at) FROM activity_links l JOIN live_activities a ON a.id = l.activity_id
     WHERE l.context_type = 'deal' AND l.context_id = deals.id AND a.source_type = 'MEETING') AS first_meeting_at
  FROM deals
),
timed AS (
  SELECT *, CASE WHEN substr(first_meeting_at, 1, length(closed_at)) <= closed_at
    THEN max(0, julianday(closed_at) - julianday(first_meeting_at)) END AS days
  FROM dated
),
placed AS (
  SELECT *, row_number() OVER (PARTITION BY stage_id, days IS NULL ORDER BY days) AS place,
    count(days) OVER (PARTITION BY stage_id) AS timed
  FROM timed
)
SELECT
  max(stage) AS stage,
  count(*) AS deals_closed,
  sum(is_seen) AS closing_seen,
  count(days) AS with_a_meeting_before,
  round(avg(days) FILTER (WHERE days IS NOT NULL AND place IN ((timed + 1) / 2, (timed + 2) / 2)), 1) AS median_days,
  round(avg(days), 1) AS mean_days,
  round(min(days), 1) AS shortest_days,
  round(max(days), 1) AS longest_days
FROM placed
GROUP BY stage_id
ORDER BY deals_closed DESC, stage, stage_id;
