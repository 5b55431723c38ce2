import { DAY_MS, isoInstant } from '../base/clock.ts'
import type { HealthProblem, ProblemKind } from '../health/problems.ts'

/**
 * Which problems someone is called about, and when. Pure.
 *
 *   seen → calling       two looks in a row saw the problem, and it lasted long enough
 *   calling → called     a try of the call succeeded, or every try failed
 *   called → calling     a problem that parley waited out needs a person now, or needs one for another day
 *   called → recovering  two looks in a row did not see the problem, and a call about it succeeded
 *   recovering → called  the problem is back before the call about its recovery succeeded
 *
 * A problem is forgotten when two looks in a row did not see it: after the call about its recovery if a call about the
 * problem succeeded, else at once, or when its call was withdrawn.
 */
export type AnnouncementStage = 'seen' | 'calling' | 'called' | 'recovering'

export interface WatchedProblem extends Pick<HealthProblem, 'id' | 'kind' | 'what' | 'detail' | 'todo'> {
  /** The instant that the problem states, or that of the first look that saw it. */
  since: string
  stage: AnnouncementStage
  /** Whether a call about it has succeeded. */
  isHeard: boolean
  /** When its last call began, in ms since the epoch; undefined before. `kind` is that of the last call. */
  calledAt: number | undefined
  /** Looks in a row that saw the problem, counted to two; 0 when the last one did not. */
  present: number
  /** Looks in a row that did not see the problem, counted to two; 0 when the last one did. */
  absent: number
}

export interface ProblemLook {
  /** In ms since the epoch. */
  at: number
  problems: readonly HealthProblem[]
  /** Whether the database could not be read. Other problems than these may then exist as well. */
  isPartial: boolean
}

export interface AnnouncementLimits {
  /** How long a problem of kind `wait` lasts before someone is called. */
  waitMs: number
  /** How many calls may begin. The others begin after later looks. */
  room: number
}

export interface AnnouncementStep {
  announce: readonly WatchedProblem[]
  recovered: readonly WatchedProblem[]
  /** The ids of problems whose calls must not be tried again, since they are no longer true. */
  withdraw: readonly string[]
  next: readonly WatchedProblem[]
}

export type DeliveryEnd = 'delivered' | 'failed' | 'withdrawn'

/** A problem that needs a person is announced again after this time. */
const REPEAT_MS = DAY_MS

/** In this many looks in a row a problem must be seen, or missed. */
const LOOKS = 2

export function announcementsAfter(
  watched: readonly WatchedProblem[],
  look: ProblemLook,
  { waitMs, room }: AnnouncementLimits,
): AnnouncementStep {
  const counted = [...counts(watched, look), ...newProblems(watched, look)].filter(isRemembered)
  const isRecovered = ({ stage, isHeard, absent }: WatchedProblem) =>
    stage === 'called' && isHeard && absent >= LOOKS
  const recovered = counted.filter(isRecovered).slice(0, room)
  const due = dueProblems(counted, look, waitMs).slice(0, room - recovered.length)
  const announce = due.map(
    one => ({ ...one, ...textsIn(look, one), stage: 'calling', calledAt: look.at }) as const,
  )
  const isStale = ({ stage, present, absent }: WatchedProblem) =>
    (stage === 'calling' && absent >= LOOKS) || (stage === 'recovering' && present > 0)
  return {
    announce,
    recovered,
    withdraw: counted.filter(isStale).map(({ id }) => id),
    next: counted.map(
      one =>
        announce.find(({ id }) => id === one.id) ??
        (recovered.includes(one) ? { ...one, stage: 'recovering' as const } : one),
    ),
  }
}

/** What the look saw of the problem. Between two calls the texts stay those of the last one. */
function textsIn({ problems }: ProblemLook, watched: WatchedProblem) {
  const { kind, what, detail, todo } = problems.find(({ id }) => id === watched.id) ?? watched
  return { kind, what, detail, todo }
}

