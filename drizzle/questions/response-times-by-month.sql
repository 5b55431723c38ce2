-- How fast are e-mails answered, by us and by them, month by month?
--
-- Parameters:
--   period   when they were answered
--
-- Medians from the first e-mail that waits to the answer, in hours of the clock and in working hours. Mails to groups
-- alone, and answers that come so late that they take up an old conversation, are left out. So is what still waits: see
-- customers-waiting.sql.
WITH parameters AS (SELECT 'last 12 months' AS period),
answers AS (
  SELECT p.month, a.side, q.hours, q.work_hours, count(*) OVER (PARTITION BY p.month, a.side) AS answers,
    row_number() OVER (PARTITION BY p.month, a.side ORDER BY q.hours) AS place,
    row_number() OVER (PARTITION BY p.month, a.side ORDER BY q.work_hours) AS work_place
  FROM parameters
  JOIN period_days p USING (period)
  JOIN conversations a ON a.kind = 'mail' AND a.day = p.day
  JOIN mail_questions q ON q.answered_mail_id = a.conversation_id AND q.is_counted
)
SELECT month, side AS answered_by, answers,
  round(avg(CASE WHEN 2 * place BETWEEN answers AND answers + 2 THEN hours END), 1) AS median_hours,
  round(avg(CASE WHEN 2 * work_place BETWEEN answers AND answers + 2 THEN work_hours END), 1) AS median_work_hours
FROM answers
GROUP BY month, side, answers
ORDER BY month, side;
