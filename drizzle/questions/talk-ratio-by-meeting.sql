-- How much of each meeting with customers did our side speak?
--
-- Parameters:
--   period   when the meetings were
--
-- Percentages are of the meeting's own sum, since the API states no unit for a speaker's share. other_percent is of
-- partners, and of speakers whom no name of the meeting matches; a speaker whose name two people have is left out.
-- Meetings that are withheld are left out.
WITH parameters AS (SELECT 'last 90 days' AS period)
SELECT c.happened_at, c.title AS meeting, o.name AS owner, count(r.speaker_ratio) AS speakers,
  round(1e2 * sum(CASE WHEN r.side = 'ours' THEN r.speaker_ratio ELSE 0 END) / nullif(sum(r.speaker_ratio), 0), 1)
    AS ours_percent,
  round(1e2 * sum(CASE WHEN r.side = 'theirs' THEN r.speaker_ratio ELSE 0 END) / nullif(sum(r.speaker_ratio), 0), 1)
    AS theirs_percent,
  round(1e2 * sum(CASE WHEN r.side IN ('ours', 'theirs') THEN 0 ELSE r.speaker_ratio END)
    / nullif(sum(r.speaker_ratio), 0), 1) AS other_percent, c.conversation_id AS meeting_id
FROM parameters
JOIN period_days p USING (period)
JOIN conversations c ON c.kind = 'meeting' AND c.is_external AND c.day = p.day
JOIN conversation_people r ON r.kind = 'meeting' AND r.conversation_id = c.conversation_id
LEFT JOIN people o ON o.person_id = c.person_id
GROUP BY c.happened_at, c.title, o.name, c.conversation_id
ORDER BY c.happened_at DESC, c.conversation_id;
