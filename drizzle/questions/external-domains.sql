-- Which domains outside do we exchange most e-mails with?
--
-- Parameters:
--   since, until   e-mails received from this day on and before that one: the last 90 days
--   domain_field, name_field   the company's fields with its domain and name
--   own_domains    the second query: domains that are ours, by default those of all members, former members included
--
-- Each e-mail counts once for a domain, however many copies of it and people in it there are. Of several companies with
-- one domain the first by name is shown. Where a member has an address at a public provider, list your domains instead.
-- Shown are the first 50.
WITH parameters AS (
  SELECT
    date('now', '-90 days') AS since,
    date('now', '+1 day') AS until,
    'domain' AS domain_field,
    'name' AS name_field
),
own_domains AS (
  SELECT DISTINCT lower(substr(email, instr(email, '@') + 1)) AS domain FROM members WHERE email LIKE '%@%'
),
people AS (
  SELECT m.header_message_id AS mail, m.received_at, x.role,
    lower(x.handle) AS handle, lower(substr(x.handle, instr(x.handle, '@') + 1)) AS domain
  FROM parameters p
  CROSS JOIN live_messages m ON m.received_at >= p.since AND m.received_at < p.until
  JOIN live_message_participants x ON x.header_message_id = m.header_message_id
  WHERE x.handle LIKE '%@%'
),
companies AS (
  SELECT lower(r.fields ->> p.domain_field) AS domain, min(r.fields ->> p.name_field) AS name
  FROM parameters p
  CROSS JOIN live_crm_records r ON r.object = 'company'
  GROUP BY 1
)
SELECT
  people.domain,
  coalesce(max(companies.name), 'no company in the CRM') AS company,
  count(DISTINCT mail) AS mails,
  count(DISTINCT mail) FILTER (WHERE role = 'FROM') AS from_them,
  count(DISTINCT mail) FILTER (WHERE role IN ('TO', 'CC', 'BCC')) AS to_them,
  count(DISTINCT handle) AS people,
  substr(max(received_at), 1, 16) AS last_mail
FROM people
LEFT JOIN companies ON companies.domain = people.domain
WHERE people.domain NOT IN (SELECT domain FROM own_domains)
GROUP BY people.domain
ORDER BY mails DESC, people.domain
LIMIT 50;
