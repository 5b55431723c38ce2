-- How much of each meeting did our side speak?
--
-- Parameters:
--   since, until   meetings that began from this day on and before that one: the last 90 days
--   external_only  1: only meetings with an attendee who is not on our side; 0: all of them
--
-- The API gives the share of each speaker by name and does not state its unit, so percentages are of the meeting's own
-- sum. A speaker is on the side of the attendee of that name; a name that no attendee has, or one on either side, is
-- unknown. Meetings without speakers are left out.
WITH parameters AS (
  SELECT
    date('now', '-90 days') AS since,
    date('now', '+1 day') AS until,
    1 AS external_only
),
speaking AS (
  SELECT m.id, m.start_time, m.title, m.owner_name, s.speaker_ratio,
    (SELECT CASE WHEN min(a.is_internal) = max(a.is_internal) THEN max(a.is_internal) END
     FROM live_meeting_attendees a
     WHERE a.meeting_id = m.id AND a.name = s.speaker_name) AS is_ours
  FROM parameters p
  CROSS JOIN live_meetings m ON m.start_time >= p.since AND m.start_time < p.until AND m.access = 'open'
    AND (NOT p.external_only OR EXISTS (
      SELECT 1 FROM live_meeting_attendees o WHERE o.meeting_id = m.id AND o.is_internal = 0))
  JOIN live_meeting_speakers s ON s.meeting_id = m.id
)
SELECT
  substr(max(start_time), 1, 16) AS began,
  coalesce(max(title), '(no title)') AS meeting,
  max(owner_name) AS owner,
  count(*) AS speakers,
  round(100 * coalesce(sum(speaker_ratio) FILTER (WHERE is_ours = 1), 0) / nullif(sum(speaker_ratio), 0), 1) AS ours_percent,
  round(100 * coalesce(sum(speaker_ratio) FILTER (WHERE is_ours = 0), 0) / nullif(sum(speaker_ratio), 0), 1) AS theirs_percent,
  round(100 * coalesce(sum(speaker_ratio) FILTER (WHERE is_ours IS NULL), 0) / nullif(sum(speaker_ratio), 0), 1) AS unknown_percent
FROM speaking
GROUP BY id
ORDER BY max(start_time) DESC, id;
