-- How fresh is each resource, and what is the matter with those that are not?
--
-- fresh_as_of: when the newest data was last read. complete_as_of: everything published before it has been read; NULL
-- while history is loading, and where sync.since leaves out the beginning of activities or messages. Resources that are
-- read row by row have only the second. pending_tasks: reads that are outstanding or are repeated. Problems come first.
SELECT resource, state, rows_live, fresh_as_of, complete_as_of, pending_tasks, rejected, reason
FROM sync_status
ORDER BY CASE state WHEN 'failing' THEN 1 WHEN 'on hold' THEN 2 WHEN 'backfilling' THEN 3 WHEN 'unavailable' THEN 5
  ELSE 4 END, coalesce(fresh_as_of, complete_as_of) NULLS FIRST, resource;
