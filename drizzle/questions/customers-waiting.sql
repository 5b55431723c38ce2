-- Which customers wait for our answer, and for how many working hours?
--
-- Parameters:
--   period   when they asked
--
-- Customers are contacts of the CRM and people of its companies. Waiting begins with the first e-mail that we have not
-- answered; e-mails to groups do not count, and a meeting is no answer. An e-mail that is in no thread cannot be
-- recognised as answered: see is_in_thread.
WITH parameters AS (SELECT 'last 30 days' AS period)
SELECT q.work_hours, q.asked_at, q.last_asked_at, q.name AS customer, c.company, q.person_id AS address,
  m.title AS subject, q.thread_id IS NOT NULL AS is_in_thread, q.contact_id, q.asked_mail_id
FROM parameters
JOIN period_days p USING (period)
JOIN mail_questions q ON q.day = p.day
JOIN conversations m ON m.kind = 'mail' AND m.conversation_id = q.asked_mail_id
LEFT JOIN companies c ON c.company_id = q.company_id
WHERE q.side = 'theirs' AND q.answered_at IS NULL AND q.is_counted
  AND coalesce(q.contact_id, q.company_id) IS NOT NULL
ORDER BY q.work_hours DESC NULLS LAST, q.asked_mail_id;
