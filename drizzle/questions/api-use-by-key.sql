-- Who uses the API: requests, errors and bytes by key, as the access log tells?
--
-- Parameters:
--   period   when the requests were
--
-- Half of the requests took median_ms or less, 95 of 100 took p95_ms or less; requests without a duration do not count
-- here. The log has only the end of each key, so keys with the same end are one here, and older entries may have none.
-- Requests for the log itself, and those refused before they reached the service (a wrong key, too many requests), are
-- not in it. Empty if the workspace does not offer the log.
WITH parameters AS (SELECT 'last 30 days' AS period),
requests AS (
  SELECT a.*, count(a.duration_ms) OVER (PARTITION BY a.api_key_suffix) AS timed,
    row_number() OVER (PARTITION BY a.api_key_suffix ORDER BY a.duration_ms NULLS LAST) AS place
  FROM parameters
  JOIN periods p USING (period)
  JOIN live_access_logs a ON a.occurred_at >= p.utc_from AND a.occurred_at < p.utc_to
)
SELECT coalesce(api_key_suffix, 'not recorded') AS key_suffix, count(*) AS requests,
  count(CASE WHEN status_code BETWEEN 400 AND 499 THEN 1 END) AS refused_4xx,
  count(CASE WHEN status_code >= 500 THEN 1 END) AS failed_5xx,
  round(sum(response_size_bytes) / 1e6, 1) AS megabytes,
  min(CASE WHEN 2 * place >= timed THEN duration_ms END) AS median_ms,
  min(CASE WHEN 20 * place >= 19 * timed THEN duration_ms END) AS p95_ms,
  count(DISTINCT operation) AS operations, min(occurred_at) AS first_request, max(occurred_at) AS last_request
FROM requests
GROUP BY api_key_suffix
ORDER BY requests DESC, key_suffix;
