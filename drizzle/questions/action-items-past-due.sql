-- Which action items of meetings are past their due day and not done?
--
-- Parameters:
--   today          the day that is not yet past
--   since          meetings that began from this day on: a year; older promises are mostly history
--
-- Items without a due day, and meetings that the API withholds, are left out; a state that the API does not tell counts
-- as not done.
WITH parameters AS (
  SELECT
    date('now') AS today,
    date('now', '-1 year') AS since
)
SELECT
  CAST(julianday(p.today) - julianday(i.due_date) AS BIGINT) AS days_late,
  i.due_date,
  coalesce(m.owner_name, m.owner_email, 'nobody') AS meeting_owner,
  i.text AS action_item,
  coalesce(m.title, '(no title)') AS meeting,
  substr(m.start_time, 1, 10) AS met_on,
  m.url
FROM parameters p
CROSS JOIN live_meetings m ON m.start_time >= p.since AND m.access = 'open'
JOIN live_meeting_action_items i ON i.meeting_id = m.id
WHERE i.due_date < p.today AND i.completed IS NOT 1
ORDER BY i.due_date, meeting_owner, m.id, i.position;
