-- Which open deals have had no activity for 14 days?
--
-- Parameters:
--   days   how many days without an e-mail or a meeting are too many
--
-- An e-mail or a meeting counts if an activity or a link ties it to the deal. One with a contact of the deal that
-- nothing ties to the deal does not count, and nor do calls and notes in the CRM. A change of a record is no activity.
-- Deals that never had an activity come last. Deals of which nothing says whether they are open are here too: see
-- outcome.
WITH parameters AS (SELECT 14 AS days)
SELECT d.days_silent, d.last_day, d.deal, d.stage, d.owner, d.owner_state, d.amount, d.currency, d.amount_reporting,
  d.created_day, d.outcome, d.deal_id
FROM parameters p
JOIN deal_facts d ON d.days_silent >= p.days OR d.days_silent IS NULL
WHERE d.outcome IN ('open', 'unknown')
ORDER BY d.days_silent DESC NULLS LAST, d.deal, d.deal_id;
