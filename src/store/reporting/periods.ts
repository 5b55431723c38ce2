/**
 * The named periods. Periods of the calendar are numbered by their first day, so that the period before and the period
 * after are found without arithmetic on their names.
 */

/**
 * By unit: its column in the calendar, and the fewest days of a whole period. Shorter ones, cut by the calendar's ends,
 * are left out.
 */
const UNITS = {
  week: ['week', 7],
  month: ['month', 28],
  quarter: ['quarter', 90],
  'fiscal quarter': ['fiscal_quarter', 89],
  year: ['year', 365],
  'fiscal year': ['fiscal_year', 365],
} as const

const ROLLING = [7, 30, 90, 365] as const

const spansOf = ([unit, [column, least]]: readonly [string, readonly [string, number]]) =>
  `SELECT '${unit}' AS unit, min(day) AS from_day, date(max(day), '+1 day') AS to_day FROM calendar GROUP BY ${column} HAVING count(*) >= ${least}`

const rolling = (days: number) =>
  `SELECT 'last ${days} days' AS period, date(t.today, '-${days - 1} days') AS from_day, date(t.today, '+1 day') AS to_day,
    date(t.today, '-${2 * days - 1} days') AS previous_from_day, date(t.today, '-${days - 1} days') AS previous_to_day
  FROM today t`

/** By unit: how many whole periods before the present one, for charts over time. */
const LONG = { week: 12, month: 12, quarter: 4, 'fiscal quarter': 4 } as const

const whole = ([unit, count]: readonly [string, number]) =>
  `SELECT 'last ${count} ${unit}s', f.from_day, s.from_day, b.from_day, f.from_day
  FROM today t JOIN spans s ON s.unit = '${unit}' AND s.from_day <= t.today AND s.to_day > t.today
  JOIN spans f ON f.unit = s.unit AND f.number = s.number - ${count}
  LEFT JOIN spans b ON b.unit = s.unit AND b.number = s.number - ${2 * count}`

const dayAt = (instant: string) =>
  `(SELECT c.day FROM calendar c WHERE c.utc_from <= ${instant} ORDER BY c.utc_from DESC LIMIT 1)`

const NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"

/** SQL for the resources that the last run has read. */
const CHOSEN =
  "SELECT value FROM json_each(coalesce((SELECT value FROM sync_meta WHERE key = 'chosen_resources'), '[]'))"

/** SQL for the instant up to which the warehouse is complete; NULL while history is loading. */
export const COMPLETE_AS_OF = `(SELECT min(complete_as_of) FROM sync_resources
    WHERE resource IN (${CHOSEN}) AND unavailable_since IS NULL)`

/** SQL for that instant, or now. */
export const AS_OF = `coalesce(${COMPLETE_AS_OF}, ${NOW})`

/** SQL for the local day up to which the warehouse is complete. */
export const TODAY = dayAt(AS_OF)

export const PERIODS = `
WITH today AS (
  SELECT ${TODAY} AS today,
    ${dayAt(NOW)} AS clock_day
),
spans AS (
  SELECT unit, from_day, to_day, row_number() OVER (PARTITION BY unit ORDER BY from_day) AS number
  FROM (${Object.entries(UNITS).map(spansOf).join('\n    UNION ALL ')})
),
named AS (
  ${ROLLING.map(rolling).join('\n  UNION ALL ')}
  UNION ALL ${Object.entries(LONG).map(whole).join('\n  UNION ALL ')}
  UNION ALL SELECT w.word || ' ' || s.unit, n.from_day, n.to_day, b.from_day, b.to_day
  FROM today t
  JOIN spans s ON s.from_day <= t.today AND s.to_day > t.today
  JOIN (SELECT 'this' AS word, 0 AS ahead UNION ALL SELECT 'last', -1 UNION ALL SELECT 'next', 1) w
  JOIN spans n ON n.unit = s.unit AND n.number = s.number + w.ahead
  LEFT JOIN spans b ON b.unit = s.unit AND b.number = n.number - 1
)
SELECT CAST(n.period AS TEXT) AS period, CAST(n.from_day AS TEXT) AS from_day, CAST(n.to_day AS TEXT) AS to_day,
  CAST(n.previous_from_day AS TEXT) AS previous_from_day, CAST(n.previous_to_day AS TEXT) AS previous_to_day,
  CAST(t.today AS TEXT) AS today, CAST(c.day_number AS INTEGER) AS today_number, CAST(t.clock_day AS TEXT) AS clock_day,
  CAST(f.utc_from AS TEXT) AS utc_from, CAST(l.utc_to AS TEXT) AS utc_to
FROM named n CROSS JOIN today t
LEFT JOIN calendar c ON c.day = t.today
LEFT JOIN calendar f ON f.day = n.from_day
LEFT JOIN calendar l ON l.day = date(n.to_day, '-1 day')`

