-- Which meetings with customers are linked to no CRM record?
--
-- Parameters:
--   period   when the meetings were
--
-- Linked means what the API calls crm_integrations. company is the one of the people outside, the first by name: where
-- the meeting belongs. Meetings that are withheld are left out: their links are unknown.
WITH parameters AS (SELECT 'last 90 days' AS period)
SELECT c.happened_at, c.title AS meeting, o.name AS owner, count(DISTINCT r.party_id) AS outsiders,
  min(k.company) AS company, m.url, m.id AS meeting_id
FROM parameters
JOIN period_days p USING (period)
JOIN conversations c ON c.day = p.day AND c.kind = 'meeting' AND c.is_readable
JOIN live_meetings m ON m.id = c.conversation_id
JOIN conversation_people r ON r.kind = 'meeting' AND r.conversation_id = m.id AND r.side = 'theirs'
LEFT JOIN companies k ON k.company_id = r.company_id
LEFT JOIN people o ON o.person_id = c.person_id
WHERE m.id NOT IN (SELECT meeting_id FROM live_meeting_crm_records)
GROUP BY c.happened_at, c.title, o.name, m.url, m.id
ORDER BY c.happened_at DESC, m.id;
