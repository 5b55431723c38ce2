import type { Items } from '../base/items.ts'
import type { World } from '../world/world.ts'
import { CHANGED_RESOURCES, type ChangedResource, type Choice, type Selection } from './change.ts'
import type { Draws } from './draws.ts'

/** What a change works on. */
export interface ChangeContext {
  world: World
  draws: Draws
}

export function itemsOf(world: World, { resource, object = 'deal' }: Selection): Items {
  // Changes that arrive over HTTP can name any resource.
  if (!CHANGED_RESOURCES.includes(resource)) {
    throw new RangeError(`resource must be one of ${CHANGED_RESOURCES.join(', ')}, not ${resource}`)
  }
  if (resource === 'crm_records') {
    const items = world.records.itemsOf(object)
    if (!items) throw new RangeError(`"object" must be a CRM object with readable records, not ${object}`)
    return items
  }
  if (resource === 'members' || resource === 'teams') return world.people[resource]
  return world[resource].items
}

/**
 * The items with the given ids. Without ids: up to `count` items that fit, each found by searching forward from a random
 * position.
 */
export function chosenItems(
  draws: Draws,
  items: Items,
  { id, ids = id === undefined ? undefined : [id], count = 1 }: Choice,
  fits: (index: number) => boolean,
): number[] {
  if (ids) return ids.map(each => indexOf(items, each))
  const chosen = new Set<number>()
  for (let number = 0; number < count; number++) {
    const from = items.count() === 0 ? 0 : draws.of(number) % items.count()
    for (let step = 0; step < items.count(); step++) {
      const index = (from + step) % items.count()
      if (chosen.has(index) || !fits(index)) continue
      chosen.add(index)
      break
    }
  }
  return [...chosen]
}

function indexOf(items: Items, id: string): number {
  const index = items.find(id)
  if (index < 0) throw new RangeError(`no item has the id ${id}`)
  return index
}

/** The activity of a message or meeting; -1 when there is none, and for other resources. */
export function activityOf({ activities }: World, resource: ChangedResource, index: number): number {
  if (resource === 'messages') return activities.ofSource('MESSAGE', index)
  return resource === 'meetings' ? activities.ofSource('MEETING', index) : -1
}

/** Adds the activity of a changed company, contact or deal. */
export function addChangeActivity(
  world: World,
  { resource, object = 'deal' }: Selection,
  index: number,
  micros: number,
): void {
  const record = (['company', 'contact', 'deal'] as const).find(name => name === object)
  if (resource === 'crm_records' && record) {
    world.activities.add({ type: 'OBJECT_CHANGE_EVENT', index, step: 0, record }, micros)
  }
}
