-- In one thread of e-mails: how long did each side take to answer the other?
--
-- Parameters:
--   thread   the thread's id; none is that of the newest e-mail
--
-- A row begins with the first e-mail that waits for an answer; more of the same side may follow until last_asked_at.
-- While it waits, answered_at is NULL, and the hours count until the instant up to which the warehouse is complete.
WITH parameters AS (SELECT '' AS thread),
chosen AS (
  SELECT coalesce(nullif(p.thread, ''), m.thread_id) AS thread_id
  FROM parameters p
  CROSS JOIN live_messages m
  WHERE m.thread_id IS NOT NULL
  ORDER BY m.received_at DESC NULLS LAST, m.thread_id
  LIMIT 1
)
SELECT q.asked_at, q.side AS asked_by, q.person_id AS address, q.last_asked_at, q.answered_at, q.hours, q.work_hours,
  q.subject
FROM chosen
JOIN conversation_threads t USING (thread_id)
JOIN mail_questions q ON q.asked_mail_id = t.conversation_id
ORDER BY q.asked_at, q.asked_mail_id;
