import { isoInstant } from '../../base/clock.ts'
import { CATALOG, TABLES, tableNamed } from '../../catalog/catalog.ts'
import { itemsOf, listsOf } from '../../catalog/feeds.ts'
import type { Resource } from '../../declare/resource.ts'
import { quote } from '../database/sql.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { type CoverageFigures, type CoverageGrid, coverageGrid, type MonthFigures } from './coverage-grid.ts'

const MONTH_LENGTH = 7

const monthOf = (time: string) => `coalesce(substr(${time}, 1, ${MONTH_LENGTH}), '')`

/**
 * The months of every resource that has an event time. Counts every row, mostly in an index: a second per million.
 * @param now ms since the epoch
 */
export function readCoverage(db: Sqlite, now: number): CoverageGrid {
  const figures = CATALOG.flatMap(resource => {
    const { newest } = resource.status
    return newest === undefined ? [] : [figuresOf(db, resource, newest)]
  })
  return coverageGrid(figures, isoInstant(now).slice(0, MONTH_LENGTH))
}

function figuresOf(db: Sqlite, resource: Resource, time: string): CoverageFigures {
  const spans = listsOf(resource).filter(({ feed }) => feed.mode === 'timeline' || feed.mode === 'periodic')
  const read = db.prepare<[string], CoverageFigures['unread'][number] & { isRead: number }>(
    `SELECT from_at AS "from", to_at AS "to", listed_at IS NOT NULL AS isRead FROM sync_segments
     WHERE feed = ? AND unavailable_since IS NULL`,
  )
  const segments = spans.flatMap(({ id }) => read.all(id))
  const complete = db
    .prepare<[string], 1>('SELECT 1 FROM sync_resources WHERE resource = ? AND first_complete_at IS NOT NULL')
    .pluck()
  return {
    resource: resource.name,
    months: [
      ...countedMonths(db, resource, time),
      ...unreadMonths(db, resource),
      ...suspectedMonths(db, resource),
    ],
    unread: segments.filter(({ isRead }) => isRead === 0),
    isUnknown: segments.length === 0 && complete.get(resource.name) === undefined,
  }
}

function countedMonths(
  db: Sqlite,
  { status: { table, where = 'true', pending = 'false' } }: Resource,
  time: string,
): MonthFigures[] {
  return db
    .prepare<[], MonthFigures>(
      `SELECT ${monthOf(quote(time))} AS month, coalesce(sum(${where}), 0) AS rows, coalesce(sum(${pending}), 0) AS missing,
         0 AS unread, 0 AS suspected
       FROM ${quote(table)} WHERE _deleted_at IS NULL GROUP BY 1`,
    )
    .all()
}

/** First reads that are due. Those of texts and transcripts count as missing texts instead. */
function unreadMonths(db: Sqlite, resource: Resource): MonthFigures[] {
  if (resource.status.pending !== undefined) return []
  const read = db.prepare<[string], MonthFigures>(
    `SELECT ${monthOf('sort_at')} AS month, 0 AS rows, 0 AS missing, count(*) AS unread, 0 AS suspected
     FROM sync_tasks WHERE feed = ? AND round = 0 AND NOT waiting GROUP BY 1`,
  )
  return itemsOf(resource).flatMap(({ id }) => read.all(id))
}

/** Suspected rows of the tables that the resource owns. */
function suspectedMonths(db: Sqlite, resource: Resource): MonthFigures[] {
  return timedTables(resource).flatMap(([table, time]) => {
    const { key } = tableNamed(table)
    const [id = '', scope] = [...key].reverse().map(quote)
    const isSame = `t.${id} = a.key${scope === undefined ? '' : ` AND t.${scope} = a.scope`}`
    return db
      .prepare<[string], MonthFigures>(
        `SELECT ${monthOf(`t.${quote(time)}`)} AS month, 0 AS rows, 0 AS missing, 0 AS unread, count(*) AS suspected
         FROM sync_suspicions a JOIN ${quote(table)} t ON ${isSame}
         WHERE a.table_name = ? AND t._deleted_at IS NULL GROUP BY 1`,
      )
      .all(table)
  })
}

/** Tables with an event time whose rows the resource's own answers store, each with the column of that time. */
function timedTables(resource: Resource): [table: string, time: string][] {
  const { table, newest } = resource.status
  const listed = listsOf(resource).flatMap(({ feed }): [string, string][] =>
    'time' in feed ? [[feed.table, feed.time]] : [],
  )
  const all = new Map<string, string>([
    ...listed,
    ...(newest === undefined ? [] : [[table, newest] as const]),
  ])
  return [...all].filter(([name]) => TABLES.get(name)?.resource === resource.name)
}
