-- Who is new to us at accounts that we know?
--
-- Parameters:
--   period   when they first appeared
--
-- Persons of theirs who first wrote, got an e-mail or were invited to a meeting in that time, at a company of the CRM of
-- which someone else had appeared before. Whoever only got an e-mail to a group has not appeared. A known person with a
-- new address is not new. contact_id is NULL for persons whom the CRM does not have.
WITH parameters AS (SELECT 'last 30 days' AS period),
seen AS (
  SELECT company_id, party_id, min(day) AS first_day, min(min(day)) OVER (PARTITION BY company_id) AS known_since
  FROM conversation_people
  WHERE side = 'theirs' AND company_id IS NOT NULL
    AND (kind = 'meeting' OR role = 'FROM' OR NOT coalesce(is_group_email, false))
  GROUP BY company_id, party_id
)
SELECT s.first_day, t.name, c.company, c.owner, t.contact_id, s.party_id, s.company_id
FROM parameters
JOIN periods p USING (period)
JOIN seen s ON s.known_since < p.from_day AND s.first_day >= p.from_day AND s.first_day < p.to_day
JOIN parties t ON t.party_id = s.party_id
JOIN companies c ON c.company_id = s.company_id
ORDER BY s.first_day DESC, s.company_id, s.party_id;
