/**
 * The names of the parts of a table in the column `part` of `sync_changed_parts`: a month such as `2026-03`, or the
 * beginning of a key. Pure.
 */

/** The whole table. */
export const WHOLE = '*'

/** The rows without a time, in a table that is divided by month. */
export const NO_TIME = ''

/** A key cell as SQLite returns it. */
export type KeyCell = string | number | bigint | null

/** How many characters of a text, and how many successive numbers, one note stands for. */
const CHARACTERS = 2
const NUMBERS = 4096

/**
 * The beginning of a key: its first column, and in a longer key its second too. The last of them is cut, so that the
 * number of notes stays far below that of rows. Half a million ids in hexadecimal digits have 256 notes.
 */
export function keyNote([first, second]: readonly KeyCell[]): string {
  if (first == null || second === null) return WHOLE
  return JSON.stringify(second === undefined ? [cut(first)] : [plain(first), cut(second)])
}

const plain = (cell: string | number | bigint) => (typeof cell === 'string' ? cell : Number(cell))

function cut(cell: string | number | bigint): string | number {
  if (typeof cell === 'string') return [...cell.slice(0, 2 * CHARACTERS)].slice(0, CHARACTERS).join('')
  return Math.floor(Number(cell) / NUMBERS) * NUMBERS
}

/** The cells of a note that `keyNote` has made, of which the last is cut. */
export const cellsOfNote = (note: string): (string | number)[] => JSON.parse(note)

/** Whether the last cell of a note stands for a key's cell. */
export function standsFor(noted: string | number, cell: KeyCell): boolean {
  return typeof noted === 'string'
    ? typeof cell === 'string' && cell.startsWith(noted)
    : typeof cell !== 'string' && cell !== null && cell >= noted && cell < noted + NUMBERS
}
