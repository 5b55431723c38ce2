-- How many e-mails to customers and meetings with them did each team have, week by week?
--
-- Parameters:
--   period   which weeks
--
-- Teams and members as they are now; a week without anything has a row. An e-mail or a meeting counts once for a team,
-- whoever of the team wrote it or was invited. not_known counts those of which it is not known whether a customer took
-- part. Meetings that are withheld count for no team.
WITH parameters AS (SELECT 'last 12 weeks' AS period),
days AS (
  SELECT p.day, p.week
  FROM parameters
  JOIN period_days p USING (period)
),
done AS (
  SELECT t.team_id, d.week, r.kind, r.conversation_id, r.is_external
  FROM days d
  JOIN conversation_people r ON r.day = d.day AND r.role IN ('FROM', 'owner', 'attendee')
  JOIN live_team_members t ON t.member_id = r.member_id
  WHERE r.kind = 'mail' OR coalesce(r.is_readable, true)
)
SELECT t.name AS team, w.week,
  count(DISTINCT CASE WHEN d.is_external AND d.kind = 'mail' THEN d.conversation_id END) AS mails,
  count(DISTINCT CASE WHEN d.is_external AND d.kind = 'meeting' THEN d.conversation_id END) AS meetings,
  count(DISTINCT CASE WHEN d.is_external IS NULL THEN d.conversation_id END) AS not_known, t.id AS team_id
FROM (SELECT DISTINCT week FROM days) w
CROSS JOIN live_teams t
LEFT JOIN done d ON d.team_id = t.id AND d.week = w.week
GROUP BY t.name, t.id, w.week
ORDER BY t.name, t.id, w.week;
