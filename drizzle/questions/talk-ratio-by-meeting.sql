-- How much of each meeting with customers did our side speak?
--
-- Parameters:
--   period   when the meetings were
--
-- Percentages are of the meeting's own sum, since the API states no unit for a speaker's share. other_percent is of
-- partners, and of speakers whose name no one of the meeting has, or two people have. Meetings that are withheld are
-- left out.
WITH parameters AS (SELECT 'last 90 days' AS period)
SELECT t.happened_at, t.title AS meeting, t.owner, t.speakers, round(t.ours_percent, 1) AS ours_percent,
  round(t.theirs_percent, 1) AS theirs_percent, round(t.other_percent, 1) AS other_percent,
  t.conversation_id AS meeting_id
FROM parameters
JOIN period_days p USING (period)
JOIN talk_ratios t ON t.day = p.day AND t.is_external
ORDER BY t.happened_at DESC, t.conversation_id;
