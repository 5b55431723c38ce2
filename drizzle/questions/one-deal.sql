-- What happened in one deal, in order: e-mails, meetings and changes?
--
-- Parameters:
--   deal           the deal's id; by default the deal of the newest activity
--
-- Copies of one e-mail have an activity each and are shown once.
WITH parameters AS (
  SELECT
    (SELECT l.context_id FROM live_activities a CROSS JOIN activity_links l ON l.activity_id = a.id
     WHERE l.context_type = 'deal' ORDER BY a.occurred_at DESC, l.context_id LIMIT 1) AS deal
)
SELECT
  substr(min(a.occurred_at), 1, 16) AS at,
  CASE a.source_type WHEN 'MESSAGE' THEN 'e-mail' WHEN 'MEETING' THEN 'meeting' ELSE 'change of a record' END AS what,
  coalesce(e.subject, m.title, '') AS about,
  coalesce(w.name, m.owner_name, '') AS by_member,
  m.url
FROM parameters p
CROSS JOIN activity_links l ON l.context_type = 'deal' AND l.context_id = p.deal
JOIN live_activities a ON a.id = l.activity_id
LEFT JOIN live_message_copies c ON a.source_type = 'MESSAGE' AND c.id = a.source_id
LEFT JOIN live_messages e ON e.header_message_id = coalesce(nullif(c.header_message_id, ''), 'id:' || c.id)
LEFT JOIN live_meetings m ON a.source_type = 'MEETING' AND m.id = a.source_id AND m.access = 'open'
LEFT JOIN live_members w ON w.id = a.actor_id
GROUP BY coalesce(e.header_message_id, m.id, a.id)
ORDER BY at, what, about;
