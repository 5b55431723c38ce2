-- How long do we take to win a deal, and how long to lose one?
--
-- Parameters:
--   period   when the deals were closed
--
-- Days from the creation of the deal to the day on which it was closed. without_time counts deals of which one of the
-- days is not known, or that were closed before they were created. closed is a deal of which nothing says whether it is
-- won.
WITH parameters AS (SELECT 'last 365 days' AS period),
closed AS (
  SELECT d.outcome, CASE WHEN d.closed_day >= d.created_day THEN e.day_number - b.day_number END AS days
  FROM parameters
  JOIN periods p USING (period)
  JOIN deals d ON d.closed_day >= p.from_day AND d.closed_day < p.to_day
  LEFT JOIN calendar b ON b.day = d.created_day
  LEFT JOIN calendar e ON e.day = d.closed_day
),
placed AS (
  SELECT closed.*, count(days) OVER (PARTITION BY outcome) AS timed,
    row_number() OVER (PARTITION BY outcome ORDER BY days NULLS LAST) AS place
  FROM closed
)
SELECT outcome, count(*) AS deals,
  avg(CASE WHEN 2 * place BETWEEN timed AND timed + 2 THEN days END) AS median_days, round(avg(days), 1) AS mean_days,
  count(*) - count(days) AS without_time
FROM placed
GROUP BY outcome
ORDER BY outcome DESC;
