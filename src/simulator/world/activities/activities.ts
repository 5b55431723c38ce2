import { createIds } from '../../base/ids.ts'
import { formatInstant, TIDY_VARIETY } from '../../base/instants.ts'
import { createItems, type Items } from '../../base/items.ts'
import { mix } from '../../base/random.ts'
import { quoteOrNull, SALT, type Scene } from '../../base/scene.ts'
import { createTimeline, type Timeline } from '../../base/timeline.ts'
import type { Customers } from '../crm/customers.ts'
import type { People } from '../crm/people.ts'
import { changeLinks, type Link, publicLinks, sourceLinks } from './links.ts'
import { createOrigins, type Origin, type OriginParts, type SourceType } from './origins.ts'

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

interface ActivityParts extends OriginParts {
  people: People
  customers: Customers
}

export function createActivities(scene: Scene, parts: ActivityParts): Activities {
  const { seed } = scene
  const { customers } = parts
  const origins = createOrigins(scene, parts)
  const timeline = createTimeline(origins.times)
  const changeIds = createIds(seed, SALT.change, 'uuid')
  const items = createItems({
    seed,
    salt: SALT.activity,
    shape: 'uuid',
    count: origins.times.length,
    initial: index => {
      const draw = mix(seed, SALT.activity + 1, index) % 100
      return hasActivity(parts, origins.of(index), draw) ? 'published' : 'deleted'
    },
  })

  const linksOf = (index: number): Link[] => {
    const origin = origins.of(index)
    const source = sourceOf(parts, origin)
    const all = source
      ? sourceLinks(scene, source.relatedRecords(origin.index), index)
      : changeLinks(customers, origin)
    return publicLinks(scene, customers, all, { activity: index, revision: items.revision(index) })
  }
  const json = (index: number, links: readonly Link[] = linksOf(index)): string => {
    const origin = origins.of(index)
    const { type, step } = origin
    const sourceId =
      sourceOf(parts, origin)?.items.ids.of(origin.index) ?? changeIds.of(index * 16 + (step % 16))
    const draw = mix(seed, SALT.activity + 5, index)
    const route = draw % 15 === 0 ? null : CREATED_VIA[type]
    const linked = links.map(
      link =>
        `{"context_type":"${link.type}","context_id":"${customers.items[link.type].ids.of(link.index)}","origin":"${link.origin}"}`,
    )
    return (
      `{"id":"${items.ids.of(index)}","type":"${kindOf(parts, origin)}","source_type":"${type}","source_id":"${sourceId}"` +
      `,"occurred_at":"${formatInstant(timeline.timeOf(index), scene.isTidy ? TIDY_VARIETY : draw)}","created_via":${quoteOrNull(route)}` +
      `,"actor":${actorJson(parts, actorOf(scene, parts, origin, index), draw)},"links":[${linked.join(',')}]${draw % 45 === 3 ? ',"pinned":false' : ''}}`
    )
  }

  return {
    items,
    timeline,
    linksOf,
    sourceTypeOf: index => origins.of(index).type,
    json,
    add: (origin, micros) => {
      const index = items.add(micros)
      origins.add(origin, index)
      timeline.place(index, micros)
      return index
    },
    ofSource: (type, source) => {
      const index = origins.activityOf(type, source)
      return index >= 0 && items.state(index) !== 'deleted' ? index : -1
    },
  }
}

const CREATED_VIA: Record<SourceType, string> = {
  MESSAGE: 'MAIL_SYNC',
  MEETING: 'CALENDAR',
  OBJECT_CHANGE_EVENT: 'CRM_SYNC',
}

/** The messages or the meetings; undefined when the activity is a change of a record. */
function sourceOf({ messages, meetings }: OriginParts, { type }: Origin) {
  if (type === 'MESSAGE') return messages
  return type === 'MEETING' ? meetings : undefined
}

/**
 * Whether a source has an activity at the start. 12 % of the meetings have no public CRM context and no activity. Half
 * of the unpublished messages keep their activity. `draw` is 0 to 99.
 */
function hasActivity({ messages, meetings }: OriginParts, { type, index }: Origin, draw: number): boolean {
  if (type === 'MEETING') return meetings.items.state(index) !== 'deleted' && draw >= 12
  return type !== 'MESSAGE' || messages.items.isPublished(index) || draw >= 50
}

/** The member who acted; -1 for none. */
function actorOf(
  { seed, sizes }: Scene,
  { messages, meetings }: OriginParts,
  { type, index }: Origin,
  activity: number,
): number {
  const draw = mix(seed, SALT.activity + 4, activity)
  if (draw % 100 < 15) return -1
  if (type === 'MESSAGE') return messages.isSent(index) ? messages.memberOf(index) : -1
  return type === 'MEETING' ? meetings.owner(index) : draw % sizes.members
}

function actorJson({ people: { members } }: ActivityParts, actor: number, draw: number): string {
  if (members.isPublished(actor)) return `{"kind":"member","id":"${members.ids.of(actor)}"}`
  return draw % 60 === 7 ? 'null' : '{"kind":"system","id":null}'
}

function kindOf({ messages }: OriginParts, { type, index }: Origin): string {
  if (type === 'MESSAGE') return messages.isSent(index) ? 'email_sent' : 'email_received'
  return type === 'MEETING' ? 'meeting_held' : 'record_changed'
}
