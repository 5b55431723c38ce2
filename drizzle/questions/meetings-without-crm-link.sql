-- Which meetings with customers are linked to no CRM record?
--
-- Parameters:
--   period   when the meetings were
--
-- Linked means what the API calls crm_integrations. company is the one of the people outside, the first by name: where
-- the meeting belongs. Meetings that are withheld are left out: their links are unknown.
WITH parameters AS (SELECT 'last 90 days' AS period)
SELECT c.happened_at, c.title AS meeting, o.name AS owner, count(DISTINCT r.party_id) AS outsiders,
  min(k.company) AS company, m.url, c.conversation_id AS meeting_id
FROM parameters
JOIN period_days p USING (period)
JOIN conversations c ON c.kind = 'meeting' AND c.day = p.day
JOIN live_meetings m ON m.id = c.conversation_id
JOIN conversation_people r ON r.kind = 'meeting' AND r.conversation_id = c.conversation_id AND r.side = 'theirs'
LEFT JOIN companies k ON k.company_id = r.company_id
LEFT JOIN people o ON o.person_id = c.person_id
LEFT JOIN live_meeting_crm_records l ON l.meeting_id = c.conversation_id
WHERE c.is_readable AND l.meeting_id IS NULL
GROUP BY c.happened_at, c.title, o.name, m.url, c.conversation_id
ORDER BY c.happened_at DESC, c.conversation_id;
