import type { Scene } from '../../base/scene.ts'
import type { DealHistory } from '../crm/deals.ts'
import type { Meetings } from '../meetings/meetings.ts'
import type { Messages } from '../messages/messages.ts'

export const SOURCE_TYPES = ['MESSAGE', 'MEETING', 'OBJECT_CHANGE_EVENT'] as const
export const CONTEXT_TYPES = ['company', 'contact', 'deal'] as const
export type SourceType = (typeof SOURCE_TYPES)[number]
export type ContextType = (typeof CONTEXT_TYPES)[number]

/** The source of an activity: a message, a meeting, or a change of a record (a deal unless `record` says otherwise). */
export interface Origin {
  type: SourceType
  index: number
  /** For a change: its number in the record's history. */
  step: number
  record?: ContextType
}

/** The sources of activities, in the order of their numbers: messages, meetings, stage changes, then new activities. */
export interface Origins {
  /** The times of the activities that exist at the start. */
  times: Float64Array
  of(activity: number): Origin
  /** The activity of a message or meeting; -1 when there is none. */
  activityOf(type: 'MESSAGE' | 'MEETING', source: number): number
  /** Appends the activity with this number. */
  add(origin: Origin, activity: number): void
}

export interface OriginParts {
  history: DealHistory
  messages: Messages
  meetings: Meetings
}

export function createOrigins({ sizes }: Scene, { history, messages, meetings }: OriginParts): Origins {
  const changes = stageChanges(sizes.deals, history)
  const firstMeeting = sizes.messages
  const firstChange = firstMeeting + sizes.meetings
  const baseCount = firstChange + changes.deal.length
  const added: Origin[] = []
  const addedOf = { MESSAGE: new Map<number, number>(), MEETING: new Map<number, number>() }

  const of = (activity: number): Origin => {
    if (activity >= baseCount) return added[activity - baseCount] ?? { type: 'MESSAGE', index: 0, step: 0 }
    if (activity < firstMeeting) return { type: 'MESSAGE', index: activity, step: 0 }
    if (activity < firstChange) return { type: 'MEETING', index: activity - firstMeeting, step: 0 }
    const change = activity - firstChange
    return { type: 'OBJECT_CHANGE_EVENT', index: changes.deal[change] ?? 0, step: changes.step[change] ?? 0 }
  }
  const timeOf = { MESSAGE: messages.timeline.timeOf, MEETING: meetings.timeline.timeOf }
  return {
    times: Float64Array.from({ length: baseCount }, (_, activity) => {
      const { type, index, step } = of(activity)
      return type === 'OBJECT_CHANGE_EVENT' ? history.stepAt(index, step) : timeOf[type](index)
    }),
    of,
    activityOf: (type, source) => {
      const isMessage = type === 'MESSAGE'
      if (source >= (isMessage ? sizes.messages : sizes.meetings)) return addedOf[type].get(source) ?? -1
      return isMessage ? source : firstMeeting + source
    },
    add: (origin, activity) => {
      added.push(origin)
      if (origin.type !== 'OBJECT_CHANGE_EVENT') addedOf[origin.type].set(origin.index, activity)
    },
  }
}

/** Every stage change of every deal: the deal, and the step in its history. */
function stageChanges(deals: number, history: DealHistory): { deal: Uint32Array; step: Uint8Array } {
  let count = 0
  for (let deal = 0; deal < deals; deal++) count += history.steps(deal)
  const changes = { deal: new Uint32Array(count), step: new Uint8Array(count) }
  let next = 0
  for (let deal = 0; deal < deals; deal++) {
    for (let step = 0; step < history.steps(deal); step++, next++) {
      changes.deal[next] = deal
      changes.step[next] = step
    }
  }
  return changes
}
