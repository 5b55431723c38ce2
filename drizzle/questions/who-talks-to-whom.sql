-- Which members talk to which contacts, in e-mails and meetings?
--
-- Parameters:
--   period   when they talked
--
-- An e-mail counts when one of the two sent it and the other one got it; a meeting, when both were invited. Former
-- members are not shown. Shown are the first 100.
WITH parameters AS (SELECT 'last 90 days' AS period)
SELECT m.name AS member, c.contact, c.company,
  count(DISTINCT CASE WHEN a.kind = 'mail' THEN a.conversation_id END) AS mails,
  count(DISTINCT CASE WHEN a.kind = 'meeting' THEN a.conversation_id END) AS meetings,
  max(a.day) AS last_day, a.member_id, c.contact_id
FROM parameters
JOIN period_days p USING (period)
JOIN conversation_people a ON a.side = 'ours' AND a.day = p.day
JOIN conversation_people b ON b.kind = a.kind AND b.conversation_id = a.conversation_id AND b.side = 'theirs'
JOIN live_members m ON m.id = a.member_id
JOIN contacts c ON c.contact_id = b.contact_id
WHERE a.kind = 'meeting' OR (a.role = 'FROM') <> (b.role = 'FROM')
GROUP BY m.name, c.contact, c.company, a.member_id, c.contact_id
ORDER BY count(DISTINCT a.conversation_id) DESC, last_day DESC, a.member_id, c.contact_id
LIMIT 100;
