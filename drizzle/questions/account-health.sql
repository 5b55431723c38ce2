-- When did we last have two-way contact with each account?
--
-- Parameters:
--   cooling, cold   days without contact after which an account is cooling, and cold
--
-- Every company of the CRM, but those of partners, with the conversations that belong to it. Two-way is a meeting of
-- both sides, or an e-mail that answers the other side. withheld counts later meetings that are withheld: they may have
-- been contact. outcome_unknown counts deals of which nothing says whether they are open. Amounts are in the currency
-- of reports.
WITH parameters AS (SELECT 14 AS cooling, 30 AS cold),
withheld AS (
  SELECT a.company_id, count(*) AS withheld
  FROM company_facts a
  JOIN record_conversations r ON r.object = a.object AND r.record_id = a.company_id
  JOIN conversations m ON m.kind = r.kind AND m.conversation_id = r.conversation_id
  WHERE m.kind = 'meeting' AND NOT m.is_readable AND (a.last_two_way_day IS NULL OR m.day > a.last_two_way_day)
  GROUP BY a.company_id
)
SELECT a.company, a.owner, CASE WHEN a.days_since_two_way <= q.cooling THEN 'good'
    WHEN a.days_since_two_way <= q.cold THEN 'cooling' ELSE 'cold' END AS health, a.days_since_two_way AS days_since,
  a.last_two_way_day, a.open_deals, a.open_amount, coalesce(w.withheld, 0) AS withheld,
  a.unknown_deals AS outcome_unknown, a.company_id
FROM parameters q
CROSS JOIN company_facts a
LEFT JOIN withheld w ON w.company_id = a.company_id
WHERE a.company_id NOT IN (SELECT company_id FROM parties WHERE side = 'partner' AND company_id IS NOT NULL)
ORDER BY a.days_since_two_way DESC NULLS FIRST, a.company_id;
