-- Which members talk to which contacts, in e-mails and meetings?
--
-- Parameters:
--   since, until   from this day on and before that one: the last 90 days
--   name_field     the contact's field with the name
--
-- An e-mail counts once when one of the two sent it and the other one got it, in whichever copy each is named; a
-- meeting, when both attended. Members are recognised by their address (former members are not shown) and count as no
-- one's contact; contacts count only where the API itself names the contact. Shown are the first 100.
WITH parameters AS (
  SELECT
    date('now', '-90 days') AS since,
    date('now', '+1 day') AS until,
    'name' AS name_field
),
colleagues AS MATERIALIZED (
  SELECT id, name, lower(email) AS email FROM live_members WHERE email IS NOT NULL
),
mails AS MATERIALIZED (
  SELECT DISTINCT c.mail_id AS mail, m.received_at,
    x.role = 'FROM' AS is_sender, g.id AS member_id, x.contact_id
  FROM parameters p
  CROSS JOIN live_messages m ON m.received_at >= p.since AND m.received_at < p.until
  CROSS JOIN live_message_copies c ON c.mail_id = m.header_message_id
  CROSS JOIN message_copy_participants x ON x.message_id = c.id
  LEFT JOIN colleagues g ON g.email = lower(x.handle)
  WHERE g.id IS NOT NULL OR x.contact_id IS NOT NULL
),
talks AS (
  SELECT us.member_id, them.contact_id, 'mail' AS kind, us.mail AS talk, us.received_at AS at
  FROM mails us
  JOIN mails them ON them.mail = us.mail AND them.is_sender <> us.is_sender
  WHERE us.member_id IS NOT NULL AND them.contact_id IS NOT NULL AND them.member_id IS NULL
  UNION ALL
  SELECT g.id, them.contact_id, 'meeting', m.id, m.start_time
  FROM parameters p
  CROSS JOIN live_meetings m ON m.start_time >= p.since AND m.start_time < p.until
  JOIN live_meeting_attendees us ON us.meeting_id = m.id
  JOIN colleagues g ON g.email = lower(us.email)
  JOIN live_meeting_attendees them ON them.meeting_id = m.id AND them.contact_id IS NOT NULL
  WHERE coalesce(lower(them.email), '') NOT IN (SELECT email FROM colleagues)
),
counted AS (
  SELECT member_id, contact_id,
    count(DISTINCT talk) FILTER (WHERE kind = 'mail') AS mails,
    count(DISTINCT talk) FILTER (WHERE kind = 'meeting') AS meetings,
    max(talks.at) AS last_at
  FROM talks
  GROUP BY member_id, contact_id
)
SELECT
  g.name AS member,
  coalesce(r.fields ->> p.name_field, 'contact not published') AS contact,
  t.mails,
  t.meetings,
  substr(t.last_at, 1, 16) AS last_talk,
  t.contact_id
FROM parameters p
CROSS JOIN counted t
JOIN colleagues g ON g.id = t.member_id
LEFT JOIN live_crm_records r ON r.object = 'contact' AND r.id = t.contact_id
ORDER BY t.mails + t.meetings DESC, last_talk DESC, member, t.contact_id
LIMIT 100;
