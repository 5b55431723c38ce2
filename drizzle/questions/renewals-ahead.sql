-- Which renewals are due in the two fiscal quarters after this one?
--
-- Parameters:
--   period   the first of the two quarters
--
-- Open deals in pipelines for renewals (crm.renewal_pipelines in the settings) with a close date in the fiscal quarter
-- of the parameter or the one after it. Those without a close date may be due then: they come last, without a quarter.
-- Deals of which nothing says whether they are open are here too: see outcome.
WITH parameters AS (SELECT 'next fiscal quarter' AS period)
SELECT k.fiscal_quarter, d.deal, d.company, d.stage, d.close_date, d.owner, d.owner_state, d.amount, d.currency,
  d.amount_reporting, d.outcome, d.deal_id
FROM parameters
JOIN periods p USING (period)
JOIN calendar n ON n.day = p.to_day
CROSS JOIN deals d
LEFT JOIN calendar k ON k.day = d.close_date
WHERE d.pipeline_kind = 'renewal' AND d.outcome IN ('open', 'unknown') AND (d.close_date IS NULL
  OR (d.close_date >= p.from_day AND d.close_date < p.to_day) OR k.fiscal_quarter = n.fiscal_quarter)
ORDER BY k.fiscal_quarter NULLS LAST, d.amount_reporting DESC NULLS LAST, d.amount DESC NULLS LAST, d.deal_id;
