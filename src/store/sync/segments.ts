import type { Prepare } from '../database/connection.ts'
import { movedBack } from '../database/sql.ts'

/**
 * A list query with its checkpoint: a span of event time of a timeline, a period of a log, or a whole snapshot (one for
 * each scope). The segments of a timeline cover the time axis without gaps: the oldest has no `from`, the newest no
 * `to`.
 */
export interface Segment {
  id: number
  feed: string
  scope: string
  from: string | null
  to: string | null
  /** The exact query of the cursor. A cursor is valid only with its own query. */
  query: Readonly<Record<string, string>> | null
  /** Parameters of the next page; null before the first and after the last. */
  cursor: Readonly<Record<string, string>> | null
  /** Start of the current pass, by the server's clock. */
  passStartedAt: string | null
  passRound: number | null
  pages: number
  rows: number
  /** Event time of the last row of the pass, and the keys that it saw at that instant. */
  edgeAt: string | null
  edgeKeys: readonly string[]
  totalSize: number | null
  /** How often this pass has restarted without progress. */
  restarts: number
  /** Start of the last pass that reached the end, by the server's clock. */
  listedAt: string | null
  /** The round in which that pass began. */
  listedRound: number
  closed: boolean
  /** Since when the list is unavailable. Meanwhile the resource can be complete without it. */
  unavailableSince: string | null
  /** Failed requests since the last answer of full size. */
  attempts: number
  /** After a failure, the segment is not read before this instant, by this machine's clock. */
  retryAt: string | null
  /** Duration of the last pass that a single process made from first to last page; null when there is none. */
  passMs: number | null
}

export interface Segments {
  /** Newest first. */
  of(feed: string, scope?: string): Segment[]
  /** As it is stored now; undefined once it was removed. */
  find(id: number): Segment | undefined
  add(segment: Pick<Segment, 'feed' | 'scope' | 'from' | 'to'>): Segment
  save(segment: Segment): void
  remove(segment: Segment): void
  /** Cuts a segment at an instant within it. Returns the older part, a new row. Both ends are inclusive. */
  cut(segment: Segment, at: string): Segment
  /** Ends the waits after failures. */
  retryNow(feed: string): void
  /** Moves the waits after failures back with this machine's clock. */
  moveBack(ms: number, now: string): void
  /** Joins two neighbours and returns the result, which has the earlier `listedAt` of both. */
  join(newer: Segment, older: Segment): Segment
  /** Everything newer than this instant was listed, or waits after a failure. Null: the whole axis; undefined: nothing. */
  listedDownTo(feed: string): string | null | undefined
}

const COLUMNS = {
  feed: 'feed',
  scope: 'scope',
  from: 'from_at',
  to: 'to_at',
  query: 'query',
  cursor: 'cursor',
  passStartedAt: 'pass_started_at',
  passRound: 'pass_round',
  pages: 'pages',
  rows: 'rows',
  edgeAt: 'edge_at',
  edgeKeys: 'edge_keys',
  totalSize: 'total_size',
  restarts: 'restarts',
  listedAt: 'listed_at',
  listedRound: 'listed_round',
  closed: 'closed',
  unavailableSince: 'unavailable_since',
  attempts: 'attempts',
  retryAt: 'retry_at',
  passMs: 'pass_ms',
} as const satisfies Record<Exclude<keyof Segment, 'id'>, string>

type Cells = Record<string, string | number | null>

function fromRow(row: Cells): Segment {
  const json = (value: unknown) => (typeof value === 'string' ? JSON.parse(value) : null)
  return {
    id: row['id'] as number,
    feed: row['feed'] as string,
    scope: row['scope'] as string,
    from: row['from_at'] as string | null,
    to: row['to_at'] as string | null,
    query: json(row['query']),
    cursor: json(row['cursor']),
    passStartedAt: row['pass_started_at'] as string | null,
    passRound: row['pass_round'] as number | null,
    pages: row['pages'] as number,
    rows: row['rows'] as number,
    edgeAt: row['edge_at'] as string | null,
    edgeKeys: json(row['edge_keys']) ?? [],
    totalSize: row['total_size'] as number | null,
    restarts: row['restarts'] as number,
    listedAt: row['listed_at'] as string | null,
    listedRound: row['listed_round'] as number,
    closed: row['closed'] === 1,
    unavailableSince: row['unavailable_since'] as string | null,
    attempts: row['attempts'] as number,
    retryAt: row['retry_at'] as string | null,
    passMs: row['pass_ms'] as number | null,
  }
}

