-- Whose deal is it when the owner has left?
--
-- Parameters:
--   period   when others were in touch
--
-- Open deals of owners who are no members now, with the member who was in touch most often: by e-mails, but not to
-- groups, and by meetings. Deals of which nothing says whether they are open are here too: see outcome. In meetings
-- that are withheld others may have been in touch.
WITH parameters AS (SELECT 'last 90 days' AS period),
left_deals AS (
  SELECT * FROM deals WHERE owner_state = 'left' AND outcome IN ('open', 'unknown')
),
talks AS (
  SELECT d.deal_id, h.member_id, count(DISTINCT r.conversation_id) AS times, max(c.happened_at) AS last_at,
    max(r.day) AS last_day
  FROM parameters
  JOIN periods p USING (period)
  CROSS JOIN left_deals d
  JOIN report_settings o ON o.name = 'crm.deal.object'
  JOIN record_conversations r ON r.object = o.value AND r.record_id = d.deal_id AND r.day >= p.from_day AND r.day < p.to_day
  JOIN conversations c ON c.kind = r.kind AND c.conversation_id = r.conversation_id
    AND (c.is_group_email IS NULL OR NOT c.is_group_email)
  JOIN conversation_people h ON h.kind = r.kind AND h.conversation_id = r.conversation_id
    AND h.role IN ('FROM', 'owner', 'attendee')
  JOIN live_members m ON m.id = h.member_id
  GROUP BY d.deal_id, h.member_id
),
placed AS (
  SELECT talks.*, row_number() OVER (PARTITION BY deal_id ORDER BY times DESC, last_at DESC, member_id) AS place
  FROM talks
)
SELECT d.deal, d.amount, d.currency, d.amount_reporting, d.owner, m.name AS member, coalesce(t.times, 0) AS times_in_touch,
  t.last_day, d.outcome, d.deal_id, t.member_id
FROM left_deals d
LEFT JOIN placed t ON t.deal_id = d.deal_id AND t.place = 1
LEFT JOIN live_members m ON m.id = t.member_id
ORDER BY d.amount_reporting DESC NULLS LAST, d.amount DESC NULLS LAST, d.deal_id;
