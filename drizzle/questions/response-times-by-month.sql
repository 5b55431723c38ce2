-- How fast are e-mails answered, by us and by them, month by month?
--
-- Parameters:
--   since, until   answers received from this day on and before that one: the last twelve months
--   own_domains    the second query: domains that are ours, by default those of all members, former members included
--
-- An e-mail answers when the one before it in its thread came from the other side, within this time. Mailboxes may number
-- their threads each on their own: of all threads in which its copies are, the latest e-mail before it counts. Hours are
-- hours of the clock, nights included. E-mails without a thread or a sender, whom the API lists first, are left out.
WITH parameters AS (
  SELECT
    date('now', 'start of month', '-11 months') AS since,
    date('now', '+1 day') AS until
),
own_domains AS (
  SELECT DISTINCT lower(substr(email, instr(email, '@') + 1)) AS domain FROM members WHERE email LIKE '%@%'
),
copies AS (
  SELECT c.mail_id AS mail, c.thread_id, m.received_at,
    lower(substr(x.handle, instr(x.handle, '@') + 1)) IN (SELECT domain FROM own_domains) AS is_ours
  FROM parameters p
  CROSS JOIN live_messages m ON m.received_at >= p.since AND m.received_at < p.until
  JOIN live_message_copies c ON c.mail_id = m.header_message_id AND c.thread_id IS NOT NULL
  JOIN message_copy_participants x ON x.message_id = c.id AND x.position = 0 AND x.role = 'FROM' AND x.handle LIKE '%@%'
),
mails AS (
  SELECT mail, thread_id, max(received_at) AS received_at, max(is_ours) AS is_ours
  FROM copies
  GROUP BY mail, thread_id
),
sequence AS (
  SELECT mail, received_at, is_ours, lag(is_ours) OVER thread AS was_ours,
    lag(received_at) OVER thread AS received_before
  FROM mails
  WINDOW thread AS (PARTITION BY thread_id ORDER BY received_at, mail)
),
latest AS (
  SELECT *, row_number() OVER (PARTITION BY mail ORDER BY received_before DESC) AS place
  FROM sequence
),
pairs AS (
  SELECT substr(received_at, 1, 7) AS month, is_ours, was_ours,
    (julianday(received_at) - julianday(received_before)) * 24 AS hours
  FROM latest
  WHERE place = 1
),
answers AS (
  SELECT month, is_ours, hours,
    row_number() OVER (PARTITION BY month, is_ours ORDER BY hours) AS place,
    count(*) OVER (PARTITION BY month, is_ours) AS answers
  FROM pairs
  WHERE is_ours <> was_ours
)
SELECT
  month,
  count(*) FILTER (WHERE is_ours) AS our_answers,
  round(avg(hours) FILTER (WHERE is_ours AND place IN ((answers + 1) / 2, (answers + 2) / 2)), 1) AS our_median_hours,
  count(*) FILTER (WHERE NOT is_ours) AS their_answers,
  round(avg(hours) FILTER (WHERE NOT is_ours AND place IN ((answers + 1) / 2, (answers + 2) / 2)), 1)
    AS their_median_hours
FROM answers
GROUP BY month
ORDER BY month;
