import { type Backoff, backoffMs } from '../base/backoff.ts'
import { DAY_MS, isoInstant, MINUTE_MS } from '../base/clock.ts'
import type { HealthProblem, ProblemKind } from '../health/problems.ts'

/**
 * Decides which problems a person is called about, and when. Pure.
 *
 * A look finds the present problems. A problem exists when two looks in a row saw it, and is gone when two did not. A
 * person is called when that differs from the last call. Each call is one try: if the call fails, a later look that
 * finds it still due tries again.
 */

export type HookEvent = 'problem' | 'recovered'

export interface WatchedProblem extends Pick<HealthProblem, 'id' | 'kind' | 'what' | 'detail' | 'todo'> {
  /** The instant that the problem states, or the instant of the first look that saw the problem. */
  since: string
  /** Looks in a row that saw the problem, counted to two. Looks in a row that did not see it are negative. */
  looks: number
  /** The call that is under way; `at` is its start, in ms since the epoch. */
  calling?: { event: HookEvent; at: number } | undefined
  /** The call that failed last, and when it may be tried again, in ms since the epoch. */
  failed?: { event: HookEvent; tries: number; retryAt: number } | undefined
  /** The last call about the problem that succeeded or was given up. `isHeard`: whether any call about it succeeded. */
  called?: { at: number; isHeard: boolean } | undefined
}

export interface ProblemLook {
  /** In ms since the epoch. */
  at: number
  problems: readonly HealthProblem[]
  /** Ids of problems that last, also of those that are not in `problems` because another problem explains them. */
  lasting?: readonly string[]
  /** Whether the database could not be read. Other problems than these may then exist as well. */
  isPartial: boolean
}

export interface AnnouncementLimits {
  /** How long a problem of kind `wait` lasts before someone is called. */
  waitMs: number
  /** How many calls may begin. Other calls begin after later looks. */
  room: number
}

export interface DueCall {
  event: HookEvent
  problem: WatchedProblem
}

/** A problem that needs a person is announced again after this time. */
const REPEAT_MS = DAY_MS

/** This many looks in a row must see a problem, or miss it. */
const LOOKS = 2

const TRIES = 5
/** The waits between five tries are about 15 minutes together. */
const RETRY: Backoff = { firstMs: MINUTE_MS, mostMs: 8 * MINUTE_MS, jitter: 0.2 }

/**
 * @returns the calls to begin now, about recoveries, then about the most serious problems; and the watched problems
 * after the look
 */
export function callsAfter(
  watched: readonly WatchedProblem[],
  look: ProblemLook,
  { waitMs, room }: AnnouncementLimits,
): { calls: readonly DueCall[]; next: readonly WatchedProblem[] } {
  const seen = watched.map(one => afterLook(withPastInstants(one, look.at), look))
  const counted = [...seen, ...newProblems(watched, look)].filter(isRemembered)
  const rankOf = ({ id }: WatchedProblem) => look.problems.findIndex(problem => problem.id === id)
  const calls = counted
    .toSorted((one, other) => rankOf(one) - rankOf(other))
    .flatMap(one => {
      const event = dueEvent(one, look, waitMs)
      const isPutOff = one.failed?.event === event && (one.failed?.retryAt ?? 0) > look.at
      return event === undefined || isPutOff || one.calling ? [] : { event, problem: one }
    })
    .slice(0, Math.max(0, room))
    .map(({ event, problem }): DueCall => {
      const texts = event === 'problem' ? textsIn(look, problem) : {}
      return { event, problem: { ...problem, ...texts, calling: { event, at: look.at } } }
    })
  const next = counted.map(one => calls.find(({ problem }) => problem.id === one.id)?.problem ?? one)
  return { calls, next }
}

/** An instant that is later than the look was taken before the clock was set back, and counts as none. */
const pastInstant = (since: string | null, at: number): string | null =>
  since !== null && Date.parse(since) > at ? null : since

/** A clock that is set back must not put off a call, so the waits that began under the earlier time begin again. */
function withPastInstants({ since, called, failed, ...one }: WatchedProblem, at: number): WatchedProblem {
  return {
    ...one,
    since: pastInstant(since, at) ?? isoInstant(at),
    ...(called && { called: { ...called, at: Math.min(called.at, at) } }),
    ...(failed && { failed: { ...failed, retryAt: Math.min(failed.retryAt, at + RETRY.mostMs) } }),
  }
}

/** @returns the event that a call is due about; undefined when the last call is still true */
function dueEvent(
  { id, since, kind: calledAs, looks, called }: WatchedProblem,
  { at, problems }: ProblemLook,
  waitMs: number,
): HookEvent | undefined {
  if (looks <= -LOOKS) return called?.isHeard ? 'recovered' : undefined
  const kind = problems.find(problem => problem.id === id)?.kind
  if (looks < LOOKS || kind === undefined) return undefined
  const isDue =
    called === undefined
      ? kind !== 'wait' || at - Date.parse(since) >= waitMs
      : kind !== 'wait' && (calledAs === 'wait' || at - called.at >= REPEAT_MS)
  return isDue ? 'problem' : undefined
}

