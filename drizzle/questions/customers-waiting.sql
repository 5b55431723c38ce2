-- Which customers wait for our answer, and for how many working hours?
--
-- Parameters:
--   period   when they asked
--
-- Customers are contacts of the CRM and people of its companies. Waiting begins with the first e-mail that we have not
-- answered; e-mails to groups do not count, and a meeting is no answer. An e-mail that is in no thread cannot be
-- recognised as answered: see is_in_thread.
WITH parameters AS (SELECT 'last 30 days' AS period)
SELECT q.work_hours, q.asked_at, q.last_asked_at, q.name AS customer, q.company, q.person_id AS address, q.subject,
  q.thread_id IS NOT NULL AS is_in_thread, q.contact_id, q.asked_mail_id
FROM parameters
JOIN period_days p USING (period)
JOIN mail_questions q ON q.day = p.day
WHERE q.is_customer AND q.is_counted AND q.answered_at IS NULL
ORDER BY q.work_hours DESC NULLS LAST, q.asked_mail_id;
