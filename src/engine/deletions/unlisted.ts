import type { ResourceName } from '../../declare/resource-names.ts'
import type { KeyRange } from '../../store/sync/tasks/seen-keys.ts'
import type { EngineContext } from '../context/context.ts'
import { WEEK_MS } from '../context/intervals.ts'

/**
 * An unlisted row has a single read, and the last complete pass over its list did not show it. Each unlisted row has a
 * note: a task of a separate feed that no source reads. The task's due time says when the row is to be read again.
 */

const noteFeed = (resource: ResourceName) => `${resource}.list.unlisted`

export function isUnlisted({ store }: EngineContext, resource: ResourceName, key: string): boolean {
  return store.tasks.find({ feed: noteFeed(resource), key }) !== undefined
}

/**
 * Updates the notes of a key range. `keys` are its live rows that a complete pass did not show; the notes of all other
 * keys in the range are removed. Returns the keys to read now: those without an earlier note (`isNew`) and those due
 * again; in a confirming round, all.
 */
export function noteUnlisted(
  context: EngineContext,
  resource: ResourceName,
  keys: readonly string[],
  range: KeyRange,
): { key: string; isNew: boolean }[] {
  const { store } = context
  const feed = noteFeed(resource)
  store.tasks.keepOnly(feed, '', keys, range)
  const due = keys.flatMap(key => {
    const known = store.tasks.find({ feed, key })
    const isDue =
      known === undefined || known.dueAt <= store.dueClock.now() || context.rounds.isConfirming(resource)
    return isDue ? { key, isNew: known === undefined } : []
  })
  for (const { key } of due) {
    store.tasks.done({ feed, key }, { round: context.rounds.number(resource), dueAt: context.after(WEEK_MS) })
  }
  return due
}

/** Removes the notes of unlisted rows that the list now shows. Returns their keys. */
export function forgetUnlisted(
  { store }: EngineContext,
  resource: ResourceName,
  keys: readonly string[],
): string[] {
  return store.tasks.removeAll(noteFeed(resource), '', keys)
}
