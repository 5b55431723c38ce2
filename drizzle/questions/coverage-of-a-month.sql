-- Is March complete? What was read of a month, as of when, and what is still missing?
--
-- Parameters:
--   since, until   the first day of the month and that of the next: by default the last month that is over
--
-- as_of is the instant to quote: items about that month that were published later may be missing. A month is complete
-- when all of it was read to its end after the month was over, and nothing that belongs to it is still to be read. Items
-- that the API does not have ready yet, such as the summary of a meeting, do not count as missing.
WITH parameters AS (
  SELECT
    date('now', 'start of month', '-1 month') AS since,
    date('now', 'start of month') AS until
),
stretches AS (
  SELECT s.resource, s.state, c.listed_at, coalesce(c.from_at, '') AS from_at, coalesce(c.to_at, '~') AS to_at,
    c.bodies_pending AS missing, c.resource IS NOT NULL AS is_asked
  FROM parameters p
  CROSS JOIN sync_status s
  LEFT JOIN sync_coverage c ON c.resource = s.resource
    AND coalesce(c.from_at, '') < p.until AND coalesce(c.to_at, '~') > p.since
  WHERE s.resource IN ('activities', 'messages', 'access_logs')
),
-- A meeting whose detail was not read may have no time yet: it may belong to this month.
meetings_to_read AS (
  SELECT count(*) FILTER (WHERE m.access IS NULL) AS details,
    count(*) FILTER (WHERE m.access IS NULL OR (m.access = 'open' AND m.transcript_state = 'pending')) AS transcripts
  FROM parameters p
  CROSS JOIN live_meetings m ON (m.start_time >= p.since AND m.start_time < p.until) OR m.start_time IS NULL
),
parts AS (
  SELECT resource, state, listed_at, to_at, missing, is_asked,
    from_at > coalesce(max(to_at) OVER earlier, p.since) AS is_after_hole
  FROM parameters p
  CROSS JOIN stretches
  WINDOW earlier AS (
    PARTITION BY resource ORDER BY from_at, to_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
  UNION ALL
  SELECT s.resource, s.state, s.complete_as_of, '~', iif(s.resource = 'transcripts', r.transcripts, r.details), 1, 0
  FROM meetings_to_read r
  CROSS JOIN sync_status s
  WHERE s.resource IN ('meetings', 'transcripts', 'playbook_results')
)
SELECT
  resource,
  CASE
    WHEN max(state) = 'unavailable' THEN 'not offered by this workspace'
    WHEN sum(is_asked) = 0 OR sum(is_after_hole) > 0 THEN 'no: not all of it was asked for'
    WHEN count(listed_at) < count(*) THEN 'no: not yet read to its end'
    WHEN min(listed_at) < max(p.until) OR max(to_at) < max(p.until) THEN 'no: it was not over when it was read'
    WHEN sum(missing) > 0 THEN 'no: details or texts are still to be read'
    ELSE 'yes'
  END AS complete,
  substr(min(listed_at), 1, 19) AS as_of,
  sum(is_asked) AS parts,
  count(listed_at) AS parts_read,
  sum(missing) AS still_to_read
FROM parameters p
CROSS JOIN parts
GROUP BY resource
ORDER BY resource;
