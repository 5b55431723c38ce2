-- Which playbook questions go unanswered?
--
-- Parameters:
--   since          meetings that began from this day on: the last 180 days
--   no_answer      answers that say that there is none, as a JSON list, whatever their case and final full stop
--
-- The API's description does not say how the product words a missing answer: look at your answers and add to the list.
-- “None.” is an answer, such as to a question about competitors. A question may also be missing in a result. That is
-- counted only for results since the playbook was last changed, because older ones may be from before the question.
WITH parameters AS (
  SELECT
    date('now', '-180 days') AS since,
    '["", "-", "n/a", "unknown", "not discussed", "not mentioned", "not answered", "言及なし", "不明"]' AS no_answer
),
results AS (
  SELECT r.id, r.playbook_id, r.playbook_name, r.created_at
  FROM parameters p
  CROSS JOIN live_meetings m ON m.start_time >= p.since AND m.access = 'open'
  JOIN live_playbook_results r ON r.meeting_id = m.id
),
asked AS (
  SELECT r.playbook_id, r.playbook_name, r.created_at, coalesce(t.talk_point_id, t.question) AS question_id, t.question,
    t.answer IS NULL OR lower(rtrim(trim(t.answer), '.。')) IN (SELECT value FROM parameters p, json_each(p.no_answer))
      AS is_unanswered,
    0 AS is_missing
  FROM results r
  JOIN live_talk_point_results t ON t.playbook_result_id = r.id
  UNION ALL
  SELECT r.playbook_id, r.playbook_name, r.created_at, q.id, q.question, 0, 1
  FROM results r
  JOIN live_playbooks b ON b.id = r.playbook_id AND r.created_at >= b.updated_at
  JOIN live_playbook_talk_points q ON q.playbook_id = b.id
  WHERE NOT EXISTS (
    SELECT 1 FROM talk_point_results t WHERE t.playbook_result_id = r.id AND t.talk_point_id = q.id)
)
SELECT
  coalesce(max(b.name), max(a.playbook_name)) AS playbook,
  coalesce(max(q.question), max(a.question)) AS question,
  count(*) AS results,
  sum(a.is_unanswered) AS unanswered,
  sum(a.is_missing) AS missing,
  round(100.0 * sum(a.is_unanswered OR a.is_missing) / count(*), 1) AS unanswered_percent
FROM asked a
LEFT JOIN live_playbooks b ON b.id = a.playbook_id
LEFT JOIN live_playbook_talk_points q ON q.playbook_id = a.playbook_id AND q.id = a.question_id
GROUP BY a.playbook_id, a.question_id
HAVING sum(a.is_unanswered OR a.is_missing) > 0
ORDER BY unanswered_percent DESC, results DESC, playbook, question, a.playbook_id, a.question_id;
