-- How many e-mails did each member send and how many meetings did each hold, month by month?
--
-- Parameters:
--   period   which months
--
-- An e-mail counts for its sender, a meeting for its owner alone, within the company and with others. not_known counts
-- those of which it is not known whether a customer took part. Former members are left out, and so are meetings that
-- are withheld or not read yet.
WITH parameters AS (SELECT 'last 12 months' AS period)
SELECT p.month, c.member,
  count(CASE WHEN c.kind = 'mail' THEN 1 END) AS mails_sent,
  count(CASE WHEN c.kind = 'meeting' THEN 1 END) AS meetings_held,
  count(CASE WHEN c.is_external THEN 1 END) AS with_customers,
  count(*) - count(c.is_external) AS not_known, c.member_id
FROM parameters
JOIN period_days p USING (period)
JOIN member_conversations c ON c.day = p.day AND c.role <> 'attendee'
WHERE c.kind = 'mail' OR c.is_readable
GROUP BY p.month, c.member, c.member_id
ORDER BY p.month DESC, c.member NULLS LAST, c.member_id;
