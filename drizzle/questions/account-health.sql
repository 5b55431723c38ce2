-- When did we last have two-way contact with each account?
--
-- Parameters:
--   cooling, cold   days without contact after which an account is cooling, and cold
--
-- Every company of the CRM, but those of partners, with the conversations that belong to it. Two-way is a meeting of
-- both sides, or an e-mail that answers the other side. withheld counts later meetings that are withheld: they may have
-- been contact. outcome_unknown counts deals of which nothing says whether they are open. Amounts are in the currency
-- of reports.
WITH parameters AS (SELECT 14 AS cooling, 30 AS cold)
SELECT a.company, a.owner, CASE WHEN a.days_since_two_way <= q.cooling THEN 'good'
    WHEN a.days_since_two_way <= q.cold THEN 'cooling' ELSE 'cold' END AS health, a.days_since_two_way AS days_since,
  a.last_two_way_day, a.open_deals, a.open_amount, a.withheld_meetings AS withheld, a.unknown_deals AS outcome_unknown,
  a.company_id
FROM parameters q
CROSS JOIN company_facts a
WHERE NOT a.is_partner
ORDER BY a.days_since_two_way DESC NULLS FIRST, a.company_id;
