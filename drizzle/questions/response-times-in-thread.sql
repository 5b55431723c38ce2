-- In one thread of e-mails: how long did each side take to answer the other?
--
-- Parameters:
--   thread         the thread; by default that of the newest e-mail which is at least the third of its thread
--   own_domains    the second query: domains that are ours, by default those of all members, former members included
--
-- An e-mail answers when the one before it came from the other side. Hours are hours of the clock, nights included. The
-- sender is whom the API lists first in the e-mail's first copy, the thread that of the first copy which has one.
WITH parameters AS (
  SELECT
    (SELECT m.thread_id FROM live_messages m
     WHERE (SELECT count(*) FROM live_messages o WHERE o.thread_id = m.thread_id AND o.received_at < m.received_at) >= 2
     ORDER BY m.received_at DESC, m.header_message_id LIMIT 1) AS thread
),
own_domains AS (
  SELECT DISTINCT lower(substr(email, instr(email, '@') + 1)) AS domain FROM members WHERE email LIKE '%@%'
),
mails AS (
  SELECT m.header_message_id, m.received_at, m.subject, x.handle,
    CASE WHEN x.handle NOT LIKE '%@%' OR x.handle IS NULL THEN NULL
      WHEN lower(substr(x.handle, instr(x.handle, '@') + 1)) IN (SELECT domain FROM own_domains) THEN 'ours'
      ELSE 'theirs' END AS side
  FROM parameters p
  CROSS JOIN live_messages m ON m.thread_id = p.thread
  LEFT JOIN message_copy_participants x ON x.message_id = m.id AND x.position = 0 AND x.role = 'FROM'
),
sequence AS (
  SELECT *, lag(side) OVER thread AS side_before, lag(received_at) OVER thread AS received_before
  FROM mails
  WINDOW thread AS (ORDER BY received_at, header_message_id)
)
SELECT
  substr(received_at, 1, 16) AS received,
  coalesce(side, 'unknown') AS side,
  handle AS sender,
  CASE WHEN side <> side_before
    THEN round((julianday(received_at) - julianday(received_before)) * 24, 1) END AS answered_after_hours,
  coalesce(subject, '(no subject, or hidden)') AS subject
FROM sequence
ORDER BY received_at, header_message_id;
