-- How long do customers wait for our reply, in working hours, by who replies?
--
-- Parameters:
--   period   when we replied
--
-- Customers are contacts of the CRM and people of its companies. The time is from the first e-mail that waits to the
-- reply. Replies so late that they take up an old conversation are left out, and so are those to groups. The row
-- without a member is for addresses of ours that no member has now.
WITH parameters AS (SELECT 'last 90 days' AS period),
replies AS (
  SELECT m.id AS member_id, m.name AS member, q.work_hours AS hours,
    count(q.work_hours) OVER (PARTITION BY m.id) AS timed,
    row_number() OVER (PARTITION BY m.id ORDER BY q.work_hours NULLS LAST) AS place
  FROM parameters
  JOIN period_days p USING (period)
  JOIN mail_questions q ON q.answered_day = p.day AND q.is_customer AND q.is_counted
  LEFT JOIN live_members m ON m.id = q.answered_member_id
)
SELECT member, count(*) AS replies,
  round(avg(CASE WHEN 2 * place BETWEEN timed AND timed + 2 THEN hours END), 1) AS median_hours,
  round(avg(hours), 1) AS mean_hours, round(max(hours), 1) AS slowest_hours, member_id
FROM replies
GROUP BY member, member_id
ORDER BY replies DESC, member_id NULLS LAST;
