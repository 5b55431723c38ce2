-- Which contacts of open deals has no one spoken to for 30 days?
--
-- Parameters:
--   days   how many days of silence are too many
--
-- Spoken to: any e-mail or meeting of the contact. Of several contacts with one address only the first by id has them,
-- and another one those for which the API names it. A contact of several open deals has a row for each; one who was never
-- spoken to comes last. Deals of which nothing says whether they are open are here too: see outcome.
WITH parameters AS (SELECT 30 AS days)
SELECT c.days_silent, c.last_day, c.contact, d.deal, d.stage, d.owner, d.amount, d.currency, d.outcome, c.contact_id,
  d.deal_id
FROM parameters q
JOIN contact_facts c ON c.days_silent >= q.days OR c.days_silent IS NULL
JOIN live_crm_record_links l ON l.related_object = c.object AND l.related_id = c.contact_id
JOIN deals d ON d.object = l.object AND d.deal_id = l.record_id
WHERE d.outcome IN ('open', 'unknown')
ORDER BY c.days_silent DESC NULLS LAST, c.contact, d.deal, c.contact_id, d.deal_id;
