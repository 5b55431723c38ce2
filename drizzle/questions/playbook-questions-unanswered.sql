-- Which playbook questions go unanswered?
--
-- Parameters:
--   period   when the meetings were
--
-- The API does not say how the product words a missing answer: look at your answers and add to the list below, in small
-- letters and without full stops. “None” is an answer, such as to a question about competitors. A question may also be
-- missing in a result: that counts only in results since the playbook last changed, for it may be newer than others.
WITH parameters AS (SELECT 'last 365 days' AS period),
results AS (
  SELECT r.id, r.playbook_id, coalesce(b.name, r.playbook_name) AS playbook, r.created_at >= b.updated_at AS is_newer
  FROM parameters
  JOIN period_days p USING (period)
  JOIN conversations c ON c.kind = 'meeting' AND c.is_readable AND c.day = p.day
  JOIN live_playbook_results r ON r.meeting_id = c.conversation_id
  LEFT JOIN live_playbooks b ON b.id = r.playbook_id
),
asked AS (
  SELECT r.playbook, coalesce(q.question, t.question) AS question, CASE
    WHEN replace(replace(lower(trim(t.answer)), '.', ''), '。', '') NOT IN ('', '-', 'n/a', 'unknown',
      'not discussed', 'not mentioned', 'not answered', '言及なし', '不明') THEN 'answered' ELSE 'unanswered' END AS state
  FROM results r
  JOIN live_talk_point_results t ON t.playbook_result_id = r.id
  LEFT JOIN live_playbook_talk_points q ON q.playbook_id = r.playbook_id AND q.id = t.talk_point_id
  UNION ALL
  SELECT r.playbook, q.question, 'missing'
  FROM results r
  JOIN live_playbook_talk_points q ON q.playbook_id = r.playbook_id
  LEFT JOIN live_talk_point_results t ON t.playbook_result_id = r.id AND t.talk_point_id = q.id
  WHERE r.is_newer AND t.id IS NULL
)
SELECT playbook, question, count(*) AS results, count(CASE WHEN state = 'unanswered' THEN 1 END) AS unanswered,
  count(CASE WHEN state = 'missing' THEN 1 END) AS missing,
  round(1e2 * avg(CASE WHEN state = 'answered' THEN 0 ELSE 1 END), 1) AS unanswered_percent
FROM asked
GROUP BY playbook, question
HAVING max(state) <> 'answered'
ORDER BY unanswered_percent DESC, results DESC, playbook NULLS LAST, question NULLS LAST;
