import type { Sqlite, StoredCell } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { META, readMeta, readNote } from '../sync/meta.ts'

/**
 * Tells which parts of the tables may have changed since a point in the history of the warehouse. A part is a month or
 * a range of keys (`divisions.ts`). Changes by other programs and by migrations are not noted.
 */

/** By table: its changed parts, as `sync_changed_parts` names them. A table that is not in this map has not changed. */
export type ChangedParts = ReadonlyMap<string, readonly string[]>

/**
 * @returns the present point; undefined while no writer has opened the warehouse since it was created, upgraded or
 * restored
 */
export function currentPoint(db: Sqlite): ChangePoint | undefined {
  const [opening] = readOpenings(key => readMeta(db, key)).at(-1) ?? []
  return opening === undefined ? undefined : { opening, change: lastChange(db) }
}

/**
 * @returns the parts changed after the point; undefined when the point is not in the history of this warehouse, so that
 * everything may have changed
 */
export function changesSince(db: Sqlite, point: ChangePoint): ChangedParts | undefined {
  const openings = readOpenings(key => readMeta(db, key))
  if (!isInHistory(point, openings, lastChange(db))) return undefined
  const noted = db
    .prepare<unknown[], [table: string, part: string]>(
      'SELECT table_name, part FROM sync_changed_parts WHERE change > ? ORDER BY table_name, part',
    )
    .raw()
    .all(point.change)
  const parts = new Map<string, string[]>()
  for (const [table, part] of noted) parts.set(table, [...(parts.get(table) ?? []), part])
  return parts
}

/** The number of the last change; 0 before the first change. */
export const lastChange = (db: Sqlite): number =>
  onlyRow(db.prepare<unknown[], number>('SELECT coalesce(max(change), 0) FROM sync_changed_parts').pluck())

/**
 * An opening is one start of a writer on the warehouse. Its random id shows whether a point is in this history. The
 * number of a change does not: a restored copy counts its changes from an earlier number again. Pure.
 */

/** The id of an opening, and the number of the last change before the opening. */
export type Opening = readonly [id: string, change: number]

/** A state of the warehouse: the last opening, and the number of the last change. */
export interface ChangePoint {
  opening: string
  change: number
}

/** How many of the newest openings are kept. A point of an earlier opening counts as unknown. */
const MOST = 100

export const withOpening = (openings: readonly Opening[], opening: Opening): readonly Opening[] =>
  [...openings, opening].slice(-MOST)

/**
 * Whether the warehouse was once in this state. All changes since then have greater numbers.
 * @param last the number of the last change
 */
export function isInHistory(
  { opening, change }: ChangePoint,
  openings: readonly Opening[],
  last: number,
): boolean {
  const place = openings.findIndex(([id]) => id === opening)
  if (place < 0) return false
  const [, end = last] = openings[place + 1] ?? []
  return change <= end
}

export const readOpenings = (meta: (key: string) => string | undefined): readonly Opening[] =>
  readNote<Opening[]>(meta, META.openings) ?? []

/**
 * The names of the parts of a table in the column `part` of `sync_changed_parts`: a month such as `2026-03`, or the
 * beginning of a key. Pure.
 */

/** The whole table. */
export const WHOLE = '*'

/** The rows without a time, in a table that is divided by month. */
export const NO_TIME = ''

/** One note stands for all texts with the same first characters, or for this many successive numbers. */
const CHARACTERS = 2
const NUMBERS = 4096

/**
 * @returns the note for a key: its first column, and the second column if there is one. The last of these cells is cut,
 * so that there are far fewer notes than rows: half a million hexadecimal ids have 256 notes.
 */
export function keyNote([first, second]: readonly StoredCell[]): string {
  if (first == null || second === null) return WHOLE
  return JSON.stringify(second === undefined ? [cut(first)] : [plain(first), cut(second)])
}

const plain = (cell: string | number | bigint) => (typeof cell === 'string' ? cell : Number(cell))

function cut(cell: string | number | bigint): string | number {
  if (typeof cell === 'string') return [...cell.slice(0, 2 * CHARACTERS)].slice(0, CHARACTERS).join('')
  return Math.floor(Number(cell) / NUMBERS) * NUMBERS
}

/** The cells of a note made by `keyNote`. The last cell is cut. */
export const cellsOfNote = (note: string): (string | number)[] => JSON.parse(note)

/** Whether the last cell of a note stands for a key's cell. */
export function standsFor(noted: string | number, cell: StoredCell): boolean {
  return typeof noted === 'string'
    ? typeof cell === 'string' && cell.startsWith(noted)
    : typeof cell !== 'string' && cell !== null && cell >= noted && cell < noted + NUMBERS
}
