-- Where do the open deals stand, and what are they worth?
--
-- Parameters:
--   stage_field, pipeline_field, amount_field   the deal's fields
--   position_field   the field of stages and pipelines by which they are in order
--   closed_field     the deal's field that says that it is closed: true, a day, anything but false, 0 and empty
--   closed_stages    names of stages that mean closed, as a JSON list, where there is no such field
--
-- Names of CRM fields differ between workspaces: SELECT name, label, type FROM crm_fields WHERE object = 'deal'.
-- The API states no currency: amounts are added up as they are, and rounded.
WITH parameters AS (
  SELECT
    'stage_id' AS stage_field,
    'pipeline_id' AS pipeline_field,
    'amount' AS amount_field,
    'position' AS position_field,
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
)
SELECT
  coalesce(max(l.fields ->> 'name'), 'pipeline not known') AS pipeline,
  coalesce(max(s.fields ->> 'name'), 'stage not known') AS stage,
  count(*) AS deals,
  round(coalesce(sum(CAST(d.fields ->> p.amount_field AS DOUBLE)), 0)) AS amount,
  count(*) - count(d.fields ->> p.amount_field) AS without_amount
FROM parameters p
CROSS JOIN closing
CROSS JOIN live_crm_records d ON d.object = 'deal'
LEFT JOIN live_crm_records s ON s.object = 'stage' AND s.id = d.fields ->> p.stage_field
LEFT JOIN live_crm_records l ON l.object = 'pipeline' AND l.id = d.fields ->> p.pipeline_field
WHERE lower(coalesce(d.fields ->> closing.field, '')) IN ('', '0', 'false')
  AND coalesce(s.fields ->> 'name', '') NOT IN (SELECT value FROM json_each(p.closed_stages))
GROUP BY l.id, s.id
ORDER BY max(l.fields ->> p.position_field), pipeline, max(s.fields ->> p.position_field), stage, s.id;
