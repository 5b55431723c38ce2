import { isOurs } from '../store/copy-owners.ts'

/**
 * What is due, and what may be destroyed, given the clocks and the notes in the database. Everything here is pure.
 *
 * One rule stands above all others: nothing is destroyed on the word of one clock. This machine's clock may be wrong by
 * years after a flat battery or before NTP, so whatever removes content waits until the API has told its own time and
 * both agree. Instants that were noted under a wrong clock are recognised because they contradict an instant that was
 * noted under a right one; their age is then counted from the first look under a right clock.
 */

export const DAY_MS = 86_400_000

/** Both in ms since the epoch. */
export interface Clocks {
  machine: number
  /** As the API's answers tell it; undefined before the first answer. */
  server: number | undefined
}

export type ClockTrust = 'agreed' | 'unknown' | 'apart'

/** Retention is counted in days, so a difference below one changes nothing that matters. */
const AGREED_WITHIN_MS = DAY_MS

export function trustIn({ machine, server }: Clocks): ClockTrust {
  if (server === undefined) return 'unknown'
  return Math.abs(machine - server) <= AGREED_WITHIN_MS ? 'agreed' : 'apart'
}

/**
 * Whether calendar work is due: at its next occurrence after it was last done, and at once where it never was. A note
 * from the future was made under a wrong clock and counts as none.
 * @param doneAt in ms since the epoch
 * @param next the next occurrence after an instant
 */
export function isMissed(doneAt: number | undefined, now: number, next: (after: number) => number): boolean {
  return doneAt === undefined || doneAt > now || next(doneAt) <= now
}

/** A whole copy of the warehouse that parley made: a kept snapshot, or the copy before an upgrade. */
export interface Copy {
  path: string
  /** The instant in its name, if its kind has one. All instants are in ms since the epoch. */
  namedAt: number | undefined
  modifiedAt: number
  /** Undefined where the file is damaged or was made by a version that noted none. */
  identity: string | undefined
  /**
   * When the last maintenance before it ended. That was under a right clock, so the copy is not older. Undefined also
   * before the first one.
   */
  maintainedAt: number | undefined
  /** True in the folder that is named after this database and holds nothing else. */
  isInOwnFolder: boolean
  /** A snapshot can be the last backup that there is. The copy before an upgrade is not meant as one. */
  isSnapshot: boolean
}

export interface CopyRules {
  /** By a clock that was found to agree with the API's. */
  now: number
  /** The identity of this warehouse. */
  identity: string | undefined
  /** Copies made before it hold what has been erased since; undefined where nothing is ever erased. */
  before: number | undefined
  /** When content was last erased from the warehouse. */
  erasedAt: number | undefined
  /** When its first maintenance ended; undefined where that was not noted. */
  firstMaintainedAt: number | undefined
}

/** `recount`: its age cannot be known, and is counted from now. `ask`: it is old, and may be of this warehouse. */
export type Fate = 'keep' | 'remove' | 'recount' | 'ask'

/** What happens to each of these copies, in their order. */
export function fatesOf(copies: readonly Copy[], rules: CopyRules): Fate[] {
  const { now, before, erasedAt, firstMaintainedAt = 0 } = rules
  const born = copies.map(copy => {
    const at = bornAt(copy, now)
    // Made before any clock was known to be right, it may be younger than it says.
    return at === undefined || copy.maintainedAt !== undefined ? at : Math.max(at, firstMaintainedAt)
  })
  const ours = copies.map(copy => isOurs(copy, rules.identity))
  const newest = Math.max(
    ...copies.map((copy, at) => (copy.isSnapshot && ours[at] ? (born[at] ?? now) : Number.NEGATIVE_INFINITY)),
  )
  return copies.map((copy, at): Fate => {
    const age = born[at]
    if (before === undefined) return 'keep'
    if (!ours[at]) return copy.identity === undefined && age !== undefined && age < before ? 'ask' : 'keep'
    if (age === undefined) return 'recount'
    if (age >= before) return 'keep'
    // The last backup does not go by its age alone, but by what it still holds.
    const isLast = copy.isSnapshot && age === newest
    const mayHoldErased = erasedAt !== undefined && erasedAt > madeAfter(copy, now) - AGREED_WITHIN_MS
    return isLast && !mayHoldErased ? 'keep' : 'remove'
  })
}

/** A file system may keep time a little differently. */
const SLACK_MS = 60_000

/** From when a copy's age counts, or undefined where neither its name nor its file can be right. */
function bornAt(copy: Copy, now: number): number | undefined {
  const { modifiedAt } = copy
  return trueName(copy, now) ?? (isPossible(modifiedAt, copy, now) ? modifiedAt : undefined)
}

/** An instant before which it was certainly not made: its file's time may be that of a recount. */
const madeAfter = (copy: Copy, now: number): number => trueName(copy, now) ?? copy.maintainedAt ?? 0

/** The instant in its name, unless it was made under a wrong clock: it is named before it is written. */
function trueName(copy: Copy, now: number): number | undefined {
  const { namedAt, modifiedAt } = copy
  if (namedAt === undefined || namedAt > modifiedAt + SLACK_MS) return undefined
  return isPossible(namedAt, copy, now) ? namedAt : undefined
}

function isPossible(at: number, { maintainedAt = 0 }: Copy, now: number): boolean {
  return at <= now + SLACK_MS && at >= maintainedAt - SLACK_MS
}

/** How the database's file is written anew, so that no piece of what was erased is left between its rows. */
export type Rebuild =
  /** At once, in memory: it takes a moment. */
  | 'in-memory'
  /** On the disk, when nothing else is under way: nobody can write meanwhile. */
  | 'on-disk'
  | 'none'

export interface RebuildState {
  /** Of the database. */
  bytes: number
  /** False once the file was written anew after the last erasure. */
  holdsPieces: boolean
  /** When a rebuild on the disk was last begun, in ms since the epoch. */
  triedAt: number | undefined
  now: number
}

const IN_MEMORY_UP_TO_BYTES = 32 * 1024 ** 2
/** Beyond it a rebuild would hold up all writing for minutes. */
export const ON_DISK_UP_TO_BYTES = 8 * 1024 ** 3
const ON_DISK_EVERY_MS = 7 * DAY_MS

export function rebuildOf({ bytes, holdsPieces, triedAt, now }: RebuildState): Rebuild {
  if (!holdsPieces) return 'none'
  if (bytes <= IN_MEMORY_UP_TO_BYTES) return 'in-memory'
  const isRecent = triedAt !== undefined && triedAt <= now && now - triedAt < ON_DISK_EVERY_MS
  return bytes > ON_DISK_UP_TO_BYTES || isRecent ? 'none' : 'on-disk'
}
