-- Which members talk to which contacts, in e-mails and meetings?
--
-- Parameters:
--   period   when they talked
--
-- An e-mail counts when one of the two sent it and the other one got it; a meeting, when both were invited. Former
-- members are not shown. Shown are the first 100.
WITH parameters AS (SELECT 'last 90 days' AS period),
pairs AS (
  SELECT a.member_id, b.contact_id, max(a.day) AS last_day,
    count(DISTINCT CASE WHEN a.kind = 'mail' THEN a.conversation_id END) AS mails,
    count(DISTINCT CASE WHEN a.kind = 'meeting' THEN a.conversation_id END) AS meetings
  FROM parameters
  JOIN period_days p USING (period)
  JOIN conversation_people a ON a.side = 'ours' AND a.day = p.day
  JOIN conversation_people b ON b.kind = a.kind AND b.conversation_id = a.conversation_id AND b.side = 'theirs'
  WHERE a.kind = 'meeting' OR (a.role = 'FROM') <> (b.role = 'FROM')
  GROUP BY a.member_id, b.contact_id
)
SELECT m.name AS member, c.contact, c.company, t.mails, t.meetings, t.last_day, t.member_id, t.contact_id
FROM pairs t
JOIN live_members m ON m.id = t.member_id
JOIN contacts c ON c.contact_id = t.contact_id
ORDER BY t.mails + t.meetings DESC, t.last_day DESC, t.member_id, t.contact_id
LIMIT 100;
