-- Which meetings with customers did people have who have left, so that others must take over?
--
-- Parameters:
--   period   when the meetings were
--
-- Owners of meetings who are no members now. Meetings that are withheld are left out, also where their
-- owner was read before: nothing says who attended.
WITH parameters AS (SELECT 'last 365 days' AS period)
SELECT o.name, count(DISTINCT conversation_id) AS meetings, count(DISTINCT k.company_id) AS companies,
  count(DISTINCT r.party_id) AS people,
  count(DISTINCT CASE WHEN k.company_id IS NULL THEN r.party_id END) AS people_without_company,
  max(c.day) AS last_day, c.person_id AS address
FROM parameters
JOIN period_days p USING (period)
JOIN conversations c ON c.day = p.day AND c.is_external
JOIN people o ON o.person_id = c.person_id AND NOT o.is_member_now
JOIN conversation_people r USING (kind, conversation_id)
LEFT JOIN companies k ON k.company_id = r.company_id
WHERE kind = 'meeting' AND r.side = 'theirs'
GROUP BY o.name, c.person_id
ORDER BY meetings DESC, c.person_id;
