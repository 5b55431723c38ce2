-- Which contacts of open deals has no one spoken to for 30 days?
--
-- Parameters:
--   days   how many days of silence are too many
--
-- Spoken to: any e-mail or meeting of the contact. A contact of several open deals has a row for each; one who was never
-- spoken to comes last. Deals of which nothing says whether they are open are here too: see outcome.
WITH parameters AS (SELECT 30 AS days),
silent AS (
  SELECT DISTINCT c.contact_id, c.contact, a.last_day, p.today_number - k.day_number AS days_silent
  FROM parameters q
  JOIN periods p ON p.period = 'this week'
  CROSS JOIN contacts c
  JOIN report_settings o ON o.name = 'crm.contact.object'
  LEFT JOIN record_activity a ON a.object = o.value AND a.record_id = c.contact_id
  LEFT JOIN calendar k ON k.day = a.last_day
  WHERE k.day_number IS NULL OR p.today_number - k.day_number >= q.days
)
SELECT s.days_silent, s.last_day, s.contact, d.deal, d.stage, d.owner, d.amount, d.currency, d.outcome, s.contact_id,
  d.deal_id
FROM deals d
JOIN report_settings o ON o.name = 'crm.deal.object'
JOIN report_settings t ON t.name = 'crm.contact.object'
JOIN live_crm_record_links l ON l.object = o.value AND l.record_id = d.deal_id AND l.related_object = t.value
JOIN silent s ON s.contact_id = l.related_id
WHERE d.outcome IN ('open', 'unknown')
ORDER BY s.days_silent DESC NULLS LAST, s.contact, d.deal, s.contact_id, d.deal_id;
