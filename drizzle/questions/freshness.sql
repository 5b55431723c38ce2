-- How fresh is each resource, and what is the matter with those that are not?
--
-- Parameters:
--   now            the instant to count back from
--
-- fresh_as_of: when the newest data was last read. complete_as_of: everything published before it has been read.
-- Resources that are read row by row have only the second, and minutes_ago then counts from it. It is NULL for a
-- resource that was never read to its end. Problems come first.
WITH parameters AS (
  SELECT
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AS now
)
SELECT
  s.resource,
  s.state,
  s.rows_live,
  substr(s.fresh_as_of, 1, 19) AS fresh_as_of,
  substr(s.complete_as_of, 1, 19) AS complete_as_of,
  round((julianday(p.now) - julianday(coalesce(s.fresh_as_of, s.complete_as_of))) * 1440, 1) AS minutes_ago,
  s.pending_tasks AS still_to_read,
  s.rejected,
  s.reason
FROM parameters p
CROSS JOIN sync_status s
ORDER BY CASE s.state WHEN 'failing' THEN 1 WHEN 'on hold' THEN 2 WHEN 'backfilling' THEN 3 WHEN 'unavailable' THEN 5 ELSE 4 END,
  coalesce(s.fresh_as_of, s.complete_as_of) IS NOT NULL, coalesce(s.fresh_as_of, s.complete_as_of), s.resource;
