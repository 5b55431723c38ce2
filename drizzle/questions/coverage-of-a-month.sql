-- Is March complete? What was read of a month, as of when, and what is still missing?
--
-- Parameters:
--   period   the month
--
-- as_of is the instant to quote: items about that month that were published later may be missing. A month is complete
-- when all of it was read to its end after the month was over, and nothing that belongs to it is still to be read. What
-- sync.since leaves out was not asked for. Items that the API does not have ready yet, such as the summary of a meeting,
-- do not count as missing.
WITH parameters AS (SELECT 'last month' AS period)
SELECT resource, complete, as_of, parts, parts_read, still_to_read
FROM parameters
JOIN period_coverage USING (period)
ORDER BY resource;
