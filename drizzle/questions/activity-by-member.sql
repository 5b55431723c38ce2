-- How many e-mails did each member send and how many meetings did each hold, month by month?
--
-- Parameters:
--   period   which months
--
-- An e-mail counts for its sender, a meeting for its owner alone, within the company and with others. not_known counts
-- those of which it is not known whether a customer took part. Former members are left out, and so are meetings that
-- are withheld or not read yet.
WITH parameters AS (SELECT 'last 12 months' AS period)
SELECT p.month, m.name AS member,
  count(CASE WHEN c.kind = 'mail' THEN 1 END) AS mails_sent,
  count(CASE WHEN c.kind = 'meeting' THEN 1 END) AS meetings_held,
  count(CASE WHEN c.is_external THEN 1 END) AS with_customers,
  count(*) - count(c.is_external) AS not_known, m.id AS member_id
FROM parameters
JOIN period_days p USING (period)
JOIN conversations c ON c.day = p.day
JOIN people a ON a.person_id = c.person_id
JOIN live_members m ON m.id = a.member_id
WHERE c.kind = 'mail' OR c.is_readable
GROUP BY p.month, m.name, m.id
ORDER BY p.month DESC, m.name NULLS LAST, m.id;
