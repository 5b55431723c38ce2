import type { ChangedResource, Publication } from './change.ts'
import { addChangeActivity, type ChangeContext, chosenItems, itemsOf } from './selection.ts'

/** Adds item `number` of a change, and returns its index. */
type Publish = (context: ChangeContext, change: Publication, number: number) => number

const PUBLISH: Record<ChangedResource, Publish> = {
  messages: publishMessage,
  activities: publishActivity,
  meetings: publishMeeting,
  crm_records: publishRecord,
  members: publishItem,
  teams: publishItem,
  collections: publishItem,
  playbooks: publishItem,
}

export function publish(context: ChangeContext, change: Publication): string[] {
  const { ids } = itemsOf(context.world, change)
  const publishOne = PUBLISH[change.resource]
  return Array.from({ length: change.count ?? 1 }, (_, number) => ids.of(publishOne(context, change, number)))
}

function eventTime({ draws }: ChangeContext, { kind }: Publication, number: number): number {
  return kind === 'publishLate' ? draws.pastInstant(number) : draws.nextInstant()
}

/** Half of the late messages are copies of an existing e-mail. */
function publishMessage(context: ChangeContext, change: Publication, number: number): number {
  const { draws } = context
  const { messages, activities } = context.world
  const isCopy = change.kind === 'publishLate' && number % 2 === 0
  const [original] = isCopy ? chosenItems(draws, messages.items, {}, messages.items.isPublished) : []
  const micros =
    original === undefined
      ? eventTime(context, change, number)
      : messages.timeline.timeOf(original) + ((draws.of(number) % 40) - 8) * 250_000
  const index =
    original === undefined ? messages.addMail(micros, draws.of(number)) : messages.addCopy(original, micros)
  activities.add({ type: 'MESSAGE', index, step: 0 }, micros)
  return index
}

function publishMeeting(context: ChangeContext, change: Publication, number: number): number {
  const micros = eventTime(context, change, number)
  const index = context.world.meetings.add(micros, change.unready !== true)
  context.world.activities.add({ type: 'MEETING', index, step: 0 }, micros)
  return index
}

function publishRecord(context: ChangeContext, change: Publication, number: number): number {
  const micros = eventTime(context, change, number)
  const index = context.world.records.add(change.object ?? 'deal', micros)
  addChangeActivity(context.world, change, index, micros)
  return index
}

function publishActivity(context: ChangeContext, change: Publication, number: number): number {
  const { activities, customers } = context.world
  const index = context.draws.of(number) % Math.max(1, customers.items.deal.count())
  return activities.add(
    { type: 'OBJECT_CHANGE_EVENT', index, step: 1, record: 'deal' },
    eventTime(context, change, number),
  )
}

function publishItem(context: ChangeContext, change: Publication, number: number): number {
  return itemsOf(context.world, change).add(eventTime(context, change, number))
}