/** The problems to announce, the most serious first. */
function dueProblems(
  watched: readonly WatchedProblem[],
  { at, problems }: ProblemLook,
  waitMs: number,
): WatchedProblem[] {
  const isDue = ({ stage, since, kind: calledAs, calledAt = 0 }: WatchedProblem, kind: ProblemKind) => {
    if (stage === 'seen') return kind !== 'wait' || at - Date.parse(since) >= waitMs
    return stage === 'called' && kind !== 'wait' && (calledAs === 'wait' || at - calledAt >= REPEAT_MS)
  }
  const due = problems.flatMap(({ id, kind }) =>
    watched.filter(one => one.id === id && one.present >= LOOKS && isDue(one, kind)),
  )
  return [...new Set(due)]
}

/** After a look that could not read the database, a problem that it did not see may still exist. */
function counts(watched: readonly WatchedProblem[], look: ProblemLook): WatchedProblem[] {
  return watched.map(one => {
    const problem = look.problems.find(({ id }) => id === one.id)
    if (problem === undefined)
      return look.isPartial ? one : { ...one, present: 0, absent: Math.min(one.absent + 1, LOOKS) }
    const present = { present: Math.min(one.present + 1, LOOKS), absent: 0 }
    if (one.stage !== 'seen') return { ...one, ...present }
    return { ...one, ...present, ...textsIn(look, one), since: problem.since ?? one.since }
  })
}

function newProblems(watched: readonly WatchedProblem[], { at, problems }: ProblemLook): WatchedProblem[] {
  return problems
    .filter(({ id }, index) => problems.findIndex(one => one.id === id) === index)
    .filter(({ id }) => watched.every(one => one.id !== id))
    .map(problem => ({ ...unseen(problem, at), present: 1 }))
}

function unseen({ id, kind, what, detail, todo, since }: HealthProblem, at: number): WatchedProblem {
  return {
    ...{ id, kind, what, detail, todo, since: since ?? isoInstant(at) },
    ...{ stage: 'seen', isHeard: false, calledAt: undefined, present: 0, absent: 0 },
  }
}

const isRemembered = ({ stage, isHeard, absent }: WatchedProblem) =>
  absent < LOOKS || isHeard || stage === 'calling'

/** The problems after a call about one of them has ended. */
export function afterDelivery(
  watched: readonly WatchedProblem[],
  id: string,
  end: DeliveryEnd,
): readonly WatchedProblem[] {
  return watched.flatMap(one => {
    if (one.id !== id) return [one]
    const called = { ...one, stage: 'called' as const, isHeard: one.isHeard || end === 'delivered' }
    if (one.stage === 'recovering') return end === 'withdrawn' ? [called] : []
    if (one.stage !== 'calling') return [one]
    return end === 'withdrawn' && !one.isHeard ? [] : [called]
  })
}

/** What is stored of a problem that someone has heard of. The call about its recovery repeats it. */
export interface AnnouncedNote extends Pick<WatchedProblem, 'id' | 'what' | 'todo' | 'since'> {
  /** Absent in notes of earlier versions. */
  kind?: ProblemKind
  called_at?: string
}

export function announcedNotes(watched: readonly WatchedProblem[]): AnnouncedNote[] {
  return watched
    .filter(({ isHeard }) => isHeard)
    .map(({ id, kind, what, todo, since, calledAt = 0 }) => {
      return { id, kind, what, todo, since, called_at: isoInstant(calledAt) }
    })
}

/** A problem that the looks did not find, and that someone is called about at once. */
export function announcedProblem(problem: HealthProblem, at: number): WatchedProblem {
  return { ...unseen(problem, at), stage: 'called', isHeard: true, calledAt: at }
}

function restored({ kind = 'act', called_at: calledAt, ...note }: AnnouncedNote, at: number): WatchedProblem {
  const problem = announcedProblem({ ...note, kind, detail: null }, at)
  return calledAt === undefined ? problem : { ...problem, calledAt: Date.parse(calledAt) }
}

/** Adds the stored problems. A problem that this process already calls about stays as it is. */
export function withStored(
  watched: readonly WatchedProblem[],
  stored: readonly AnnouncedNote[],
  at: number,
): readonly WatchedProblem[] {
  const isStored = ({ id, stage }: WatchedProblem) => stage === 'seen' && stored.some(note => note.id === id)
  const kept = watched.filter(one => !isStored(one))
  const added = stored.filter(({ id }) => kept.every(one => one.id !== id))
  return [...kept, ...added.map(note => restored(note, at))]
}
