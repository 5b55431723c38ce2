-- What happened in one deal, in order: e-mails, meetings and changes?
--
-- Parameters:
--   deal   the deal's id; none is the deal with the newest conversation
--
-- Changes are those that parley observed, at the time at which it did, with the values since then. The title of what is
-- withheld is not known.
WITH parameters AS (SELECT '' AS deal),
chosen AS (
  SELECT d.deal_id
  FROM parameters p
  JOIN deal_facts d ON d.deal_id = p.deal OR p.deal = ''
  ORDER BY d.last_day DESC NULLS LAST, d.deal_id
  LIMIT 1
)
SELECT c.happened_at, c.kind AS what, c.title AS about, c.name AS who, NULL AS stage, NULL AS amount, NULL AS close_date
FROM chosen
JOIN deal_conversations c USING (deal_id)
UNION ALL
SELECT v.from_at, CASE WHEN v.is_first_read THEN 'first read' ELSE 'change' END, v.outcome, m.name, v.stage, v.amount,
  v.close_date
FROM chosen
JOIN deal_versions v USING (deal_id)
LEFT JOIN live_members m ON m.id = v.owner_id
ORDER BY happened_at NULLS FIRST, what, about NULLS LAST, who NULLS LAST;
