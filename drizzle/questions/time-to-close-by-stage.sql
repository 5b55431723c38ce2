-- How long is it from the first meeting about a deal until its close date, by the stage that it ended in?
--
-- Deals without a close date or a meeting, or whose first meeting came after that day, are in deals_closed alone. Deals
-- of which nothing says whether they are closed are left out.
WITH placed AS (
  SELECT pipeline, stage, stage_id, outcome, days_from_meeting AS days,
    count(days_from_meeting) OVER (PARTITION BY pipeline, stage_id, outcome) AS timed,
    row_number() OVER (PARTITION BY pipeline, stage_id, outcome ORDER BY days_from_meeting NULLS LAST) AS place
  FROM deal_facts
  WHERE outcome IN ('won', 'lost', 'closed')
)
SELECT pipeline, stage, outcome, count(*) AS deals_closed, count(days) AS with_a_meeting_before,
  avg(CASE WHEN 2 * place BETWEEN timed AND timed + 2 THEN days END) AS median_days, round(avg(days), 1) AS mean_days,
  min(days) AS shortest_days, max(days) AS longest_days
FROM placed
GROUP BY pipeline, stage, stage_id, outcome
ORDER BY pipeline NULLS LAST, deals_closed DESC, stage NULLS LAST, stage_id NULLS LAST, outcome;
