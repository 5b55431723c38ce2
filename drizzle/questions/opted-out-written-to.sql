-- Whom did we write to who has opted out of e-mails?
--
-- Parameters:
--   period   when we wrote
--
-- Contacts who have opted out now, at any of their addresses. group_mails counts those of the e-mails that went to
-- groups.
WITH parameters AS (SELECT 'last 90 days' AS period)
SELECT k.contact, k.company, k.owner, count(DISTINCT c.conversation_id) AS mails,
  count(DISTINCT CASE WHEN c.is_group_email THEN c.conversation_id END) AS group_mails, max(c.day) AS last_day,
  k.contact_id
FROM parameters
JOIN period_days p USING (period)
JOIN conversations c ON c.kind = 'mail' AND c.side = 'ours' AND c.day = p.day
JOIN conversation_people r ON r.kind = c.kind AND r.conversation_id = c.conversation_id AND r.role <> 'FROM'
JOIN contacts k ON k.contact_id = r.contact_id AND k.is_opted_out
GROUP BY k.contact, k.company, k.owner, k.contact_id
ORDER BY mails DESC, k.contact_id;
