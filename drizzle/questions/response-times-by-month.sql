-- How fast are e-mails answered, by us and by them, month by month?
--
-- Parameters:
--   since, until   answers received from this day on and before that one: the last twelve months
--   own_domains    the second query: domains that are ours, by default those of all members, former members included
--
-- An e-mail answers those of the other side in its thread that its own side has not answered yet. Medians are in hours
-- of the clock, nights included: from_first counts from the first of those e-mails, from_last from the last, which a
-- reminder makes shorter. E-mails of the same instant do not answer each other. Mailboxes may number their threads each
-- on their own: the thread with the latest e-mail before an answer counts. What is answered may have come before
-- the period. E-mails without a thread or a sender, whom the API lists first, are left out.
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
  CROSS JOIN live_messages m ON m.received_at < p.until
  JOIN live_message_copies c ON c.mail_id = m.header_message_id AND c.thread_id IS NOT NULL
  JOIN message_copy_participants x ON x.message_id = c.id AND x.position = 0 AND x.role = 'FROM' AND x.handle LIKE '%@%'
),
mails AS (
  SELECT mail, thread_id, max(received_at) AS received_at, max(is_ours) AS is_ours
  FROM copies
  GROUP BY mail, thread_id
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
),
-- The thread of each e-mail that has the latest e-mail before it.
latest AS (
  SELECT *, row_number() OVER (PARTITION BY mail ORDER BY received_before DESC, last_at DESC, first_at) AS place
  FROM answers
),
timed AS (
  SELECT substr(received_at, 1, 7) AS month, is_ours,
    (julianday(received_at) - julianday(first_at)) * 24 AS from_first,
    (julianday(received_at) - julianday(last_at)) * 24 AS from_last
  FROM parameters p
  CROSS JOIN latest ON received_at >= p.since
  WHERE place = 1 AND last_at IS NOT NULL
),
placed AS (
  SELECT *,
    row_number() OVER (PARTITION BY month, is_ours ORDER BY from_first) AS first_place,
    row_number() OVER (PARTITION BY month, is_ours ORDER BY from_last) AS last_place,
    count(*) OVER (PARTITION BY month, is_ours) AS answers
  FROM timed
),
medians AS (
  SELECT month, is_ours, count(*) AS answers,
    round(avg(from_first) FILTER (WHERE first_place IN ((answers + 1) / 2, (answers + 2) / 2)), 1) AS from_first,
    round(avg(from_last) FILTER (WHERE last_place IN ((answers + 1) / 2, (answers + 2) / 2)), 1) AS from_last
  FROM placed
  GROUP BY month, is_ours
)
SELECT
  month,
  coalesce(max(answers) FILTER (WHERE is_ours), 0) AS our_answers,
  max(from_first) FILTER (WHERE is_ours) AS our_hours_from_first,
  max(from_last) FILTER (WHERE is_ours) AS our_hours_from_last,
  coalesce(max(answers) FILTER (WHERE NOT is_ours), 0) AS their_answers,
  max(from_first) FILTER (WHERE NOT is_ours) AS their_hours_from_first,
  max(from_last) FILTER (WHERE NOT is_ours) AS their_hours_from_last
FROM medians
GROUP BY month
ORDER BY month;
