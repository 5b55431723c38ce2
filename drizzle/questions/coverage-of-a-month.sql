-- Is March complete? What was read of a month, as of when, and what is still missing?
--
-- Parameters:
--   period   the month
--
-- as_of is the instant to quote: items about that month that were published later may be missing. A month is complete
-- when all of it was read to its end after the month was over, and nothing that belongs to it is still to be read. What
-- sync.since leaves out was not asked for. Items that the API does not have ready yet, such as the summary of a meeting,
-- do not count as missing.
WITH parameters AS (SELECT 'last month' AS period),
asked AS (
  SELECT p.utc_from AS since, p.utc_to AS ended
  FROM parameters
  JOIN periods p USING (period)
),
-- A meeting whose detail was not read may have no time yet: it may belong to this month.
meetings_to_read AS (
  SELECT count(CASE WHEN m.access IS NULL THEN 1 END) AS details,
    count(CASE WHEN m.access IS NULL OR (m.access = 'open' AND m.transcript_state = 'pending') THEN 1 END) AS transcripts
  FROM asked a
  JOIN live_meetings m ON (m.start_time >= a.since AND m.start_time < a.ended) OR m.start_time IS NULL
),
-- Where everything that was read is later than an instant, sync.since leaves out the rest once the first read is over.
asked_from AS (
  SELECT resource, CASE WHEN count(from_at) = count(*) THEN min(from_at) END AS since
  FROM sync_coverage
  WHERE listed_at IS NOT NULL
  GROUP BY resource
),
parts AS (
  SELECT s.resource, s.state, c.listed_at, c.bodies_pending AS missing,
    CASE WHEN c.from_at > a.since THEN c.from_at ELSE a.since END AS from_at,
    CASE WHEN c.resource IS NULL THEN a.since WHEN c.to_at < a.ended THEN c.to_at ELSE a.ended END AS to_at
  FROM asked a
  CROSS JOIN sync_status s
  LEFT JOIN asked_from f ON f.resource = s.resource AND s.state IN ('ok', 'waiting')
  LEFT JOIN sync_coverage c ON c.resource = s.resource AND (c.from_at IS NULL OR c.from_at < a.ended)
    AND (c.to_at IS NULL OR c.to_at > a.since)
    AND (c.listed_at IS NOT NULL OR f.since IS NULL OR c.to_at IS NULL OR c.to_at > f.since)
  WHERE s.resource IN ('activities', 'messages', 'access_logs')
  UNION ALL
  SELECT s.resource, s.state, s.complete_as_of, CASE s.resource WHEN 'transcripts' THEN r.transcripts ELSE r.details END,
    CASE WHEN s.complete_as_of IS NOT NULL AND f.since > a.since THEN f.since ELSE a.since END, a.ended
  FROM asked a
  CROSS JOIN meetings_to_read r
  CROSS JOIN sync_status s
  -- It leaves out details of meetings as it leaves out activities.
  LEFT JOIN asked_from f ON f.resource = 'activities'
  WHERE s.resource IN ('meetings', 'transcripts', 'playbook_results')
),
placed AS (
  SELECT parts.*, max(to_at) OVER (PARTITION BY resource ORDER BY from_at, to_at
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS read_to
  FROM parts
)
SELECT resource,
  CASE
    WHEN max(state) = 'unavailable' THEN 'not offered by this workspace'
    WHEN max(to_at) = max(a.since) OR max(CASE WHEN from_at > coalesce(read_to, a.since) THEN 1 ELSE 0 END) = 1
      THEN 'no: not all of it was asked for'
    WHEN count(listed_at) < count(*) THEN 'no: not yet read to its end'
    WHEN min(listed_at) < max(a.ended) OR max(to_at) < max(a.ended) THEN 'no: it was not over when it was read'
    WHEN sum(missing) > 0 THEN 'no: details or texts are still to be read'
    ELSE 'yes'
  END AS complete,
  min(listed_at) AS as_of, count(*) AS parts, count(listed_at) AS parts_read, sum(missing) AS still_to_read
FROM asked a
CROSS JOIN placed
GROUP BY resource
ORDER BY resource;
