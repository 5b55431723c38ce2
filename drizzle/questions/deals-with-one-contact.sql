-- Which open deals rest on a single contact, the largest deals first?
--
-- Parameters:
--   since          e-mails and meetings from this day on: the last 90 days
--   name_field     the field with the name of contacts and deals
--   amount_field, owner_field, stage_field   the deal's fields
--   closed_field   the deal's field that says that it is closed: true, a day, anything but false, 0 and empty
--   closed_stages  names of stages that mean closed, as a JSON list, where there is no such field
--
-- Counted are the contacts that the API names in the e-mails (in any copy of each) and meetings whose activities are
-- linked to the deal, people of our side left out of meetings. last_talk is the last of these in which the contact is
-- named. contacts_in_crm says how many the deal has: whom else one could speak to. Deals in which nobody spoke to any
-- contact are not here.
-- Names of CRM fields differ between workspaces: SELECT name, label, type FROM crm_fields WHERE object = 'deal'.
WITH parameters AS (
  SELECT
    date('now', '-90 days') AS since,
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
talks AS MATERIALIZED (
  SELECT l.context_id AS deal_id, a.source_type, a.source_id, a.occurred_at
  FROM parameters p
  CROSS JOIN live_activities a ON a.occurred_at >= p.since AND a.source_type IN ('MEETING', 'MESSAGE')
  CROSS JOIN activity_links l ON l.activity_id = a.id AND l.context_type = 'deal'
),
people AS (
  SELECT t.deal_id, x.contact_id, t.occurred_at
  FROM talks t
  CROSS JOIN live_message_copies s ON s.id = t.source_id
  CROSS JOIN live_message_copies c ON c.mail_id = s.mail_id
  CROSS JOIN message_copy_participants x ON x.message_id = c.id AND x.contact_id IS NOT NULL
  WHERE t.source_type = 'MESSAGE'
  UNION ALL
  SELECT t.deal_id, a.contact_id, t.occurred_at
  FROM talks t
  CROSS JOIN live_meeting_attendees a ON a.meeting_id = t.source_id AND a.contact_id IS NOT NULL
    AND a.is_internal IS NOT 1
  WHERE t.source_type = 'MEETING'
),
alone AS (
  SELECT deal_id, min(contact_id) AS contact_id, max(occurred_at) AS last_at
  FROM people
  GROUP BY deal_id
  HAVING count(DISTINCT contact_id) = 1
)
SELECT
  coalesce(d.fields ->> p.name_field, d.id) AS deal,
  coalesce(s.fields ->> 'name', 'stage not known') AS stage,
  d.fields ->> p.amount_field AS amount,
  coalesce(m.name, iif(d.fields ->> p.owner_field IS NULL, 'nobody', 'not a member now')) AS owner,
  coalesce(c.fields ->> p.name_field, 'contact not published') AS contact,
  substr(x.last_at, 1, 16) AS last_talk,
  (SELECT count(*) FROM crm_record_links k
   WHERE k.object = 'deal' AND k.record_id = d.id AND k.related_object = 'contact') AS contacts_in_crm,
  d.id AS deal_id
FROM parameters p
CROSS JOIN closing
CROSS JOIN alone x
JOIN live_crm_records d ON d.object = 'deal' AND d.id = x.deal_id
LEFT JOIN live_crm_records s ON s.object = 'stage' AND s.id = d.fields ->> p.stage_field
LEFT JOIN live_crm_records c ON c.object = 'contact' AND c.id = x.contact_id
LEFT JOIN live_members m ON m.id = d.fields ->> p.owner_field
WHERE lower(coalesce(d.fields ->> closing.field, '')) IN ('', '0', 'false')
  AND coalesce(s.fields ->> 'name', '') NOT IN (SELECT value FROM json_each(p.closed_stages))
ORDER BY CAST(amount AS DOUBLE) DESC, deal, deal_id;
