import { isoInstant } from '../../base/clock.ts'
import { CATALOG, TABLES, tableNamed } from '../../catalog/catalog.ts'
import { itemsOf, listsOf } from '../../catalog/feeds.ts'
import type { Resource } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import { quote } from '../database/sql.ts'
import type { Sqlite } from '../database/sqlite-types.ts'

const MONTH_LENGTH = 7

const monthOf = (time: string) => `coalesce(substr(${time}, 1, ${MONTH_LENGTH}), '')`

/**
 * Reads the months of every resource that has an event time. Counts all rows, mostly in an index: a second per million
 * rows.
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

/** Counts first reads that are due. First reads of texts and transcripts count as missing texts instead. */
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

/** Which months of which resource are complete. */
export interface CoverageGrid {
  /** Consecutive months such as `2026-03`, oldest first; `EARLIER` before them and `LATER` after them where needed. */
  months: readonly string[]
  rows: readonly { resource: ResourceName; cells: readonly CoverageCell[] }[]
}

export interface CoverageCell {
  month: string
  state: CoverageState
  rows: number
  /** Texts or transcripts that are not read yet. */
  missing: number
  suspected: number
}

/** `empty`: the month was read completely and has no rows. */
export type CoverageState = 'complete' | 'reading' | 'texts-missing' | 'suspected' | 'empty'

/** What the database says about one resource. */
export interface CoverageFigures {
  resource: ResourceName
  months: readonly MonthFigures[]
  /** Spans of event time that were never read to their end; a bound is null where the span is open. */
  unread: readonly { from: string | null; to: string | null }[]
  /** True when the resource was never complete and has no spans that would say what is missing. */
  isUnknown: boolean
}

export interface MonthFigures {
  /** The first seven characters of the event time; empty for rows without one. */
  month: string
  rows: number
  missing: number
  /** First reads that are due. */
  unread: number
  suspected: number
}

export const EARLIER = 'earlier'
export const LATER = 'later'

const MOST_MONTHS = 120

/** Pure. @param thisMonth such as `2026-03` */
export function coverageGrid(figures: readonly CoverageFigures[], thisMonth: string): CoverageGrid {
  const oldestShown = monthsBefore(thisMonth, MOST_MONTHS - 1)
  const known = figures.flatMap(({ months }) => months.map(({ month }) => month))
  const dated = known.filter(month => isMonth(month) && month >= oldestShown && month <= thisMonth).sort()
  const shown = monthsUpTo(dated[0] ?? thisMonth, thisMonth)
  const placeOf = (month: string) => {
    if (!isMonth(month) || month < (shown[0] ?? thisMonth)) return EARLIER
    return month > thisMonth ? LATER : month
  }
  const places = new Set(known.map(placeOf))
  const months = [...(places.has(EARLIER) ? [EARLIER] : []), ...shown, ...(places.has(LATER) ? [LATER] : [])]
  return {
    months,
    rows: figures.map(of => ({
      resource: of.resource,
      cells: months.map(month => cellOf(of, month, placeOf)),
    })),
  }
}

function cellOf(of: CoverageFigures, month: string, placeOf: (month: string) => string): CoverageCell {
  const here = of.months.filter(figures => placeOf(figures.month) === month)
  const sum = (figure: 'rows' | 'missing' | 'unread' | 'suspected') =>
    here.reduce((all, figures) => all + figures[figure], 0)
  const [rows, missing, suspected] = [sum('rows'), sum('missing'), sum('suspected')]
  const isUnread = sum('unread') > 0 || of.unread.some(span => touches(span, month))
  const isReading = isUnread || (of.isUnknown && rows === 0)
  return { month, state: stateOf({ rows, missing, suspected, isReading }), rows, missing, suspected }
}

function stateOf({
  rows,
  missing,
  suspected,
  isReading,
}: Pick<CoverageCell, 'rows' | 'missing' | 'suspected'> & { isReading: boolean }): CoverageState {
  if (suspected > 0) return 'suspected'
  if (isReading) return 'reading'
  if (missing > 0) return 'texts-missing'
  return rows === 0 ? 'empty' : 'complete'
}

function touches({ from, to }: CoverageFigures['unread'][number], month: string): boolean {
  if (month === EARLIER) return from === null
  if (month === LATER) return to === null
  // Instants and months compare as texts: '2026-03' < '2026-03-01T…' < '2026-03~'.
  return (from ?? '') < `${month}~` && (to ?? '~') > `${month}-01T00:00:00.000Z`
}

const isMonth = (text: string) => /^\d{4}-(0[1-9]|1[0-2])$/.test(text)

function monthsBefore(month: string, number: number): string {
  const [year = 0, of = 1] = month.split('-').map(Number)
  return new Date(Date.UTC(year, of - 1 - number, 1)).toISOString().slice(0, month.length)
}

function monthsUpTo(first: string, last: string): string[] {
  const months = [last]
  for (let month = last; month > first; ) {
    month = monthsBefore(month, 1)
    months.unshift(month)
  }
  return months
}
