import { META, readNote } from '../sync/meta.ts'

/**
 * The openings of a warehouse by its writers, by which an earlier point in its history is recognised. A restored copy
 * counts its changes from an earlier number again, so the number alone does not show whether a change is known. Pure.
 */

/** An opening, and the number of the last change before it. */
export type Opening = readonly [id: string, change: number]

/** A state of the warehouse: the last opening, and the number of the last change. */
export interface ChangePoint {
  opening: string
  change: number
}

/** How many of the newest openings are kept. A point of an earlier one counts as unknown. */
const MOST = 100

export const withOpening = (openings: readonly Opening[], opening: Opening): readonly Opening[] =>
  [...openings, opening].slice(-MOST)

/**
 * Whether the warehouse was in this state, so that all changes since have greater numbers.
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
