-- Whom did we write to who has opted out of e-mails?
--
-- Parameters:
--   period   when we wrote
--
-- Contacts who have opted out now, at any of their addresses. group_mails counts those of the e-mails that went to
-- groups.
WITH parameters AS (SELECT 'last 90 days' AS period)
SELECT k.contact, k.company, k.owner, count(DISTINCT conversation_id) AS mails,
  count(DISTINCT CASE WHEN c.is_group_email THEN conversation_id END) AS group_mails, max(c.day) AS last_day, k.contact_id
FROM parameters
JOIN period_days p USING (period)
JOIN conversations c ON c.day = p.day AND c.side = 'ours'
JOIN conversation_people r USING (kind, conversation_id)
JOIN contacts k ON k.contact_id = r.contact_id AND k.is_opted_out
WHERE kind = 'mail' AND r.role <> 'FROM'
GROUP BY k.contact, k.company, k.owner, k.contact_id
ORDER BY mails DESC, k.contact_id;
