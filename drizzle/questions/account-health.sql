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
open_deals AS (
  SELECT company_id, count(CASE WHEN outcome = 'open' THEN 1 END) AS open_deals,
    sum(CASE WHEN outcome = 'open' THEN amount_reporting END) AS open_amount,
    count(CASE WHEN outcome = 'unknown' THEN 1 END) AS outcome_unknown
  FROM deals
  GROUP BY company_id
),
accounts AS (
  SELECT c.company_id, c.company, c.owner, r.last_two_way_day, p.today_number - k.day_number AS days_since
  FROM periods p
  CROSS JOIN companies c
  JOIN report_settings o ON o.name = 'crm.company.object'
  LEFT JOIN record_activity r ON r.object = o.value AND r.record_id = c.company_id
  LEFT JOIN calendar k ON k.day = r.last_two_way_day
  LEFT JOIN (SELECT DISTINCT company_id FROM parties WHERE side = 'partner') x ON x.company_id = c.company_id
  WHERE p.period = 'this week' AND x.company_id IS NULL
),
withheld AS (
  SELECT a.company_id, count(*) AS withheld
  FROM accounts a
  JOIN report_settings o ON o.name = 'crm.company.object'
  JOIN record_conversations r ON r.object = o.value AND r.record_id = a.company_id AND r.kind = 'meeting'
  JOIN conversations m ON m.kind = 'meeting' AND m.conversation_id = r.conversation_id AND NOT m.is_readable
  WHERE a.last_two_way_day IS NULL OR r.day > a.last_two_way_day
  GROUP BY a.company_id
)
SELECT a.company, a.owner, CASE WHEN a.days_since <= q.cooling THEN 'good' WHEN a.days_since <= q.cold THEN 'cooling'
    ELSE 'cold' END AS health, a.days_since, a.last_two_way_day, coalesce(d.open_deals, 0) AS open_deals, d.open_amount,
  coalesce(w.withheld, 0) AS withheld, coalesce(d.outcome_unknown, 0) AS outcome_unknown, a.company_id
FROM parameters q
CROSS JOIN accounts a
LEFT JOIN open_deals d ON d.company_id = a.company_id
LEFT JOIN withheld w ON w.company_id = a.company_id
ORDER BY a.days_since DESC NULLS FIRST, a.company_id;
