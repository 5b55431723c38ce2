-- Which members talk to which contacts, in e-mails and meetings?
--
-- Parameters:
--   period   when they talked
--
-- An e-mail counts when one of the two sent it and the other one got it; a meeting, when both were invited. Former
-- members are not shown. Shown are the first 100.
WITH parameters AS (SELECT 'last 90 days' AS period)
SELECT m.name AS member, c.contact, c.company,
  count(DISTINCT CASE WHEN kind = 'mail' THEN conversation_id END) AS mails,
  count(DISTINCT CASE WHEN kind = 'meeting' THEN conversation_id END) AS meetings,
  max(a.day) AS last_day, m.id AS member_id, c.contact_id
FROM parameters
JOIN period_days p USING (period)
JOIN conversation_people a ON a.day = p.day
JOIN conversation_people b USING (kind, conversation_id)
JOIN live_members m ON m.id = a.member_id
JOIN contacts c ON c.contact_id = b.contact_id
WHERE b.side = 'theirs' AND (kind = 'meeting' OR (a.role = 'FROM') <> (b.role = 'FROM'))
GROUP BY m.name, c.contact, c.company, m.id, c.contact_id
ORDER BY count(DISTINCT conversation_id) DESC, last_day DESC, m.id, c.contact_id
LIMIT 100;
