-- Which action items of meetings are past their due day and not done?
--
-- Parameters:
--   period   when the meetings were: older promises are mostly history
--
-- An action item names no person: owner is who owned the meeting. is_completed is NULL where the API does not say it.
-- Items without a due day, and meetings that are withheld, are left out.
WITH parameters AS (SELECT 'last 365 days' AS period)
SELECT p.today_number - k.day_number AS days_late, i.due_day, i.owner, i.owner_state, i.promise, i.is_completed,
  m.title AS meeting, i.day AS met_on, m.url, i.action_item_id
FROM parameters
JOIN periods p USING (period)
JOIN promises i ON i.day >= p.from_day AND i.day < p.to_day AND i.due_day < p.today
JOIN live_meetings m ON m.id = i.meeting_id
LEFT JOIN calendar k ON k.day = i.due_day
WHERE NOT coalesce(i.is_completed, false)
ORDER BY i.due_day, i.owner NULLS LAST, i.meeting_id, i.action_item_id;
