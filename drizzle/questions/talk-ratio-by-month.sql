-- How much did our side speak in meetings with customers, month by month?
--
-- Parameters:
--   period   when the meetings were
--
-- The mean of each meeting's percentages. other_percent is of partners, and of speakers whose name no one of the meeting
-- has, or two people have. not_known counts meetings that are withheld, or of which it is not known who took part.
WITH parameters AS (SELECT 'last 12 months' AS period)
SELECT p.month, count(t.is_external) AS meetings,
  count(CASE WHEN t.is_external THEN t.ours_percent END) AS with_speakers,
  round(avg(CASE WHEN t.is_external THEN t.ours_percent END), 1) AS ours_percent,
  round(avg(CASE WHEN t.is_external THEN t.theirs_percent END), 1) AS theirs_percent,
  round(avg(CASE WHEN t.is_external THEN t.other_percent END), 1) AS other_percent,
  count(*) - count(t.is_external) AS not_known
FROM parameters
JOIN period_days p USING (period)
JOIN talk_ratios t ON t.day = p.day AND coalesce(t.is_external, true)
GROUP BY p.month
ORDER BY p.month;
