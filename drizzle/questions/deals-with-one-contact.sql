-- Which open deals rest on a single contact or on none, the largest deals first?
--
-- Parameters:
--   period   when the contacts wrote or spoke
--
-- Counted are persons of theirs who wrote an e-mail of the deal, or spoke in a meeting of it: being invited is not
-- enough. In meetings that are withheld others may have spoken. Deals of which nothing says whether they are open are
-- here too: see outcome.
WITH parameters AS (SELECT 'last 90 days' AS period),
talks AS (
  SELECT r.object, r.record_id, h.party_id, h.name, h.day
  FROM parameters
  JOIN period_days p USING (period)
  JOIN conversation_people h ON h.day = p.day AND h.side = 'theirs' AND h.wrote_or_spoke
  JOIN record_conversations r ON r.kind = h.kind AND r.conversation_id = h.conversation_id
)
SELECT d.deal, d.stage, d.owner, d.amount, d.currency, d.amount_reporting,
  count(DISTINCT t.party_id) AS engaged_people, min(t.name) AS person, max(t.day) AS last_day, d.outcome, d.deal_id
FROM deals d
LEFT JOIN talks t ON t.object = d.object AND t.record_id = d.deal_id
WHERE d.outcome IN ('open', 'unknown')
GROUP BY d.deal, d.stage, d.owner, d.amount, d.currency, d.amount_reporting, d.outcome, d.deal_id
HAVING count(DISTINCT t.party_id) < 2
ORDER BY d.amount_reporting DESC NULLS LAST, d.amount DESC NULLS LAST, d.deal, d.deal_id;
