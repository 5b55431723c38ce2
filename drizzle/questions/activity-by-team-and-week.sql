-- How many e-mails to customers and meetings with them did each team have, week by week?
--
-- Parameters:
--   period   which weeks
--
-- Teams and members as they are now; a week without anything has a row. An e-mail or a meeting counts once for a team,
-- whoever of the team wrote it or was invited. not_known counts those of which it is not known whether a customer took
-- part. Meetings that are withheld count for no team.
WITH parameters AS (SELECT 'last 12 weeks' AS period)
SELECT t.name AS team, p.week,
  count(DISTINCT CASE WHEN c.is_external AND c.kind = 'mail' THEN c.conversation_id END) AS mails,
  count(DISTINCT CASE WHEN c.is_external AND c.kind = 'meeting' THEN c.conversation_id END) AS meetings,
  count(DISTINCT CASE WHEN c.is_external IS NULL THEN c.conversation_id END) AS not_known, t.id AS team_id
FROM parameters
JOIN period_days p USING (period)
CROSS JOIN live_teams t
LEFT JOIN live_team_members m ON m.team_id = t.id
LEFT JOIN member_conversations c ON c.member_id = m.member_id AND c.day = p.day
  AND (c.kind = 'mail' OR coalesce(c.is_readable, true))
GROUP BY t.name, t.id, p.week
ORDER BY t.name, t.id, p.week;
