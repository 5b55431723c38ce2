-- How much did our side speak in meetings, month by month?
--
-- Parameters:
--   since, until   meetings that began from this day on and before that one: the last twelve months
--   external_only  1: only meetings with an attendee who is not on our side; 0: all of them
--
-- The mean of the meetings' own percentages, each meeting counting alike, since the API states no unit for a speaker's
-- share. Who is on our side is found as in talk-ratio-by-meeting.sql.
WITH parameters AS (
  SELECT
    date('now', 'start of month', '-11 months') AS since,
    date('now', '+1 day') AS until,
    1 AS external_only
),
speaking AS (
  SELECT m.id, m.start_time, s.speaker_ratio,
    (SELECT CASE WHEN min(a.is_internal) = max(a.is_internal) THEN max(a.is_internal) END
     FROM live_meeting_attendees a
     WHERE a.meeting_id = m.id AND a.name = s.speaker_name) AS is_ours
  FROM parameters p
  CROSS JOIN live_meetings m ON m.start_time >= p.since AND m.start_time < p.until AND m.access = 'open'
    AND (NOT p.external_only OR EXISTS (
      SELECT 1 FROM live_meeting_attendees o WHERE o.meeting_id = m.id AND o.is_internal = 0))
  LEFT JOIN live_meeting_speakers s ON s.meeting_id = m.id
),
by_meeting AS (
  SELECT substr(max(start_time), 1, 7) AS month,
    100 * coalesce(sum(speaker_ratio) FILTER (WHERE is_ours = 1), 0) / nullif(sum(speaker_ratio), 0) AS ours,
    100 * coalesce(sum(speaker_ratio) FILTER (WHERE is_ours = 0), 0) / nullif(sum(speaker_ratio), 0) AS theirs,
    100 * coalesce(sum(speaker_ratio) FILTER (WHERE is_ours IS NULL), 0) / nullif(sum(speaker_ratio), 0) AS unknown
  FROM speaking
  GROUP BY id
)
SELECT
  month,
  count(*) AS meetings,
  count(ours) AS with_speakers,
  round(avg(ours), 1) AS ours_percent,
  round(avg(theirs), 1) AS theirs_percent,
  round(avg(unknown), 1) AS unknown_percent
FROM by_meeting
GROUP BY month
ORDER BY month;