/** The texts of the problem as the look saw it. Between two calls, the texts stay those of the last call. */
function textsIn({ problems }: ProblemLook, watched: WatchedProblem) {
  const { kind, what, detail, todo } = problems.find(({ id }) => id === watched.id) ?? watched
  return { kind, what, detail, todo }
}

/**
 * A problem that another one explains still exists. After a look that could not read the database, a problem that it
 * did not see may still exist.
 */
function afterLook(one: WatchedProblem, look: ProblemLook): WatchedProblem {
  const problem = look.problems.find(({ id }) => id === one.id)
  if (problem === undefined)
    return look.isPartial || look.lasting?.includes(one.id)
      ? one
      : { ...one, looks: Math.max(-LOOKS, Math.min(one.looks, 0) - 1) }
  const seen = { ...one, looks: Math.min(LOOKS, Math.max(one.looks, 0) + 1) }
  if (one.called || one.calling) return seen
  return { ...seen, ...textsIn(look, one), since: pastInstant(problem.since, look.at) ?? one.since }
}

function newProblems(watched: readonly WatchedProblem[], { at, problems }: ProblemLook): WatchedProblem[] {
  return problems
    .filter(({ id }, index) => problems.findIndex(one => one.id === id) === index)
    .filter(({ id }) => watched.every(one => one.id !== id))
    .map(problem => withPastInstants({ ...unseen(problem, at), looks: 1 }, at))
}

function unseen({ id, kind, what, detail, todo, since }: HealthProblem, at: number): WatchedProblem {
  return { id, kind, what, detail, todo, since: since ?? isoInstant(at), looks: 0 }
}

const isRemembered = ({ looks, called, calling }: WatchedProblem) =>
  looks > -LOOKS || called?.isHeard || calling !== undefined

export interface EndedCall {
  problem: WatchedProblem
  isHeard: boolean
  now: number
  /** Returns a number from 0 to below 1. */
  random(): number
}

/**
 * @returns `next`: the problem after its call has ended, undefined when it is forgotten; `tries`: the tries of the call
 * so far; `waitMs`: the wait before the next try, undefined when there is none
 */
export function afterCall({ problem, isHeard, now, random }: EndedCall): {
  next: WatchedProblem | undefined
  tries: number
  waitMs: number | undefined
} {
  const { calling, failed, ...one } = problem
  const { event, at } = calling ?? { event: 'problem', at: now }
  const tries = 1 + (failed?.event === event ? failed.tries : 0)
  if (!isHeard && tries < TRIES) {
    const waitMs = Math.round(backoffMs(RETRY, tries, random))
    return { next: { ...one, failed: { event, tries, retryAt: now + waitMs } }, tries, waitMs }
  }
  const called = { at, isHeard: isHeard || one.called?.isHeard === true }
  return { next: event === 'recovered' ? undefined : { ...one, called }, tries, waitMs: undefined }
}

/** What is stored of a problem that a person was called about. The call about its recovery repeats these texts. */
export interface AnnouncedNote extends Pick<WatchedProblem, 'id' | 'what' | 'todo' | 'since'> {
  /** Absent in notes of earlier versions. */
  kind?: ProblemKind
  called_at?: string
}

export function announcedNotes(watched: readonly WatchedProblem[]): AnnouncedNote[] {
  return watched.flatMap(({ id, kind, what, todo, since, called }) =>
    called?.isHeard ? [{ id, kind, what, todo, since, called_at: isoInstant(called.at) }] : [],
  )
}

/** @returns a problem that the looks did not find, and that a person has been called about */
export function announcedProblem(problem: HealthProblem, at: number): WatchedProblem {
  return { ...unseen(problem, at), called: { at, isHeard: true } }
}

/** Adds the stored problems. A problem that this process already calls about stays as it is. */
export function withStored(
  watched: readonly WatchedProblem[],
  stored: readonly AnnouncedNote[],
  now: number,
): readonly WatchedProblem[] {
  const isStored = ({ id, called, calling }: WatchedProblem) =>
    !called && !calling && stored.some(note => note.id === id)
  const kept = watched.filter(one => !isStored(one))
  const added = stored
    .filter(({ id }) => kept.every(one => one.id !== id))
    .map(({ kind = 'act', called_at: calledAt, ...note }) =>
      announcedProblem({ ...note, kind, detail: null }, calledAt === undefined ? now : Date.parse(calledAt)),
    )
  return [...kept, ...added]
}