function toCells(segment: Segment): (string | number | null)[] {
  return (Object.keys(COLUMNS) as (keyof typeof COLUMNS)[]).map(name => {
    const value = segment[name]
    if (typeof value === 'boolean') return value ? 1 : 0
    return value !== null && typeof value === 'object' ? JSON.stringify(value) : value
  })
}

/** The state of a pass that has not begun. */
export const NO_PASS = {
  query: null,
  cursor: null,
  passStartedAt: null,
  passRound: null,
  pages: 0,
  rows: 0,
  edgeAt: null,
  edgeKeys: [],
  totalSize: null,
} satisfies Partial<Segment>

const FRESH: Omit<Segment, 'id' | 'feed' | 'scope' | 'from' | 'to'> = {
  ...NO_PASS,
  restarts: 0,
  listedAt: null,
  listedRound: 0,
  closed: false,
  unavailableSince: null,
  attempts: 0,
  retryAt: null,
  passMs: null,
}

export function createSegments(prepare: Prepare): Segments {
  const names = Object.values(COLUMNS)
  const insert = prepare(
    `INSERT INTO sync_segments (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
  )
  const update = prepare(
    `UPDATE sync_segments SET ${names.map(name => `${name} = ?`).join(', ')} WHERE id = ?`,
  )
  const select = prepare(
    `SELECT * FROM sync_segments WHERE feed = ? AND scope = coalesce(?, scope)
     ORDER BY scope, to_at IS NOT NULL, to_at DESC, id`,
  )
  const selectOne = prepare('SELECT * FROM sync_segments WHERE id = ?')
  const remove = prepare('DELETE FROM sync_segments WHERE id = ?')
  const moveBack = prepare(
    "UPDATE sync_segments SET retry_at = strftime('%Y-%m-%dT%H:%M:%fZ', retry_at, ?) WHERE retry_at > ?",
  )
  const retryNow = prepare('UPDATE sync_segments SET retry_at = NULL WHERE feed = ? AND retry_at IS NOT NULL')

  const segmentsOf = (feed: string, scope?: string) =>
    (select.all(feed, scope ?? null) as Cells[]).map(fromRow)
  const add: Segments['add'] = segment => {
    const fresh = { ...FRESH, ...segment, id: 0 }
    return { ...fresh, id: Number(insert.run(...toCells(fresh)).lastInsertRowid) }
  }
  const save: Segments['save'] = segment => {
    update.run(...toCells(segment), segment.id)
  }

  return {
    of: segmentsOf,
    find(id) {
      const row = selectOne.get(id) as Cells | undefined
      return row && fromRow(row)
    },
    add,
    save,
    remove: segment => {
      remove.run(segment.id)
    },
    cut(segment, at) {
      save({ ...segment, from: at })
      return add({ feed: segment.feed, scope: segment.scope, from: segment.from, to: at })
    },
    join(newer, older) {
      const sooner = (older.listedAt ?? '') < (newer.listedAt ?? '') ? older : newer
      const { listedAt, listedRound } = sooner
      const joined: Segment = {
        ...newer,
        from: older.from,
        rows: newer.rows + older.rows,
        listedAt,
        listedRound: Math.min(newer.listedRound, older.listedRound, listedRound),
      }
      remove.run(older.id)
      save(joined)
      return joined
    },
    retryNow: feed => {
      retryNow.run(feed)
    },
    moveBack: (ms, now) => {
      moveBack.run(movedBack(ms), now)
    },
    listedDownTo(feed) {
      let reached: string | null | undefined
      for (const segment of segmentsOf(feed)) {
        // A segment that waits after a failure may never be read, so it does not hold up older rows.
        if (segment.listedAt === null && segment.retryAt === null) return segment.edgeAt ?? reached
        reached = segment.from
      }
      return reached
    },
  }
}
