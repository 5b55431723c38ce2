import type { World } from '../world/world.ts'
import type { ChangedResource, Completion, Edit, StateChange } from './change.ts'
import { activityOf, addChangeActivity, type ChangeContext, chosenItems, itemsOf } from './selection.ts'

export function edit({ world, draws }: ChangeContext, change: Edit): string[] {
  const items = itemsOf(world, change)
  const chosen = chosenItems(draws, items, change, items.isPublished)
  for (const index of chosen) {
    const micros = draws.nextInstant()
    items.edit(index, micros)
    addChangeActivity(world, change, index, micros)
    if (change.at !== undefined) moveInTime(world, change.resource, index, change.at)
  }
  return chosen.map(items.ids.of)
}

/** Moves an activity, or a message or meeting together with its activity. */
function moveInTime(world: World, resource: ChangedResource, index: number, at: number): void {
  if (resource !== 'messages' && resource !== 'meetings' && resource !== 'activities') return
  world[resource].timeline.place(index, at)
  const activity = activityOf(world, resource, index)
  if (activity >= 0) world.activities.timeline.place(activity, at)
}

const STATE_AFTER = { hide: 'hidden', delete: 'deleted', reveal: 'published' } as const

export function changeState({ world, draws }: ChangeContext, change: StateChange): string[] {
  const items = itemsOf(world, change)
  const isHidden = (index: number): boolean => items.state(index) === 'hidden'
  const chosen = chosenItems(draws, items, change, change.kind === 'reveal' ? isHidden : items.isPublished)
  const deleted = chosen.find(index => items.state(index) === 'deleted')
  // Hiding a deleted item is refused too: afterwards it could be revealed.
  if (deleted !== undefined && change.kind !== 'delete') {
    throw new RangeError(`the item ${items.ids.of(deleted)} is deleted, and deletion is permanent`)
  }
  const state = STATE_AFTER[change.kind]
  // An ATTENDEES_ONLY meeting keeps its activity.
  const keepsActivity = change.keepActivity || (change.resource === 'meetings' && state !== 'deleted')
  for (const index of chosen) {
    items.setState(index, state)
    const activity = keepsActivity ? -1 : activityOf(world, change.resource, index)
    if (activity >= 0) world.activities.items.setState(activity, state)
  }
  return chosen.map(items.ids.of)
}

export function complete({ world: { meetings }, draws }: ChangeContext, change: Completion): string[] {
  const { items } = meetings
  const [isDone, finish] =
    change.kind === 'completeOverview'
      ? [meetings.isOverviewReady, meetings.completeOverview]
      : [meetings.hasTranscript, meetings.completeTranscript]
  const chosen = chosenItems(draws, items, change, index => items.isPublished(index) && !isDone(index))
  for (const index of chosen) finish(index)
  return chosen.map(items.ids.of)
}
