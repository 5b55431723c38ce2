import { isoInstant } from '../clock.ts'
import type { HealthProblem } from '../health/problems.ts'

/**
 * Which problems someone is called about, and when. Pure.
 *
 *   seen → calling          two looks in a row saw the problem, and it lasted long enough
 *   calling → announced     the call succeeded
 *   calling → unheard       every try of the call failed; the problem is not announced again while it lasts
 *   announced → recovering  two looks in a row did not see the problem
 *   recovering → announced  the problem is back before the call about its recovery succeeded
 *
 * A problem is forgotten when two looks in a row did not see it: at once while it is seen or unheard, when its call was
 * withdrawn while it is calling, and after the call about its recovery otherwise.
 */
export type AnnouncementStage = 'seen' | 'calling' | 'announced' | 'unheard' | 'recovering'

export interface WatchedProblem extends Pick<HealthProblem, 'id' | 'what' | 'detail' | 'todo'> {
  /** The instant that the problem states, or that of the first look that saw it. */
  since: string
  stage: AnnouncementStage
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
  /** How long a problem of kind `wait` lasts before it is announced. */
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

/** In this many looks in a row a problem must be seen, or missed. */
const LOOKS = 2

export function announcementsAfter(
  watched: readonly WatchedProblem[],
  look: ProblemLook,
  { waitMs, room }: AnnouncementLimits,
): AnnouncementStep {
  const counted = [...counts(watched, look), ...newProblems(watched, look)].filter(isRemembered)
  const isRecovered = (one: WatchedProblem) => one.stage === 'announced' && one.absent >= LOOKS
  const recovered = counted.filter(isRecovered).slice(0, room)
  const announce = dueProblems(counted, look, waitMs).slice(0, room - recovered.length)
  const isStale = ({ stage, present, absent }: WatchedProblem) =>
    (stage === 'calling' && absent >= LOOKS) || (stage === 'recovering' && present > 0)
  return {
    announce,
    recovered,
    withdraw: counted.filter(isStale).map(({ id }) => id),
    next: counted.map(one => ({ ...one, stage: stageAfter(one, announce, recovered) })),
  }
}

/** The problems to announce, the most serious first. */
function dueProblems(
  watched: readonly WatchedProblem[],
  { at, problems }: ProblemLook,
  waitMs: number,
): WatchedProblem[] {
  const isLong = ({ since }: WatchedProblem) => at - Date.parse(since) >= waitMs
  const due = problems.flatMap(({ id, kind }) =>
    watched.filter(one => one.id === id && (kind === 'act' || isLong(one))),
  )
  return [...new Set(due)].filter(({ stage, present }) => stage === 'seen' && present >= LOOKS)
}

function stageAfter(
  one: WatchedProblem,
  announce: readonly WatchedProblem[],
  recovered: readonly WatchedProblem[],
): AnnouncementStage {
  if (announce.includes(one)) return 'calling'
  return recovered.includes(one) ? 'recovering' : one.stage
}

/** After a look that could not read the database, a problem that it did not see may still exist. */
function counts(watched: readonly WatchedProblem[], look: ProblemLook): WatchedProblem[] {
  return watched.map(one => {
    const problem = look.problems.find(({ id }) => id === one.id)
    if (problem === undefined)
      return look.isPartial ? one : { ...one, present: 0, absent: Math.min(one.absent + 1, LOOKS) }
    const present = { present: Math.min(one.present + 1, LOOKS), absent: 0 }
    if (one.stage !== 'seen') return { ...one, ...present }
    const { what, detail, todo, since } = problem
    return { ...one, ...present, what, detail, todo, since: since ?? one.since }
  })
}

function newProblems(watched: readonly WatchedProblem[], { at, problems }: ProblemLook): WatchedProblem[] {
  return problems
    .filter(({ id }, index) => problems.findIndex(one => one.id === id) === index)
    .filter(({ id }) => watched.every(one => one.id !== id))
    .map(({ id, what, detail, todo, since }) => ({
      id,
      what,
      detail,
      todo,
      since: since ?? isoInstant(at),
      stage: 'seen',
      present: 1,
      absent: 0,
    }))
}

const isRemembered = ({ stage, absent }: WatchedProblem) =>
  absent < LOOKS || (stage !== 'seen' && stage !== 'unheard')

/** The problems after a call about one of them has ended. */
export function afterDelivery(
  watched: readonly WatchedProblem[],
  id: string,
  end: DeliveryEnd,
): readonly WatchedProblem[] {
  return watched.flatMap(one => {
    if (one.id !== id) return [one]
    if (one.stage === 'recovering')
      return end === 'withdrawn' ? [{ ...one, stage: 'announced' as const }] : []
    if (one.stage !== 'calling') return [one]
    if (end === 'withdrawn') return []
    return [{ ...one, stage: end === 'delivered' ? ('announced' as const) : ('unheard' as const) }]
  })
}

/** What is stored of a problem that was announced. The call about its recovery repeats it. */
export type AnnouncedNote = Pick<WatchedProblem, 'id' | 'what' | 'todo' | 'since'>

export function announcedNotes(watched: readonly WatchedProblem[]): AnnouncedNote[] {
  return watched
    .filter(({ stage }) => stage === 'announced' || stage === 'recovering')
    .map(({ id, what, todo, since }) => ({ id, what, todo, since }))
}

/** A problem that the looks did not find, and that someone is called about at once. */
export function announcedProblem(
  { id, what, detail, todo, since }: HealthProblem,
  at: number,
): WatchedProblem {
  return { ...restored({ id, what, todo, since: since ?? isoInstant(at) }), detail }
}

const restored = (note: AnnouncedNote): WatchedProblem => ({
  ...note,
  detail: null,
  stage: 'announced',
  present: 0,
  absent: 0,
})

/** Adds the stored problems. A problem that this process already calls about stays as it is. */
export function withStored(
  watched: readonly WatchedProblem[],
  stored: readonly AnnouncedNote[],
): readonly WatchedProblem[] {
  const isStored = ({ id, stage }: WatchedProblem) => stage === 'seen' && stored.some(note => note.id === id)
  const kept = watched.filter(one => !isStored(one))
  const added = stored.filter(({ id }) => kept.every(one => one.id !== id))
  return [...kept, ...added.map(restored)]
}
