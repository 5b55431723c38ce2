-- How much do new members have to do with customers in their first three months?
--
-- Parameters:
--   period     when their first conversation was
--   leave_out  members whose first conversation was in so many first days of all: they may have been there before
--
-- E-mails to customers and meetings with them in the first 30 days, in the next 30, and in those after. The first day is
-- that of the first conversation that parley knows. days_here says how many days are over.
WITH parameters AS (SELECT 'last 365 days' AS period, 30 AS leave_out)
SELECT m.name AS member, p.day AS first_day, p.days_ago AS days_here,
  count(CASE WHEN c.days_since_first < 30 THEN 1 END) AS days_1_to_30,
  count(CASE WHEN c.days_since_first BETWEEN 30 AND 59 THEN 1 END) AS days_31_to_60,
  count(CASE WHEN c.days_since_first BETWEEN 60 AND 89 THEN 1 END) AS days_61_to_90,
  count(CASE WHEN c.days_since_first < 90 AND c.kind = 'meeting' THEN 1 END) AS meetings, m.id AS member_id
FROM parameters q
JOIN period_days p ON p.period = q.period
JOIN parties a ON a.first_seen_day = p.day
JOIN live_members m ON m.id = a.member_id
LEFT JOIN member_conversations c ON c.member_id = m.id AND c.is_external
WHERE p.day_number - q.leave_out >=
  (SELECT min(k.day_number) FROM parties o JOIN calendar k ON k.day = o.first_seen_day)
GROUP BY m.name, p.day, p.days_ago, m.id
ORDER BY p.day DESC, m.id;
