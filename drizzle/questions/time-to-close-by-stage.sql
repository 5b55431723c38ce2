-- How long is it from the first meeting about a deal until its close date, by the stage that it ended in?
--
-- Deals without a close date or a meeting, or whose first meeting came after that day, are in deals_closed alone. Deals
-- of which nothing says whether they are closed are left out.
WITH placed AS (
  SELECT d.pipeline, d.stage, d.stage_id, d.outcome, e.day_number - b.day_number AS days,
    count(b.day) OVER (PARTITION BY d.pipeline, d.stage_id, d.outcome) AS timed,
    row_number() OVER (PARTITION BY d.pipeline, d.stage_id, d.outcome
      ORDER BY e.day_number - b.day_number NULLS LAST) AS place
  FROM deal_facts d
  LEFT JOIN calendar e ON e.day = d.close_date
  LEFT JOIN calendar b ON b.day = d.first_meeting_day AND b.day <= e.day
  WHERE d.outcome IN ('won', 'lost', 'closed')
)
SELECT pipeline, stage, outcome, count(*) AS deals_closed, count(days) AS with_a_meeting_before,
  avg(CASE WHEN 2 * place BETWEEN timed AND timed + 2 THEN days END) AS median_days, round(avg(days), 1) AS mean_days,
  min(days) AS shortest_days, max(days) AS longest_days
FROM placed
GROUP BY pipeline, stage, stage_id, outcome
ORDER BY pipeline NULLS LAST, deals_closed DESC, stage NULLS LAST, stage_id NULLS LAST, outcome;
