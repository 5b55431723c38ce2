import { isoInstant } from '../../base/clock.ts'
import { type PropertiesOf, propertyOf } from '../../catalog/bookkeeping/table-declaration.ts'
import { SEGMENT_TABLE } from '../../catalog/bookkeeping/tables.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { createMeta } from './meta.ts'

/**
 * A list query with its checkpoint: a span of event time of a timeline, a period of a log, or a whole list or scope in
 * the mode `snapshot`. The segments of a timeline cover the time axis without gaps: the oldest has no `from`, the
 * newest no `to`.
 */
export interface Segment extends Omit<SegmentRow, JsonProperty | 'closed'> {
  query: Readonly<Record<string, string>> | null
  cursor: Readonly<Record<string, string>> | null
  edgeKeys: readonly string[]
  closed: boolean
}

type JsonProperty = 'query' | 'cursor' | 'edgeKeys'

type StoredRow = PropertiesOf<typeof SEGMENT_TABLE>

interface SegmentRow extends Omit<StoredRow, 'fromAt' | 'toAt'> {
  from: string | null
  to: string | null
}

export type Segments = ReturnType<typeof createSegments>

/** The columns of the table, each with its property of a segment. */
const PROPERTIES = Object.keys(SEGMENT_TABLE.columns).map(column => {
  const property = propertyOf(column)
  return { column, property: { fromAt: 'from', toAt: 'to' }[property] ?? property }
})

const COLUMNS = PROPERTIES.map(({ column, property }) => `${column} AS "${property}"`).join(', ')

/** The columns that `save` leaves alone: they may change while a request is in flight. */
const OWN_VERBS: readonly string[] = ['wanted_at', 'tries', 'try_at']

function fromRow({ query, cursor, edgeKeys, closed, ...row }: SegmentRow): Segment {
  const json = (text: string | null) => (text === null ? null : JSON.parse(text))
  return {
    ...row,
    query: json(query),
    cursor: json(cursor),
    edgeKeys: json(edgeKeys) ?? [],
    closed: closed === 1,
  }
}

function toRow({ query, cursor, edgeKeys, closed, ...segment }: Segment): SegmentRow {
  const json = (value: object | null) => (value === null ? null : JSON.stringify(value))
  return {
    ...segment,
    query: json(query),
    cursor: json(cursor),
    edgeKeys: json(edgeKeys),
    closed: closed ? 1 : 0,
  }
}

/** Value of `totalSize` when pages of the same pass stated different sizes. */
export const SIZE_CHANGED = -1

/**
 * Prefix of the keys in `sync_meta` of the lists whose last pass showed another number of rows than the list states,
 * as in `size_differs:teams.list/`. The value is the time since when.
 */
export const SIZE_DIFFERS = 'size_differs:'

/** The state of a pass that has not begun. */
export const NO_PASS = {
  query: null,
  cursor: null,
  passStartedAt: null,
  passRound: null,
  passWantedAt: null,
  pages: 0,
  rows: 0,
  edgeAt: null,
  edgeKeys: [],
  totalSize: null,
} satisfies Partial<Segment>

interface KnownList {
  segments: Segment[]
  places: ReadonlyMap<number, number>
}

const knownList = (segments: Segment[]): KnownList => ({
  segments,
  places: new Map(segments.map(({ id }, place) => [id, place])),
})

