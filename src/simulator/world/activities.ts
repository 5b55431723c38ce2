import { createIds } from '../ids.ts'
import { formatInstant } from '../instants.ts'
import { createItems, type Items } from '../items.ts'
import { mix, mixBelow } from '../random.ts'
import { createTimeline, type Timeline } from '../timeline.ts'
import type { Customers } from './crm/customers.ts'
import type { DealHistory } from './crm/deals.ts'
import type { RelatedRecords } from './crm/related.ts'
import type { Meetings } from './meetings/meetings.ts'
import type { Messages } from './messages/messages.ts'
import type { People } from './people.ts'
import { quoteOrNull, SALT, type Scene } from './scene.ts'

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

export interface Link {
  type: ContextType
  index: number
  origin: 'DIRECT' | 'DERIVED'
}

export interface Activities {
  items: Items
  timeline: Timeline
  /** Links to public records only. An activity without links is not in the list. */
  linksOf(index: number): Link[]
  sourceTypeOf(index: number): SourceType
  json(index: number, links?: readonly Link[]): string
  add(origin: Origin, micros: number): number
  /** The activity of a message or meeting; -1 when there is none. */
  ofSource(type: 'MESSAGE' | 'MEETING', source: number): number
}

interface ActivityParts {
  people: People
  customers: Customers
  history: DealHistory
  messages: Messages
  meetings: Meetings
}

