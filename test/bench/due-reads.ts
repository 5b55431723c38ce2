import { CATALOG } from '../../src/catalog/catalog.ts'
import { auditInterval } from '../../src/engine/context/intervals.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'

/** The reads that are due by the documented intervals, without any changes. */
export interface DueRead {
  /** `resource.feed` */
  feed: string
  /** The number of lists or single items that are due. */
  times: number
  /** The requests that they need. */
  requests: number
}

/** Everything was read once, and nothing due is waiting. */
export function isAtRest(db: Sqlite): boolean {
  const count = (sql: string) => db.prepare(sql).pluck().get() as number
  return (
    count("SELECT count(*) FROM sync_status WHERE state = 'backfilling'") === 0 &&
    count(`SELECT count(*) FROM sync_tasks WHERE due_at <= ${NOW}`) === 0 &&
    count('SELECT count(*) FROM sync_segments WHERE pass_started_at IS NOT NULL') === 0
  )
}

const NOW = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
const HOUR_MS = 3_600_000
const PAGE = 100

/** The interval at which a whole list is read, in ms. */
const LIST_INTERVALS: Readonly<Record<string, number>> = {
  snapshot: 6 * HOUR_MS,
  periodic: HOUR_MS,
  singleton: 6 * HOUR_MS,
}

interface Segment {
  feed: string
  to_at: string | null
  listed_at: string
  rows: number
}

export function dueWithin(db: Sqlite, ms: number): DueRead[] {
  const now = Date.now()
  const found = new Map<string, DueRead>()
  const note = (feed: string, times: number, requests: number) => {
    const before = found.get(feed) ?? { feed, times: 0, requests: 0 }
    found.set(feed, { feed, times: before.times + times, requests: before.requests + requests })
  }
  const segments = db
    .prepare(
      'SELECT feed, to_at, listed_at, rows FROM sync_segments WHERE NOT closed AND listed_at IS NOT NULL',
    )
    .all() as Segment[]
  for (const segment of segments) {
    const times = timesDue(segment, now, now + ms)
    if (times > 0) note(segment.feed, times, times * Math.max(1, Math.ceil(segment.rows / PAGE)))
  }
  const tasks = db
    .prepare('SELECT feed, count(*) AS times FROM sync_tasks WHERE due_at <= ? GROUP BY feed')
    .all(new Date(now + ms).toISOString()) as { feed: string; times: number }[]
  for (const { feed, times } of tasks) note(feed, times, times)
  return [...found.values()]
}

/** The newest segment of a timeline is polled, which is not an audit. */
function timesDue({ feed, to_at, listed_at }: Segment, from: number, until: number): number {
  const [resource = '', name = ''] = feed.split('.')
  const declared = CATALOG.find(each => each.name === resource)?.feeds[name]
  if (declared === undefined || declared.mode === 'item') return 0
  if (declared.mode === 'timeline' && to_at === null) return 0
  const every = declared.mode === 'snapshot' ? declared.intervalMs : undefined
  const intervalAt = (at: number) =>
    declared.mode === 'timeline'
      ? auditInterval(at - Date.parse(to_at ?? ''))
      : (every ?? LIST_INTERVALS[declared.mode] ?? HOUR_MS)
  let times = 0
  for (let at = Date.parse(listed_at); at <= until; at += intervalAt(at)) {
    if (at > from) times += 1
  }
  return times
}
