-- How many e-mails did each member send and how many meetings did each hold, month by month?
--
-- Parameters:
--   since, until   from this day on and before that one: this month and the two before
--
-- Members are recognised by their address; former members are not shown. An e-mail counts once for each of its senders,
-- in whichever copy they are named, a meeting for its owner alone. Meetings that the API withholds are left out.
WITH parameters AS (
  SELECT
    date('now', 'start of month', '-2 months') AS since,
    date('now', '+1 day') AS until
),
done AS (
  SELECT DISTINCT lower(x.handle) AS email, substr(m.received_at, 1, 7) AS month, 'mail' AS what,
    m.header_message_id AS id
  FROM parameters p
  CROSS JOIN live_messages m ON m.received_at >= p.since AND m.received_at < p.until
  JOIN live_message_participants x ON x.header_message_id = m.header_message_id AND x.role = 'FROM'
  UNION ALL
  SELECT lower(m.owner_email), substr(m.start_time, 1, 7), 'meeting', m.id
  FROM parameters p
  CROSS JOIN live_meetings m ON m.start_time >= p.since AND m.start_time < p.until AND m.access = 'open'
)
SELECT
  d.month,
  max(g.name) AS member,
  count(*) FILTER (WHERE what = 'mail') AS mails_sent,
  count(*) FILTER (WHERE what = 'meeting') AS meetings_held
FROM done d
JOIN live_members g ON lower(g.email) = d.email
GROUP BY d.month, g.id
ORDER BY d.month DESC, mails_sent + meetings_held DESC, member, g.id;
