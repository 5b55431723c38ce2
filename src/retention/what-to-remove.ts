import { DAY_MS, MINUTE_MS } from '../base/clock.ts'
import { mayRemoveCopy } from '../store/snapshot/copy-process.ts'

/**
 * Decides which maintenance is due and which copies may be removed, from the clocks and from what is stored in the
 * database. All functions are pure.
 *
 * The rule: one clock alone never decides that content is removed. This machine's clock may be wrong by years, after a
 * flat battery or before NTP. So everything that removes content waits until the API's clock is known and the two
 * clocks agree within a day.
 *
 * An instant from a wrong clock is recognised when it contradicts an instant from a right clock. The age of the copy is
 * then counted from the first check under a right clock.
 */

/** Both in ms since the epoch. */
export interface Clocks {
  machine: number
  /** The API's clock, from the `Date` header of its responses; undefined before the first response. */
  server: number | undefined
}

/** A noted instant in ms since the epoch. */
export const instantOf = (noted: string | undefined): number | undefined =>
  noted === undefined ? undefined : Date.parse(noted)

export type ClockTrust = 'agreed' | 'unknown' | 'clocks-differ'

/** Retention is counted in days, so a smaller difference does not matter. */
const AGREED_WITHIN_MS = DAY_MS

export function clockTrust({ machine, server }: Clocks): ClockTrust {
  if (server === undefined) return 'unknown'
  return Math.abs(machine - server) <= AGREED_WITHIN_MS ? 'agreed' : 'clocks-differ'
}

/**
 * Whether calendar work is due: an occurrence has passed since the work was last done, or the work was never done. A
 * `doneAt` in the future was recorded under a wrong clock, and counts as never done.
 * @param doneAt in ms since the epoch
 * @param next the next occurrence after an instant
 */
export function isMissed(doneAt: number | undefined, now: number, next: (after: number) => number): boolean {
  return doneAt === undefined || doneAt > now || next(doneAt) <= now
}

/** A copy of the whole warehouse that parley made: a kept snapshot, or the copy from before an upgrade or a restore. */
export interface Copy {
  path: string
  /** The instant in its file name, if this kind of copy has one. All instants are in ms since the epoch. */
  namedAt: number | undefined
  modifiedAt: number
  /** Identity of the warehouse. Undefined where the file is damaged, or a version without identities made it. */
  identity: string | undefined
  /**
   * The end of the last maintenance before the copy was made. Maintenance only runs under a right clock, so the copy
   * cannot be older than this instant. Undefined before the first maintenance.
   */
  maintainedAt: number | undefined
  /** The last purge before the copy was made, by a right clock; undefined before the first purge. */
  purgedAt: number | undefined
  /** True in the folder that is only for this database's snapshots, and for copies next to the database. */
  isInOwnFolder: boolean
  /** A database that a restore replaced here. The restored copy may have another identity. */
  isKeptByRestore: boolean
  /** A snapshot may be the only backup. The other copies are not meant as backups. */
  isSnapshot: boolean
}

export interface CopyRules {
  /** By a clock that agrees with the API's. */
  now: number
  /** The identity of this warehouse. */
  identity: string | undefined
  /** Copies from before this instant are too old; undefined where content is never purged. */
  before: number | undefined
  /** When content was last purged from the warehouse. */
  purgedAt: number | undefined
  /** When the first maintenance of the warehouse began; undefined where that was not recorded. */
  firstMaintainedAt: number | undefined
}

/**
 * - `recount`: the copy's age is unknown, and is counted from now;
 * - `ask`: the copy is old and may be of this warehouse, and the operator has to decide.
 */
export type Fate = 'keep' | 'remove' | 'recount' | 'ask'

