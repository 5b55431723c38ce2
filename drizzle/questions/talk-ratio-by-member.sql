-- How much of the time do our people talk in meetings with customers?
--
-- Parameters:
--   period   when the meetings were
--
-- The mean of the member's own share in each meeting. without_share counts meetings in which no speaker has the member's
-- name, or another person has it too; they are in no mean.
WITH parameters AS (SELECT 'last 90 days' AS period),
placed AS (
  SELECT c.member_id, c.member, c.talk_percent, count(c.talk_percent) OVER (PARTITION BY c.member_id) AS timed,
    row_number() OVER (PARTITION BY c.member_id ORDER BY c.talk_percent NULLS LAST) AS place
  FROM parameters
  JOIN period_days p USING (period)
  JOIN member_conversations c ON c.day = p.day AND c.kind = 'meeting' AND c.is_external
)
SELECT member, count(*) AS meetings,
  round(avg(CASE WHEN 2 * place BETWEEN timed AND timed + 2 THEN talk_percent END), 1) AS median_percent,
  round(avg(talk_percent), 1) AS mean_percent, count(*) - count(talk_percent) AS without_share, member_id
FROM placed
GROUP BY member, member_id
ORDER BY meetings DESC, member_id;