export function createActivities(scene: Scene, parts: ActivityParts): Activities {
  const { seed, sizes } = scene
  const { customers, messages, meetings, people } = parts
  const changes = dealChanges(scene, parts.history)
  const firstMeeting = sizes.messages
  const firstChange = firstMeeting + sizes.meetings
  const baseCount = firstChange + changes.deal.length
  const times = new Float64Array(baseCount)
  for (let i = 0; i < firstMeeting; i++) times[i] = messages.timeline.timeOf(i)
  for (let i = 0; i < sizes.meetings; i++) times[firstMeeting + i] = meetings.timeline.timeOf(i)
  for (let i = 0; i < changes.deal.length; i++) {
    times[firstChange + i] = parts.history.stepAt(changes.deal[i] ?? 0, changes.step[i] ?? 0)
  }
  const added: Origin[] = []
  const addedOf = { MESSAGE: new Map<number, number>(), MEETING: new Map<number, number>() }
  const changeIds = createIds(seed, SALT.change, 'uuid')

  const originOf = (index: number): Origin => {
    if (index >= baseCount) return added[index - baseCount] ?? { type: 'MESSAGE', index: 0, step: 0 }
    if (index < firstMeeting) return { type: 'MESSAGE', index, step: 0 }
    if (index < firstChange) return { type: 'MEETING', index: index - firstMeeting, step: 0 }
    const change = index - firstChange
    return { type: 'OBJECT_CHANGE_EVENT', index: changes.deal[change] ?? 0, step: changes.step[change] ?? 0 }
  }

  const items = createItems({
    seed,
    salt: SALT.activity,
    shape: 'uuid',
    count: baseCount,
    initial: index => {
      if (index >= firstChange) return 'published'
      const draw = mix(seed, SALT.activity + 1, index) % 100
      // 12 % of the meetings have no public CRM context and no activity.
      // Half of the unpublished messages keep their activity.
      if (index >= firstMeeting) {
        const isGone = meetings.items.state(index - firstMeeting) === 'deleted'
        return isGone || draw < 12 ? 'deleted' : 'published'
      }
      return !messages.items.isPublished(index) && draw < 50 ? 'deleted' : 'published'
    },
  })

  const customerItems = { company: customers.companies, contact: customers.contacts, deal: customers.deals }

  function allLinks(index: number): Link[] {
    const origin = originOf(index)
    const links: Link[] = []
    if (origin.type === 'OBJECT_CHANGE_EVENT') {
      const type = origin.record ?? 'deal'
      links.push({ type, index: origin.index, origin: 'DIRECT' })
      if (type !== 'company') {
        const of = type === 'deal' ? customers.companyOfDeal : customers.companyOfContact
        links.push({ type: 'company', index: of(origin.index), origin: 'DERIVED' })
      }
      return links
    }
    const { company, contact, deal }: RelatedRecords =
      origin.type === 'MESSAGE'
        ? messages.relatedRecords(origin.index)
        : meetings.relatedRecords(origin.index)
    const draw = mix(seed, SALT.activity + 2, index)
    // One in thirty has no public links.
    if (draw % 30 === 0) return links
    links.push({ type: 'contact', index: contact, origin: 'DIRECT' })
    links.push({ type: 'company', index: company, origin: contact >= 0 ? 'DERIVED' : 'DIRECT' })
    links.push({ type: 'deal', index: deal, origin: draw % 3 === 0 ? 'DERIVED' : 'DIRECT' })
    // Some activities link the company twice: directly and through its contact.
    if (contact >= 0 && draw % 25 === 1) links.push({ type: 'company', index: company, origin: 'DIRECT' })
    return links
  }

  function linksOf(index: number): Link[] {
    const links = allLinks(index).filter(link => customerItems[link.type].isPublished(link.index))
    const revision = items.revision(index)
    // Edits alternately add and remove a link. The draw leaves out new companies, which would alter earlier edits.
    if (revision % 2 === 1 && sizes.companies > 0) {
      const other = mixBelow(seed, SALT.activity + 3 + revision, index, sizes.companies)
      const isKnown = links.some(link => link.type === 'company' && link.index === other)
      if (isKnown) links.pop()
      else if (customers.companies.isPublished(other))
        links.push({ type: 'company', index: other, origin: 'DERIVED' })
    }
    return links
  }

  const sourceIdOf = ({ type, index, step }: Origin, activity: number): string => {
    if (type === 'MESSAGE') return messages.items.ids.of(index)
    if (type === 'MEETING') return meetings.items.ids.of(index)
    return changeIds.of(activity * 16 + (step % 16))
  }
  const actorOf = ({ type, index }: Origin, activity: number): number => {
    const draw = mix(seed, SALT.activity + 4, activity)
    if (draw % 100 < 15) return -1
    if (type === 'MESSAGE') return messages.isSent(index) ? messages.memberOf(index) : -1
    return type === 'MEETING' ? meetings.owner(index) : draw % sizes.members
  }
  const kindOf = ({ type, index }: Origin): string => {
    if (type === 'MESSAGE') return messages.isSent(index) ? 'email_sent' : 'email_received'
    return type === 'MEETING' ? 'meeting_held' : 'record_changed'
  }

  return {
    items,
    timeline: createTimeline(times),
    linksOf,
    sourceTypeOf: index =>
      index < firstMeeting ? 'MESSAGE' : index < firstChange ? 'MEETING' : originOf(index).type,
    json(index, links = linksOf(index)) {
      const origin = originOf(index)
      const draw = mix(seed, SALT.activity + 5, index)
      const actor = actorOf(origin, index)
      const route = draw % 15 === 0 ? null : CREATED_VIA[origin.type]
      let linked = ''
      for (const link of links) {
        linked += `${linked === '' ? '' : ','}{"context_type":"${link.type}","context_id":"${customerItems[link.type].ids.of(link.index)}","origin":"${link.origin}"}`
      }
      const person = people.members.isPublished(actor)
        ? `{"kind":"member","id":"${people.members.ids.of(actor)}"}`
        : draw % 60 === 7
          ? 'null'
          : '{"kind":"system","id":null}'
      return (
        `{"id":"${items.ids.of(index)}","type":"${kindOf(origin)}","source_type":"${origin.type}","source_id":"${sourceIdOf(origin, index)}"` +
        `,"occurred_at":"${formatInstant(this.timeline.timeOf(index), draw)}","created_via":${quoteOrNull(route)}` +
        `,"actor":${person},"links":[${linked}]${draw % 45 === 3 ? ',"pinned":false' : ''}}`
      )
    },
    add(origin, micros) {
      const index = items.add(micros)
      added.push(origin)
      if (origin.type !== 'OBJECT_CHANGE_EVENT') addedOf[origin.type].set(origin.index, index)
      this.timeline.place(index, micros)
      return index
    },
    ofSource: (type, source) => {
      const base = type === 'MESSAGE' ? source : firstMeeting + source
      const isBase = source < (type === 'MESSAGE' ? sizes.messages : sizes.meetings)
      const index = isBase ? base : (addedOf[type].get(source) ?? -1)
      return index >= 0 && items.state(index) !== 'deleted' ? index : -1
    },
  }
}

const CREATED_VIA: Record<SourceType, string> = {
  MESSAGE: 'MAIL_SYNC',
  MEETING: 'CALENDAR',
  OBJECT_CHANGE_EVENT: 'CRM_SYNC',
}

/** Every stage change of every deal: the deal, and the step in its history. */
function dealChanges(scene: Scene, history: DealHistory): { deal: Uint32Array; step: Uint8Array } {
  let count = 0
  for (let deal = 0; deal < scene.sizes.deals; deal++) count += history.steps(deal)
  const changes = { deal: new Uint32Array(count), step: new Uint8Array(count) }
  let next = 0
  for (let deal = 0; deal < scene.sizes.deals; deal++) {
    for (let step = 0; step < history.steps(deal); step++, next++) {
      changes.deal[next] = deal
      changes.step[next] = step
    }
  }
  return changes
}
