-- Who uses the API: requests, errors and bytes by key, as the access log tells?
--
-- Parameters:
--   since, until   requests from this day on and before that one: the last 30 days
--
-- Half of the requests took median_ms or less, 95 of 100 took p95_ms or less; requests without a duration do not count
-- here.
-- The log has only the end of each key, so keys with the same end are one here, and older entries may have none.
-- Requests for the log itself, and those refused before they reached the service (a wrong key, too many requests), are
-- not in it. Empty if the workspace does not offer the log.
WITH parameters AS (
  SELECT
    date('now', '-30 days') AS since,
    date('now', '+1 day') AS until
),
requests AS (
  SELECT coalesce(a.api_key_suffix, 'not recorded') AS key_suffix, a.occurred_at, a.operation, a.status_code,
    a.duration_ms, a.response_size_bytes,
    row_number() OVER (PARTITION BY a.api_key_suffix, a.duration_ms IS NULL ORDER BY a.duration_ms) AS place,
    count(a.duration_ms) OVER (PARTITION BY a.api_key_suffix) AS timed
  FROM parameters p
  CROSS JOIN live_access_logs a ON a.occurred_at >= p.since AND a.occurred_at < p.until
)
SELECT
  key_suffix,
  count(*) AS requests,
  count(*) FILTER (WHERE status_code BETWEEN 400 AND 499) AS refused_4xx,
  count(*) FILTER (WHERE status_code >= 500) AS failed_5xx,
  round(sum(response_size_bytes) / 1e6, 1) AS megabytes,
  max(duration_ms) FILTER (WHERE place = (timed + 1) / 2) AS median_ms,
  max(duration_ms) FILTER (WHERE place = (timed * 95 + 99) / 100) AS p95_ms,
  count(DISTINCT operation) AS operations,
  substr(min(occurred_at), 1, 16) AS first_request,
  substr(max(occurred_at), 1, 16) AS last_request
FROM requests
GROUP BY key_suffix
ORDER BY requests DESC, key_suffix;
