-- In one thread of e-mails: how long did each side take to answer the other?
--
-- Parameters:
--   thread         the thread; by default that of the newest e-mail which is at least the third of its thread
--   own_domains    the second query: domains that are ours, by default those of all members, former members included
--
-- An e-mail answers those of the other side that its own side has not answered yet: hours_from_first counts from the
-- first of them, hours_from_last from the last. Hours are hours of the clock, nights included. E-mails of the same
-- instant do not answer each other, and those of an unknown sender neither ask nor answer. The sender is whom the API
-- lists first in the e-mail's first copy, the thread that of the first copy which has one.
WITH parameters AS (
  SELECT
    (SELECT m.thread_id FROM live_messages m
     WHERE (SELECT count(*) FROM live_messages o WHERE o.thread_id = m.thread_id AND o.received_at < m.received_at) >= 2
       AND m.received_at > '0'
     ORDER BY m.received_at DESC, m.header_message_id LIMIT 1) AS thread
),
own_domains AS (
  SELECT DISTINCT lower(substr(email, instr(email, '@') + 1)) AS domain FROM members WHERE email LIKE '%@%'
),
written AS (
  SELECT m.header_message_id AS mail, m.thread_id, m.received_at, m.subject, x.handle,
    CASE WHEN x.handle LIKE '%@%'
      THEN lower(substr(x.handle, instr(x.handle, '@') + 1)) IN (SELECT domain FROM own_domains) END AS is_ours
  FROM parameters p
  CROSS JOIN live_messages m ON m.thread_id = p.thread
  LEFT JOIN message_copy_participants x ON x.message_id = m.id AND x.position = 0 AND x.role = 'FROM'
),
mails AS (
  SELECT mail, thread_id, received_at, is_ours FROM written WHERE is_ours IS NOT NULL
),
turns AS (
  SELECT thread_id, received_at, is_ours, min(mail) AS mail
  FROM mails
  GROUP BY thread_id, received_at, is_ours
),
sides AS (
  SELECT thread_id, received_at, is_ours, mail,
    max(received_at) OVER earlier AS received_before,
    max(received_at) FILTER (WHERE is_ours) OVER earlier AS ours_before,
    max(received_at) FILTER (WHERE NOT is_ours) OVER earlier AS theirs_before,
    max(received_at) FILTER (WHERE is_ours) OVER so_far AS ours_so_far,
    max(received_at) FILTER (WHERE NOT is_ours) OVER so_far AS theirs_so_far
  FROM turns
  WINDOW earlier AS (PARTITION BY thread_id ORDER BY received_at GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
    so_far AS (PARTITION BY thread_id ORDER BY received_at)
),
-- An e-mail is the first that waits for an answer if the other side wrote since the one before it of its own side.
waits AS (
  SELECT *, CASE
    WHEN is_ours AND (ours_before IS NULL OR ours_before < theirs_so_far) THEN received_at
    WHEN NOT is_ours AND (theirs_before IS NULL OR theirs_before < ours_so_far) THEN received_at END AS waits_from
  FROM sides
),
answers AS (
  SELECT mail, is_ours, received_at, received_before,
    CASE WHEN is_ours THEN max(waits_from) FILTER (WHERE NOT is_ours) OVER earlier
      ELSE max(waits_from) FILTER (WHERE is_ours) OVER earlier END AS first_at,
    CASE WHEN is_ours AND (ours_before IS NULL OR ours_before <= theirs_before) THEN theirs_before
      WHEN NOT is_ours AND (theirs_before IS NULL OR theirs_before <= ours_before) THEN ours_before END AS last_at
  FROM waits
  WINDOW earlier AS (PARTITION BY thread_id ORDER BY received_at GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
SELECT
  substr(w.received_at, 1, 16) AS received,
  CASE WHEN w.is_ours THEN 'ours' WHEN NOT w.is_ours THEN 'theirs' ELSE 'unknown' END AS side,
  w.handle AS sender,
  round((julianday(w.received_at) - julianday(CASE WHEN a.last_at IS NOT NULL THEN a.first_at END)) * 24, 1)
    AS hours_from_first,
  round((julianday(w.received_at) - julianday(a.last_at)) * 24, 1) AS hours_from_last,
  coalesce(w.subject, '(no subject, or hidden)') AS subject
FROM written w
LEFT JOIN answers a ON a.mail = w.mail
ORDER BY w.received_at, w.mail;
