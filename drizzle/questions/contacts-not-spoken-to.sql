-- Which contacts of open deals has nobody spoken to for 30 days?
--
-- Parameters:
--   today          the day to count back from
--   days           how many days of silence are too many
--   name_field     the field with the name of contacts and deals
--   amount_field, stage_field   the deal's fields
--   closed_field   the deal's field that says that it is closed: true, a day, anything but false, 0 and empty
--   closed_stages  names of stages that mean closed, as a JSON list, where there is no such field
--
-- Spoken to: an e-mail or a meeting in which the API names the contact, or whose activity is linked to it. A contact of
-- several open deals is shown for each. Those whom nobody ever spoke to come last.
-- Names of CRM fields are the workspace's own: SELECT name, label, type FROM crm_fields WHERE object = 'deal'.
WITH parameters AS (
  SELECT
    date('now') AS today,
    30 AS days,
    'name' AS name_field,
    'amount' AS amount_field,
    'stage_id' AS stage_field,
    'is_closed' AS closed_field,
    '[]' AS closed_stages
),
spoken_to AS MATERIALIZED (
  SELECT x.contact_id
  FROM parameters p
  CROSS JOIN live_message_copies c ON c.received_at >= date(p.today, '-' || (p.days - 1) || ' days')
  CROSS JOIN message_copy_participants x ON x.message_id = c.id AND x.contact_id IS NOT NULL
  UNION
  SELECT a.contact_id
  FROM parameters p
  CROSS JOIN live_meetings m ON m.start_time >= date(p.today, '-' || (p.days - 1) || ' days')
  CROSS JOIN live_meeting_attendees a ON a.meeting_id = m.id AND a.contact_id IS NOT NULL
),
silent AS MATERIALIZED (
  SELECT p.*, d.id AS deal_id, d.fields AS deal, s.fields ->> 'name' AS stage, c.id AS contact_id, c.fields AS contact,
    (SELECT max(a.occurred_at) FROM activity_links l JOIN live_activities a ON a.id = l.activity_id
     WHERE l.context_type = 'contact' AND l.context_id = c.id AND a.source_type IN ('MEETING', 'MESSAGE')) AS last_at
  FROM parameters p
  CROSS JOIN live_crm_records d ON d.object = 'deal'
  JOIN crm_record_links k ON k.object = 'deal' AND k.record_id = d.id AND k.related_object = 'contact'
  JOIN live_crm_records c ON c.object = 'contact' AND c.id = k.related_id
  LEFT JOIN live_crm_records s ON s.object = 'stage' AND s.id = d.fields ->> p.stage_field
  WHERE lower(coalesce(d.fields ->> p.closed_field, '')) IN ('', '0', 'false')
    AND coalesce(s.fields ->> 'name', '') NOT IN (SELECT value FROM json_each(p.closed_stages))
    AND c.id NOT IN (SELECT contact_id FROM spoken_to)
),
counted AS (
  SELECT *, CAST(julianday(today) - julianday(substr(last_at, 1, 10)) AS INTEGER) AS days_silent
  FROM silent
)
SELECT
  days_silent,
  substr(last_at, 1, 16) AS last_talk,
  coalesce(contact ->> name_field, contact_id) AS contact,
  coalesce(deal ->> name_field, deal_id) AS deal,
  coalesce(stage, 'stage not known') AS stage,
  deal ->> amount_field AS amount,
  contact_id,
  deal_id
FROM counted
WHERE days_silent IS NULL OR days_silent >= days
ORDER BY days_silent DESC, contact, deal, contact_id, deal_id;
