-- How much did our side speak in meetings with customers, month by month?
--
-- Parameters:
--   period   when the meetings were
--
-- The mean of each meeting's percentages. other_percent is of partners, and of speakers whom no name of the meeting
-- matches; a speaker whose name two people have is left out. not_known counts meetings that are withheld, or of which
-- it is not known who took part.
WITH parameters AS (SELECT 'last 12 months' AS period),
talks AS (
  SELECT p.month, c.conversation_id, c.is_external,
    1e2 * sum(CASE WHEN r.side = 'ours' THEN r.speaker_ratio ELSE 0 END) / nullif(sum(r.speaker_ratio), 0) AS ours,
    1e2 * sum(CASE WHEN r.side = 'theirs' THEN r.speaker_ratio ELSE 0 END) / nullif(sum(r.speaker_ratio), 0) AS theirs
  FROM parameters
  JOIN period_days p USING (period)
  JOIN conversations c ON c.kind = 'meeting' AND c.day = p.day
  LEFT JOIN conversation_people r ON r.kind = 'meeting' AND r.conversation_id = c.conversation_id
  WHERE c.is_external OR c.is_external IS NULL
  GROUP BY p.month, c.conversation_id, c.is_external
)
SELECT month, count(is_external) AS meetings, count(CASE WHEN is_external THEN ours END) AS with_speakers,
  round(avg(CASE WHEN is_external THEN ours END), 1) AS ours_percent,
  round(avg(CASE WHEN is_external THEN theirs END), 1) AS theirs_percent,
  round(avg(CASE WHEN is_external THEN 100 - ours - theirs END), 1) AS other_percent,
  count(*) - count(is_external) AS not_known
FROM talks
GROUP BY month
ORDER BY month;
