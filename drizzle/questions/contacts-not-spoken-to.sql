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
-- Spoken to: an e-mail of which a copy names the contact, a meeting that names the contact as an attendee, or the
-- activity of an e-mail or a meeting that is linked to the contact. last_talk is the latest of these, and days_silent
-- the number of days from then to today. A contact of several open deals is shown for each. Contacts that were never
-- spoken to come last.
-- Names of CRM fields differ between workspaces: SELECT name, label, type FROM crm_fields WHERE object = 'deal'.
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
contacts AS MATERIALIZED (
  SELECT p.*, d.id AS deal_id, d.fields AS deal, s.fields ->> 'name' AS stage, c.id AS contact_id, c.fields AS contact
  FROM parameters p
  CROSS JOIN closing
  CROSS JOIN live_crm_records d ON d.object = 'deal'
  JOIN crm_record_links k ON k.object = 'deal' AND k.record_id = d.id AND k.related_object = 'contact'
  JOIN live_crm_records c ON c.object = 'contact' AND c.id = k.related_id
  LEFT JOIN live_crm_records s ON s.object = 'stage' AND s.id = d.fields ->> p.stage_field
  WHERE lower(coalesce(d.fields ->> closing.field, '')) IN ('', '0', 'false')
    AND coalesce(s.fields ->> 'name', '') NOT IN (SELECT value FROM json_each(p.closed_stages))
),
talks AS (
  SELECT x.contact_id, c.received_at AS talked_at
  FROM message_copy_participants x
  CROSS JOIN live_message_copies c ON c.id = x.message_id
  WHERE x.contact_id IN (SELECT contact_id FROM contacts)
  UNION ALL
  SELECT a.contact_id, m.start_time
  FROM live_meeting_attendees a
  JOIN live_meetings m ON m.id = a.meeting_id
  WHERE a.contact_id IN (SELECT contact_id FROM contacts)
  UNION ALL
  SELECT l.context_id, a.occurred_at
  FROM activity_links l
  JOIN live_activities a ON a.id = l.activity_id
  WHERE l.context_type = 'contact' AND l.context_id IN (SELECT contact_id FROM contacts)
    AND a.source_type IN ('MEETING', 'MESSAGE')
  UNION ALL
  -- Whom nobody ever spoke to.
  SELECT contact_id, NULL
  FROM contacts
),
last_talks AS (
  SELECT contact_id, max(talked_at) AS last_at
  FROM talks
  GROUP BY contact_id
),
counted AS (
  SELECT c.*, t.last_at, CAST(julianday(c.today) - julianday(substr(t.last_at, 1, 10)) AS BIGINT) AS days_silent
  FROM last_talks t
  JOIN contacts c ON t.contact_id = c.contact_id
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
