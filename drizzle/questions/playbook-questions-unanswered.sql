-- Which playbook questions go unanswered?
--
-- Parameters:
--   period   when the meetings were
--
-- Unanswered is what is blank or one of reporting.no_answers in the settings: the API does not say how the product words
-- a missing answer, so look at your answers. A question may also be missing in a result: that counts only in results
-- since the playbook last changed, for it may be newer than others.
WITH parameters AS (SELECT 'last 365 days' AS period)
SELECT a.playbook, a.question, count(*) AS results, count(CASE WHEN a.state = 'unanswered' THEN 1 END) AS unanswered,
  count(CASE WHEN a.state = 'missing' THEN 1 END) AS missing,
  round(1e2 * avg(CASE WHEN a.state = 'answered' THEN 0 ELSE 1 END), 1) AS unanswered_percent
FROM parameters
JOIN period_days p USING (period)
JOIN playbook_answers a ON a.day = p.day
GROUP BY a.playbook, a.question
HAVING max(a.state) <> 'answered'
ORDER BY unanswered_percent DESC, results DESC, a.playbook NULLS LAST, a.question NULLS LAST;
