-- Which contacts of open deals has no one spoken to for 30 days?
--
-- Parameters:
--   days   how many days of silence are too many
--
-- Spoken to: any e-mail or meeting of the contact. A contact of several open deals has a row for each; one who was never
-- spoken to comes last. Deals of which nothing says whether they are open are here too: see outcome.
WITH parameters AS (SELECT 30 AS days)
SELECT p.today_number - k.day_number AS days_silent, a.last_day, c.contact, d.deal, d.stage, d.owner, d.amount,
  d.currency, d.outcome, c.contact_id, d.deal_id
FROM parameters q
JOIN periods p ON p.period = 'this week'
CROSS JOIN deals d
JOIN live_crm_record_links l ON l.object = 'deal' AND l.record_id = d.deal_id AND l.related_object = 'contact'
JOIN contacts c ON c.contact_id = l.related_id
LEFT JOIN record_activity a ON a.object = 'contact' AND a.record_id = c.contact_id
LEFT JOIN calendar k ON k.day = a.last_day
WHERE d.outcome IN ('open', 'unknown') AND (k.day_number IS NULL OR p.today_number - k.day_number >= q.days)
ORDER BY days_silent DESC NULLS LAST, c.contact, d.deal, c.contact_id, d.deal_id;
