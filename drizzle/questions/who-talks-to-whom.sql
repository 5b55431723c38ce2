-- Which members talk to which contacts, in e-mails and meetings?
--
-- Parameters:
--   period   when they talked
--
-- An e-mail counts when one of the two sent it and the other one got it; a meeting, when both were invited. Former
-- members are not shown. Shown are the first 100.
WITH parameters AS (SELECT 'last 90 days' AS period),
asked AS (SELECT p.from_day, p.to_day FROM parameters JOIN periods p USING (period)),
talks AS (
  SELECT a.member_id, b.contact_id, a.kind, a.conversation_id, a.day
  FROM asked p
  JOIN conversation_people a ON a.kind = 'mail' AND a.side = 'ours' AND a.day >= p.from_day AND a.day < p.to_day
  JOIN conversation_people b ON b.kind = 'mail' AND b.conversation_id = a.conversation_id AND b.side = 'theirs'
  WHERE (a.role = 'FROM') <> (b.role = 'FROM')
  UNION ALL SELECT a.member_id, b.contact_id, a.kind, a.conversation_id, a.day
  FROM asked p
  JOIN conversation_people a ON a.kind = 'meeting' AND a.side = 'ours' AND a.day >= p.from_day AND a.day < p.to_day
  JOIN conversation_people b ON b.kind = 'meeting' AND b.conversation_id = a.conversation_id AND b.side = 'theirs'
),
pairs AS (
  SELECT member_id, contact_id, max(day) AS last_day,
    count(DISTINCT CASE WHEN kind = 'mail' THEN conversation_id END) AS mails,
    count(DISTINCT CASE WHEN kind = 'meeting' THEN conversation_id END) AS meetings
  FROM talks
  GROUP BY member_id, contact_id
)
SELECT m.name AS member, c.contact, c.company, t.mails, t.meetings, t.last_day, t.member_id, t.contact_id
FROM pairs t
JOIN live_members m ON m.id = t.member_id
JOIN contacts c ON c.contact_id = t.contact_id
ORDER BY t.mails + t.meetings DESC, t.last_day DESC, t.member_id, t.contact_id
LIMIT 100;
