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
  SELECT c.deal_id, count(DISTINCT h.party_id) AS engaged_people, min(h.name) AS person, max(h.day) AS last_day
  FROM parameters
  JOIN period_days p USING (period)
  JOIN conversation_people h ON h.day = p.day AND h.side = 'theirs' AND h.wrote_or_spoke
  JOIN deal_conversations c USING (kind, conversation_id)
  GROUP BY c.deal_id
)
SELECT d.deal, d.stage, d.owner, d.amount, d.currency, d.amount_reporting,
  coalesce(t.engaged_people, 0) AS engaged_people, t.person, t.last_day, d.outcome, d.deal_id
FROM deals d
LEFT JOIN talks t ON t.deal_id = d.deal_id
WHERE d.outcome IN ('open', 'unknown') AND coalesce(t.engaged_people, 0) < 2
ORDER BY d.amount_reporting DESC NULLS LAST, d.amount DESC NULLS LAST, d.deal, d.deal_id;