export function createSegments(prepare: Prepare) {
  const meta = createMeta(prepare)
  const sizeDiffers = ({ feed, scope }: Pick<Segment, 'feed' | 'scope'>) => `${SIZE_DIFFERS}${feed}/${scope}`
  const saved = PROPERTIES.filter(({ column }) => !['id', ...OWN_VERBS].includes(column))
  const insert = prepare<SegmentRow>(
    `INSERT INTO sync_segments (feed, scope, from_at, to_at, wanted_at) VALUES (?, ?, ?, ?, ?) RETURNING ${COLUMNS}`,
  )
  const update = prepare(
    `UPDATE sync_segments SET ${saved.map(({ column, property }) => `${column} = @${property}`).join(', ')} WHERE id = @id`,
  )
  const select = prepare<SegmentRow>(
    `SELECT ${COLUMNS} FROM sync_segments WHERE feed = ? AND scope = coalesce(?, scope)
     ORDER BY scope, to_at IS NOT NULL, to_at DESC, id`,
  )
  const want = prepare('UPDATE sync_segments SET wanted_at = ? WHERE id = ?')
  const met = prepare('UPDATE sync_segments SET wanted_at = NULL WHERE id = ? AND wanted_at = ?')
  const tryAgain = prepare('UPDATE sync_segments SET tries = tries + 1, try_at = ? WHERE id = ?')
  const settled = prepare('UPDATE sync_segments SET tries = 0, try_at = NULL WHERE id = ?')
  const selectOne = prepare<SegmentRow>(`SELECT ${COLUMNS} FROM sync_segments WHERE id = ?`)
  const remove = prepare('DELETE FROM sync_segments WHERE id = ?')
  const removeAll = prepare('DELETE FROM sync_segments WHERE feed = ?')
  const retryWhole = prepare(
    `UPDATE sync_segments SET retry_at = NULL, attempts = iif(cursor IS NULL, 0, attempts), query = iif(cursor IS NULL, NULL, query)
     WHERE feed = ? AND attempts > 0`,
  )
  const readWholePages = prepare(
    'UPDATE sync_segments SET query = NULL WHERE feed = ? AND attempts > 0 AND cursor IS NULL',
  )
  const retryNow = prepare(
    `UPDATE sync_segments SET retry_at = NULL, tries = 0, try_at = NULL
     WHERE feed = ? AND (retry_at IS NOT NULL OR tries > 0)`,
  )

  /**
   * Cached lists: each look for due work reads the segments of every list, far more often than a segment is written.
   */
  const known = new Map<string, KnownList>()
  /** Ids of segments that were changed, not added or removed, since the lists were cached. */
  const written = new Set<number>()
  const dataVersion = prepare<number>('PRAGMA data_version').pluck()
  let version: number | undefined
  const forget = () => {
    known.clear()
    written.clear()
  }
  /** Reads the changed segments again. A list whose order has changed is forgotten. */
  const catchUp = () => {
    for (const id of written) {
      const now = find(id)
      for (const [name, { segments, places }] of known) {
        const place = places.get(id)
        if (place === undefined) continue
        const before = segments[place]
        if (now !== undefined && now.to === before?.to && now.scope === before.scope) segments[place] = now
        else known.delete(name)
      }
    }
    written.clear()
  }

  const segmentsOf = (feed: string, scope?: string): Segment[] => {
    const read = () => select.all(feed, scope ?? null).map(fromRow)
    // The segments of one scope are not cached: a feed may have thousands of scopes.
    if (scope !== undefined && scope !== '') return read()
    const { inTransaction } = select.database
    const before = version
    version = dataVersion.get()
    // Another connection has written to the database.
    if (version !== before) forget()
    // Not inside a transaction: a rollback would undo its writes.
    if (!inTransaction) catchUp()
    const name = scope === undefined ? feed : `${feed} `
    const list = known.get(name)
    if (list !== undefined && written.size === 0) return [...list.segments]
    const segments = read()
    if (!inTransaction) known.set(name, knownList(segments))
    return [...segments]
  }
  /** Every write that adds, removes or moves segments goes through this function. */
  const writing = <T>(write: () => T): T => {
    forget()
    return write()
  }
  /** Every other write goes through this function. */
  const changing = (id: number, write: () => void): void => {
    written.add(id)
    write()
  }
  const find = (id: number): Segment | undefined => {
    const row = selectOne.get(id)
    return row && fromRow(row)
  }
  const add = (
    { feed, scope, from, to }: Pick<Segment, 'feed' | 'scope' | 'from' | 'to'>,
    wantedAt: string | null = null,
  ) => writing(() => fromRow(onlyRow(insert, feed, scope, from, to, wantedAt)))
  const save = (segment: Segment) => changing(segment.id, () => void update.run(toRow(segment)))
  const wantAt = (id: number, at: string) => {
    const before = find(id)?.wantedAt ?? null
    // The new time differs from the stored one, which a pass under way may be about to meet.
    const next = before === null || before > at ? at : isoInstant(Date.parse(before) + 1)
    changing(id, () => void want.run(next, id))
  }

  return {
    /** Returns the newest segments first. */
    of: segmentsOf,
    /** The segment as it is stored now; undefined when it was removed. */
    find,
    add: (segment: Pick<Segment, 'feed' | 'scope' | 'from' | 'to'>) => add(segment),
    save,
    /**
     * Makes a segment due at a time of the due clock, or earlier when it is wanted earlier. Only a pass whose first page
     * is requested after this call meets the want.
     */
    want: wantAt,
    /**
     * Ends the want that the segment's pass has met. A want that came after the pass's first page was requested stays.
     */
    met: ({ id, passWantedAt }: Pick<Segment, 'id' | 'passWantedAt'>) =>
      changing(id, () => void met.run(id, passWantedAt)),
    /** Notes a failed request, which is made again at a time of the due clock. */
    tryAgain: (id: number, at: string) => changing(id, () => void tryAgain.run(at, id)),
    /** Ends the tries: the request was answered, or has failed for good. */
    settled: (id: number) => changing(id, () => void settled.run(id)),
    remove(segment: Segment): void {
      meta.remove(sizeDiffers(segment))
      writing(() => void remove.run(segment.id))
    },
    /** Notes whether the last pass showed as many rows as the list states, and since when it does not. */
    noteSize(segment: Segment, isAsStated: boolean, now: string): void {
      const name = sizeDiffers(segment)
      const isNoted = meta.get(name) !== undefined
      if (isAsStated && isNoted) meta.remove(name)
      else if (!isAsStated && !isNoted) meta.set(name, now)
    },
    removeAll: (feed: string) => writing(() => void removeAll.run(feed)),
    /**
     * Cuts a segment at an instant within it. The segment keeps the newer part. Returns the older part, a new segment
     * without a pass, with the `listedAt` of the whole. Both parts include the instant.
     */
    cut(segment: Segment, at: string): Segment {
      save({ ...segment, from: at })
      const { listedAt, listedRound } = segment
      const older = { ...add({ ...segment, to: at }, find(segment.id)?.wantedAt), listedAt, listedRound }
      save(older)
      return older
    },
    /** Joins two neighbours and returns the result, which has the earlier `listedAt` of the two. */
    join(newer: Segment, older: Segment): Segment {
      const sooner = (older.listedAt ?? '') < (newer.listedAt ?? '') ? older : newer
      const { listedAt, listedRound } = sooner
      const joined: Segment = {
        ...newer,
        from: older.from,
        rows: newer.rows + older.rows,
        listedRows:
          newer.listedRows === null || older.listedRows === null ? null : newer.listedRows + older.listedRows,
        listedAt,
        listedRound: Math.min(newer.listedRound, older.listedRound, listedRound),
      }
      writing(() => remove.run(older.id))
      save(joined)
      if (older.wantedAt !== null) wantAt(newer.id, older.wantedAt)
      return joined
    },
    /** Forgets the smaller `limit` that failures have caused, where no cursor needs its query. */
    readWholePages: (feed: string) => writing(() => void readWholePages.run(feed)),
    /**
     * Ends the waits of `retryAt`. Where no cursor needs its query, also forgets the failures and the smaller `limit`.
     */
    retryWhole: (feed: string) => writing(() => void retryWhole.run(feed)),
    /** Ends the waits after failures. */
    retryNow: (feed: string) => writing(() => void retryNow.run(feed)),
    /**
     * The instant down to which the feed was listed without a gap, from its newest end. A segment that waits after a
     * failure counts as listed. Null for the whole time axis; undefined when nothing was listed.
     */
    listedDownTo(feed: string) {
      let reached: string | null | undefined
      for (const segment of segmentsOf(feed)) {
        // A segment that waits after a failure may never be read. Older rows must not wait for it.
        if (segment.listedAt === null && segment.retryAt === null) return segment.edgeAt ?? reached
        reached = segment.from
      }
      return reached
    },
  }
}
