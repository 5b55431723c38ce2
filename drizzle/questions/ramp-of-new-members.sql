-- How much do new members have to do with customers in their first three months?
--
-- Parameters:
--   period     when their first conversation was
--   leave_out  members whose first conversation was in so many first days of all: they may have been there before
--
-- E-mails to customers and meetings with them in the first 30 days, in the next 30, and in those after. The first day is
-- that of the first conversation that parley knows. days_here says how many days are over.
WITH parameters AS (SELECT 'last 365 days' AS period, 30 AS leave_out),
starters AS (
  SELECT a.member_id, a.name AS member, p.day AS first_day, p.day_number, p.days_ago AS days_here
  FROM parameters q
  JOIN period_days p ON p.period = q.period
  JOIN parties a ON a.first_seen_day = p.day
  JOIN live_members m ON m.id = a.member_id
  WHERE p.day_number - q.leave_out >=
    (SELECT min(k.day_number) FROM parties o JOIN calendar k ON k.day = o.first_seen_day)
),
done AS (
  SELECT DISTINCT s.member_id, r.kind, r.conversation_id, k.day_number - s.day_number AS days
  FROM starters s
  JOIN conversation_people r ON r.member_id = s.member_id AND r.role IN ('FROM', 'owner', 'attendee') AND r.is_external
  JOIN calendar k ON k.day = r.day
)
SELECT s.member, s.first_day, s.days_here, count(CASE WHEN d.days < 30 THEN 1 END) AS days_1_to_30,
  count(CASE WHEN d.days BETWEEN 30 AND 59 THEN 1 END) AS days_31_to_60,
  count(CASE WHEN d.days BETWEEN 60 AND 89 THEN 1 END) AS days_61_to_90,
  count(CASE WHEN d.days < 90 AND d.kind = 'meeting' THEN 1 END) AS meetings, s.member_id
FROM starters s
LEFT JOIN done d ON d.member_id = s.member_id
GROUP BY s.member, s.first_day, s.days_here, s.member_id
ORDER BY s.first_day DESC, s.member_id;
