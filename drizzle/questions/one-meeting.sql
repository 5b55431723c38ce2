-- What was one meeting about: its chapters and action items in the order of the talk?
--
-- Parameters:
--   meeting        the meeting's id; by default the newest one with a summary
--
-- at is the API's number for the position in the meeting. The API does not state its unit.
WITH parameters AS (
  SELECT
    (SELECT m.id FROM live_meetings m
     WHERE EXISTS (SELECT 1 FROM live_meeting_chapters c WHERE c.meeting_id = m.id) AND m.start_time > '0'
     ORDER BY m.start_time DESC, m.id LIMIT 1) AS meeting
),
points AS (
  SELECT i.time, 'point' AS what, c.title AS chapter, i.item AS text, NULL AS due_date, c.position AS place, i.position
  FROM parameters p
  CROSS JOIN live_meeting_chapters c ON c.meeting_id = p.meeting
  JOIN live_meeting_chapter_items i ON i.meeting_id = c.meeting_id AND i.chapter_position = c.position
  UNION ALL
  SELECT i.time, CASE WHEN i.completed THEN 'action, done' ELSE 'action, open' END, NULL, i.text, i.due_date, 1e9,
    i.position
  FROM parameters p
  CROSS JOIN live_meeting_action_items i ON i.meeting_id = p.meeting
)
SELECT time AS at, what, chapter, text, due_date
FROM points
ORDER BY time, place, position;
