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
  count(CASE WHEN c.days_later > 0 THEN 1 END) AS times_later,
  count(CASE WHEN c.days_later < 0 THEN 1 END) AS times_earlier,
  count(*) - count(c.days_later) AS times_unknown, coalesce(sum(c.days_later), 0) AS days_later, d.close_date,
  max(c.day) AS last_moved, d.outcome, d.deal_id
FROM parameters
JOIN period_days p USING (period)
JOIN deal_changes c ON c.day = p.day AND c.close_date IS DISTINCT FROM c.close_date_before
JOIN deals d ON d.deal_id = c.deal_id AND d.outcome IN ('open', 'unknown')
GROUP BY d.deal, d.stage, d.owner, d.amount, d.currency, d.close_date, d.outcome, d.deal_id
ORDER BY days_later DESC, d.deal, d.deal_id;