/** The fate of each copy, by age, in the order of `copies`. `store/snapshot/kept-snapshots.ts` limits their number. */
export function fatesOf(copies: readonly Copy[], rules: CopyRules): Fate[] {
  const { now, before, purgedAt, firstMaintainedAt = 0 } = rules
  const created = copies.map(copy => {
    const at = createdAt(copy, now)
    // A copy from before the first maintenance may have been made under a clock that was behind.
    return at === undefined || copy.maintainedAt !== undefined ? at : Math.max(at, firstMaintainedAt)
  })
  const ours = copies.map(copy => copy.isKeptByRestore || mayRemoveCopy(copy, rules.identity))
  const newest = Math.max(
    ...copies.map((copy, at) =>
      copy.isSnapshot && ours[at] ? (created[at] ?? now) : Number.NEGATIVE_INFINITY,
    ),
  )
  /** Whether a later snapshot no longer has content that was purged after the copy was made. */
  const hasCleanSuccessor = ({ identity, purgedAt: had = 0 }: Copy, at: number) =>
    identity !== undefined &&
    copies.some(
      (other, place) =>
        other.isSnapshot &&
        other.identity === identity &&
        (other.purgedAt ?? 0) > had &&
        (created[place] ?? 0) > (created[at] ?? now),
    )
  return copies.map((copy, at): Fate => {
    const since = created[at]
    if (before === undefined) return 'keep'
    if (!ours[at])
      return copy.identity === undefined && since !== undefined && since < before ? 'ask' : 'keep'
    if (hasCleanSuccessor(copy, at)) return 'remove'
    if (since === undefined) return 'recount'
    if (since >= before) return 'keep'
    // The newest snapshot may be the only backup. It is removed when it may hold purged content, not for its age alone.
    const isNewest = copy.isSnapshot && since === newest
    const mayHoldPurged = purgedAt !== undefined && purgedAt > createdNotBefore(copy, now) - AGREED_WITHIN_MS
    return isNewest && !mayHoldPurged ? 'keep' : 'remove'
  })
}

/** File systems round timestamps, and a network file system has a separate clock. */
const TOLERANCE_MS = MINUTE_MS

/** When the copy was made; undefined when neither the instant in its name nor its file time is plausible. */
function createdAt(copy: Copy, now: number): number | undefined {
  const { modifiedAt } = copy
  return plausibleNameTime(copy, now) ?? (isPossible(modifiedAt, copy, now) ? modifiedAt : undefined)
}

/**
 * An instant before which the copy was not made. The file time does not count: parley sets it for the fate `recount`.
 */
const createdNotBefore = (copy: Copy, now: number): number =>
  plausibleNameTime(copy, now) ?? copy.maintainedAt ?? 0

/** The instant in the file name; undefined when there is none, or it is impossible or later than the file's time. */
function plausibleNameTime(copy: Copy, now: number): number | undefined {
  const { namedAt, modifiedAt } = copy
  if (namedAt === undefined || namedAt > modifiedAt + TOLERANCE_MS) return undefined
  return isPossible(namedAt, copy, now) ? namedAt : undefined
}

function isPossible(at: number, { maintainedAt = 0 }: Copy, now: number): boolean {
  return at <= now + TOLERANCE_MS && at >= maintainedAt - TOLERANCE_MS
}

/** When the database file is rebuilt, so that its free space holds no remains of purged content. */
export type Rebuild =
  /** At once. It takes a moment. */
  | 'now'
  /** Between two sessions or at the end of a backfill, since it blocks all writes. */
  | 'alone'
  | 'none'

interface RebuildState {
  /** Size of the database. */
  bytes: number
  /** When a rebuild of a large file was last started, in ms since the epoch. */
  triedAt: number | undefined
  now: number
}

const AT_ONCE_UP_TO_BYTES = 32 * 1024 ** 2
/** A rebuild of a larger file would block all writes for many minutes. */
export const REBUILT_UP_TO_BYTES = 8 * 1024 ** 3
const ALONE_EVERY_MS = 7 * DAY_MS

/** The rebuild of a file that holds remains of purged content. */
export function rebuildFor({ bytes, triedAt, now }: RebuildState): Rebuild {
  if (bytes <= AT_ONCE_UP_TO_BYTES) return 'now'
  const isRecent = triedAt !== undefined && triedAt <= now && now - triedAt < ALONE_EVERY_MS
  return bytes > REBUILT_UP_TO_BYTES || isRecent ? 'none' : 'alone'
}
