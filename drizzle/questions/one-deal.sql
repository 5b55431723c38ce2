-- What happened in one deal, in order: e-mails, meetings and changes?
--
-- Parameters:
--   deal   the deal's id; none is the deal with the newest conversation
--
-- Changes are those that parley observed, at the time at which it did, with the values since then. The title of what is
-- withheld is not known.
WITH parameters AS (SELECT '' AS deal),
chosen AS (
  SELECT d.object, d.deal_id
  FROM parameters p
  JOIN deal_facts d ON d.deal_id = p.deal OR p.deal = ''
  ORDER BY d.last_day DESC NULLS LAST, d.deal_id
  LIMIT 1
),
told AS (
  SELECT c.happened_at, c.kind AS what, c.title AS about, a.name AS who, NULL AS stage, NULL AS amount,
    NULL AS close_date
  FROM chosen d
  JOIN record_conversations r ON r.object = d.object AND r.record_id = d.deal_id
  JOIN conversations c ON c.kind = r.kind AND c.conversation_id = r.conversation_id
  LEFT JOIN people a ON a.person_id = c.person_id
  UNION ALL
  SELECT v.from_at, CASE WHEN v.is_first_read THEN 'first read' ELSE 'change' END, v.outcome, m.name, v.stage, v.amount,
    v.close_date
  FROM chosen d
  JOIN deal_versions v ON v.deal_id = d.deal_id
  LEFT JOIN live_members m ON m.id = v.owner_id
)
SELECT happened_at, what, about, who, stage, amount, close_date
FROM told
ORDER BY happened_at NULLS FIRST, what, about NULLS LAST, who NULLS LAST;
