-- Which domains outside do we exchange most e-mails with?
--
-- Parameters:
--   period   when the e-mails were sent
--
-- An e-mail counts once for a domain, however many copies of it and people in it there are. side is that of its people:
-- theirs, partner or unknown. Of several companies with one domain the first by name is shown. Shown are the first 50.
WITH parameters AS (SELECT 'last 90 days' AS period)
SELECT a.domain, min(a.side) AS side, min(o.company) AS company,
  count(DISTINCT r.conversation_id) AS mails,
  count(DISTINCT CASE WHEN r.role = 'FROM' THEN r.conversation_id END) AS from_them,
  count(DISTINCT CASE WHEN r.role <> 'FROM' THEN r.conversation_id END) AS to_them,
  count(DISTINCT r.party_id) AS people, max(r.day) AS last_day
FROM parameters
JOIN period_days p USING (period)
JOIN conversation_people r ON r.kind = 'mail' AND r.side <> 'ours' AND r.day = p.day
JOIN people a ON a.person_id = r.person_id AND a.domain IS NOT NULL
LEFT JOIN companies o ON o.domain = a.domain
GROUP BY a.domain
ORDER BY mails DESC, a.domain
LIMIT 50;
