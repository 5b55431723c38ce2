-- Whose deal is it when the owner has left?
--
-- Parameters:
--   period   when others were in touch
--
-- Open deals of owners who are no members now, with the member who was in touch most often: by e-mails, but not to
-- groups, and by meetings. Deals of which nothing says whether they are open are here too: see outcome. In meetings
-- that are withheld others may have been in touch.
WITH parameters AS (SELECT 'last 90 days' AS period),
talks AS (
  SELECT d.deal_id, c.member_id, c.member, count(*) AS times, max(c.day) AS last_day, row_number() OVER
    (PARTITION BY d.deal_id ORDER BY count(*) DESC, max(c.happened_at) DESC, c.member_id) AS place
  FROM parameters
  JOIN period_days p USING (period)
  JOIN member_conversations c ON c.day = p.day AND NOT coalesce(c.is_group_email, false)
  JOIN deal_conversations d USING (kind, conversation_id)
  GROUP BY d.deal_id, c.member_id, c.member
)
SELECT d.deal, d.amount, d.currency, d.amount_reporting, d.owner, t.member, coalesce(t.times, 0) AS times_in_touch,
  t.last_day, d.outcome, d.deal_id, t.member_id
FROM deals d
LEFT JOIN talks t ON t.deal_id = d.deal_id AND t.place = 1
WHERE d.owner_state = 'left' AND d.outcome IN ('open', 'unknown')
ORDER BY d.amount_reporting DESC NULLS LAST, d.amount DESC NULLS LAST, d.deal_id;
