import { isoInstant } from '../clock.ts'
import type { Resource } from '../resource.ts'
import { DAY, type EngineContext } from './context.ts'

/** Lists that are due now, by lane. */
export function dueLists(context: EngineContext, resources: readonly Resource[]) {
  const due = { head: 0, history: 0, audit: 0 }
  for (const { name, feeds } of resources) {
    for (const [feedName, feed] of Object.entries(feeds)) {
      if (feed.mode === 'item') continue
      const list = { resource: name, id: `${name}.${feedName}`, feed }
      for (const segment of context.store.ledger.segments(list.id)) {
        const lane = context.agenda.laneOf(list, segment)
        if (lane !== 'items' && context.agenda.isListDue(list, segment)) due[lane] += 1
      }
    }
  }
  return due
}

/** When the resource falls due again, as far as it is known now. */
export function nextDue(context: EngineContext, { name, feeds }: Resource): string {
  const { store, clock, holds, agenda } = context
  const held = holds.heldUntil(name)
  const times = Object.entries(feeds).flatMap(([feedName, feed]) => {
    const id = `${name}.${feedName}`
    if (holds.isHeld(id)) return []
    if (feed.mode === 'item') return store.tasks.nextDue(id) ?? []
    return store.ledger.segments(id).map(segment => agenda.dueAt({ resource: name, id, feed }, segment))
  })
  if (held !== undefined) times.push(isoInstant(clock.now() + held - clock.elapsed()))
  return [...times, isoInstant(clock.now() + DAY)].sort()[0] ?? ''
}
