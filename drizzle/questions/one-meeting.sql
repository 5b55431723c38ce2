-- What was one meeting about: its chapters and action items in the order of the talk?
--
-- Parameters:
--   meeting   the meeting's id; none is the newest one with a summary
--
-- place is the API's number for the position in the meeting. The API does not state its unit.
WITH parameters AS (SELECT '' AS meeting),
chosen AS (
  SELECT m.id AS meeting_id
  FROM parameters p
  CROSS JOIN live_meetings m
  WHERE m.id = p.meeting OR (p.meeting = '' AND m.id IN (SELECT meeting_id FROM live_meeting_chapters))
  ORDER BY m.start_time DESC NULLS LAST, m.id
  LIMIT 1
),
points AS (
  SELECT i.time AS place, 'point' AS what, c.title AS chapter, i.item AS about, NULL AS due_date,
    c.position AS chapter_position, i.position AS item_position
  FROM chosen
  JOIN live_meeting_chapters c USING (meeting_id)
  JOIN live_meeting_chapter_items i USING (meeting_id)
  WHERE i.chapter_position = c.position
  UNION ALL
  SELECT i.time, CASE WHEN i.completed THEN 'action, done' ELSE 'action, open' END, NULL, i.text, i.due_date, NULL,
    i.position
  FROM chosen
  JOIN live_meeting_action_items i USING (meeting_id)
)
SELECT place, what, chapter, about, due_date
FROM points
ORDER BY place NULLS FIRST, chapter_position NULLS LAST, item_position;
