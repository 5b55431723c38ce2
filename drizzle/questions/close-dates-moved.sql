-- Of which open deals was the close date moved lately, how often, and by how many days?
--
-- Parameters:
--   period   when parley saw it move
--
-- days_later adds up all moves from one day to another; it is less than 0 where the deal is to close earlier. A change
-- from or to no date is in times_unknown. These are the changes that parley observed: of several between two reads only
-- the last. Deals of which nothing says whether they are open are here too: see outcome.
WITH parameters AS (SELECT 'last 90 days' AS period)
SELECT d.deal, d.stage, d.owner, d.amount, d.currency,
  count(CASE WHEN v.close_date > b.close_date THEN 1 END) AS times_later,
  count(CASE WHEN v.close_date < b.close_date THEN 1 END) AS times_earlier,
  count(CASE WHEN v.close_date IS NULL OR b.close_date IS NULL THEN 1 END) AS times_unknown,
  coalesce(sum(n.day_number - o.day_number), 0) AS days_later, d.close_date, max(v.from_day) AS last_moved, d.outcome,
  d.deal_id
FROM parameters
JOIN period_days p USING (period)
JOIN deal_versions v ON v.from_day = p.day
JOIN deal_versions b ON b.deal_id = v.deal_id AND b.to_at = v.from_at AND b.close_date IS DISTINCT FROM v.close_date
JOIN deals d ON d.deal_id = v.deal_id AND d.outcome IN ('open', 'unknown')
LEFT JOIN calendar n ON n.day = v.close_date
LEFT JOIN calendar o ON o.day = b.close_date
GROUP BY d.deal, d.stage, d.owner, d.amount, d.currency, d.close_date, d.outcome, d.deal_id
ORDER BY days_later DESC, d.deal, d.deal_id;
