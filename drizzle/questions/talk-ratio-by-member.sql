-- How much of the time do our people talk in meetings with customers?
--
-- Parameters:
--   period   when the meetings were
--
-- The mean of the member's own share in each meeting. without_share counts meetings in which no speaker has the member's
-- name, or another person has it too; they are in no mean.
WITH parameters AS (SELECT 'last 90 days' AS period),
shares AS (
  SELECT m.id AS member_id, m.name AS member, 1e2 * max(r.speaker_ratio) AS share,
    count(max(r.speaker_ratio)) OVER (PARTITION BY m.id) AS timed,
    row_number() OVER (PARTITION BY m.id ORDER BY max(r.speaker_ratio) NULLS LAST) AS place
  FROM parameters
  JOIN period_days p USING (period)
  JOIN conversation_people r ON r.kind = 'meeting' AND r.is_external AND r.day = p.day
  JOIN live_members m ON m.id = r.member_id
  GROUP BY m.id, m.name, r.conversation_id
)
SELECT member, count(*) AS meetings,
  round(avg(CASE WHEN 2 * place BETWEEN timed AND timed + 2 THEN share END), 1) AS median_percent,
  round(avg(share), 1) AS mean_percent, count(*) - count(share) AS without_share, member_id
FROM shares
GROUP BY member, member_id
ORDER BY meetings DESC, member_id;
