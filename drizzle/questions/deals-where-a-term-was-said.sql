-- In which open deals was a term such as “other vendors” said in a meeting, the largest deals first?
--
-- Parameters:
--   term           what to look for, in any language; as in LIKE, % stands for any text and _ for one character
--   since          meetings that began from this day on: the last twelve months
--   name_field, amount_field, stage_field   the deal's fields
--   closed_field   the deal's field that says that it is closed: true, a day, anything but false, 0 and empty
--   closed_stages  names of stages that mean closed, as a JSON list, where there is no such field
--
-- A meeting belongs to the deals that its activity is linked to. mentions counts entries of transcripts, each once
-- however often the term is in it.
-- Names of CRM fields differ between workspaces: SELECT name, label, type FROM crm_fields WHERE object = 'deal'.
-- Needs the full-text index; mentions-of-a-term-by-month.sql says how to do without it.
WITH parameters AS (
  SELECT
    'other vendors' AS term,
    date('now', '-12 months') AS since,
    'name' AS name_field,
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
said AS (
  SELECT t.meeting_id
  FROM parameters p
  CROSS JOIN search_transcripts s ON s.text LIKE '%' || p.term || '%'
  CROSS JOIN transcript_entries t ON t._id = s.rowid
  UNION ALL
  SELECT t.meeting_id
  FROM parameters p
  CROSS JOIN transcript_entries t ON t.text LIKE '%' || p.term || '%'
    AND t._id > (SELECT indexed_up_to FROM search_indices WHERE name = 'search_transcripts')
),
by_meeting AS (
  SELECT meeting_id, count(*) AS mentions
  FROM said
  GROUP BY meeting_id
),
pairs AS (
  SELECT DISTINCT l.context_id AS deal_id, m.id, m.start_time, b.mentions
  FROM parameters p
  CROSS JOIN by_meeting b
  CROSS JOIN live_meetings m ON m.id = b.meeting_id AND m.access = 'open' AND m.start_time >= p.since
  CROSS JOIN live_activities a ON a.source_type = 'MEETING' AND a.source_id = m.id
  CROSS JOIN activity_links l ON l.activity_id = a.id AND l.context_type = 'deal'
),
by_deal AS (
  SELECT deal_id, count(*) AS meetings, sum(mentions) AS mentions, max(start_time) AS last_at
  FROM pairs
  GROUP BY deal_id
)
SELECT
  coalesce(d.fields ->> p.name_field, d.id) AS deal,
  coalesce(s.fields ->> 'name', 'stage not known') AS stage,
  d.fields ->> p.amount_field AS amount,
  x.meetings,
  x.mentions,
  substr(x.last_at, 1, 10) AS last_said,
  d.id AS deal_id
FROM parameters p
CROSS JOIN closing
CROSS JOIN by_deal x
CROSS JOIN live_crm_records d ON d.object = 'deal' AND d.id = x.deal_id
LEFT JOIN live_crm_records s ON s.object = 'stage' AND s.id = d.fields ->> p.stage_field
WHERE lower(coalesce(d.fields ->> closing.field, '')) IN ('', '0', 'false')
  AND coalesce(s.fields ->> 'name', '') NOT IN (SELECT value FROM json_each(p.closed_stages))
ORDER BY CAST(amount AS DOUBLE) DESC, deal, deal_id;