export const PERIOD_DAYS = `
SELECT p.period, CAST(p.today_number - c.day_number AS INTEGER) AS days_ago, c.*
FROM periods p JOIN calendar c ON c.day >= p.from_day AND c.day < p.to_day`

/** SQL for the single reads of a feed that are due or fail, and whose item is not stored. */
const unreadTasks = (feed: string, isStored: string) => `SELECT sort_at FROM sync_tasks t
    WHERE t.feed = '${feed}' AND (t.waiting OR t.round = 0) AND (t.failures > 0 OR t.round = 0) AND NOT EXISTS (${isStored})`

/**
 * A period is complete when all of it was read to its end after it was over, and nothing that belongs to it is still to
 * be read. `sync.since` leaves out what is earlier than all that was read, once the first read is over: of meetings what
 * it leaves out of activities. Until all meetings were read once, what is read for them is as complete as their list, but
 * for what is still to be read. A meeting whose detail was not read may have no time yet: it may belong to any period, and
 * its transcript and results are still to be read too.
 */
export const PERIOD_COVERAGE = `
WITH asked AS (
  SELECT resource, iif(count(from_at) = count(*), min(from_at), NULL) AS since
  FROM sync_coverage WHERE listed_at IS NOT NULL GROUP BY resource
),
unread AS MATERIALIZED (
  SELECT 'meetings' AS resource, start_time FROM live_meetings WHERE access IS NULL
  UNION ALL SELECT 'meetings', * FROM (${unreadTasks('meetings.detail', 'SELECT 1 FROM meetings m WHERE m.id = t.key')})
  UNION ALL SELECT 'transcripts', start_time FROM live_meetings WHERE access = 'open' AND transcript_state = 'pending'
  UNION ALL SELECT 'playbook_results', * FROM (${unreadTasks('playbook_results.read', 'SELECT 1 FROM playbook_results r WHERE r.meeting_id = t.key')})
),
parts AS (
  SELECT p.period, p.utc_from, p.utc_to, s.resource, s.state, c.listed_at, c.bodies_pending AS missing,
    max(coalesce(c.from_at, ''), p.utc_from) AS from_at,
    iif(c.resource IS NULL, p.utc_from, min(coalesce(c.to_at, '~'), p.utc_to)) AS to_at
  FROM periods p CROSS JOIN sync_status s
  LEFT JOIN asked f ON f.resource = s.resource AND s.state IN ('ok', 'waiting')
  LEFT JOIN sync_coverage c ON c.resource = s.resource AND coalesce(c.from_at, '') < p.utc_to
    AND coalesce(c.to_at, '~') > max(p.utc_from, iif(c.listed_at IS NULL, coalesce(f.since, ''), ''))
  WHERE s.resource IN ('activities', 'messages', 'access_logs')
  UNION ALL
  SELECT p.period, p.utc_from, p.utc_to, s.resource, s.state,
    coalesce(s.complete_as_of, iif(s.resource IN (${CHOSEN}), l.listed_at, NULL)),
    (SELECT count(*) FROM unread m WHERE m.resource IN ('meetings', s.resource)
      AND (m.start_time IS NULL OR (m.start_time >= p.utc_from AND m.start_time < p.utc_to))),
    max(iif(s.complete_as_of IS NULL, '', coalesce(f.since, '')), p.utc_from), p.utc_to
  FROM periods p CROSS JOIN sync_status s LEFT JOIN asked f ON f.resource = 'activities'
  CROSS JOIN (SELECT min(listed_at) AS listed_at FROM sync_segments WHERE feed = 'meetings.list') l
  WHERE s.resource IN ('meetings', 'transcripts', 'playbook_results')
),
placed AS (
  SELECT *, max(to_at) OVER (PARTITION BY period, resource ORDER BY from_at, to_at
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS read_to
  FROM parts
)
SELECT period, resource, CAST(CASE
    WHEN state = 'unavailable' THEN 'not offered by this workspace'
    WHEN max(to_at) = utc_from OR max(from_at > coalesce(read_to, utc_from)) THEN 'no: not all of it was asked for'
    WHEN count(listed_at) < count(*) THEN 'no: not yet read to its end'
    WHEN min(listed_at) < utc_to OR max(to_at) < utc_to THEN 'no: it was not over when it was read'
    WHEN sum(missing) > 0 THEN 'no: details or texts are still to be read'
    ELSE 'yes' END AS TEXT) AS complete,
  CAST(min(listed_at) AS TEXT) AS as_of, CAST(count(*) AS INTEGER) AS parts,
  CAST(count(listed_at) AS INTEGER) AS parts_read, CAST(sum(missing) AS INTEGER) AS still_to_read
FROM placed GROUP BY period, resource`
