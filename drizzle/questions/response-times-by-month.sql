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
  SELECT p.month, CASE q.side WHEN 'ours' THEN 'theirs' ELSE 'ours' END AS answered_by, q.hours, q.work_hours,
    count(*) OVER (PARTITION BY p.month, q.side) AS answers,
    row_number() OVER (PARTITION BY p.month, q.side ORDER BY q.hours) AS place,
    row_number() OVER (PARTITION BY p.month, q.side ORDER BY q.work_hours) AS work_place
  FROM parameters
  JOIN period_days p USING (period)
  JOIN mail_questions q ON q.answered_day = p.day AND q.is_counted
)
SELECT month, answered_by, answers,
  round(avg(CASE WHEN 2 * place BETWEEN answers AND answers + 2 THEN hours END), 1) AS median_hours,
  round(avg(CASE WHEN 2 * work_place BETWEEN answers AND answers + 2 THEN work_hours END), 1) AS median_work_hours
FROM answers
GROUP BY month, answered_by, answers
ORDER BY month, answered_by;
