import type { ResourceName } from '../../catalog/names.ts'
import type { KeyRange } from '../../store/deletions/seen-keys.ts'
import type { EngineContext } from '../context.ts'
import { WEEK } from '../due/intervals.ts'

/**
 * Rows with a single read that the last complete pass of their list did not name. Each is noted as a task, which falls
 * due when the row is to be read again for that reason.
 */

const noteFeed = (resource: ResourceName) => `${resource}.list.unlisted`

export function isUnlisted({ store }: EngineContext, resource: ResourceName, key: string): boolean {
  return store.tasks.find({ feed: noteFeed(resource), key }) !== undefined
}

/** Notes live rows of a range that a complete pass did not name. Returns those that are newly noted or due again. */
export function noteUnlisted(
  context: EngineContext,
  resource: ResourceName,
  keys: readonly string[],
  range: KeyRange,
): string[] {
  const { store, now } = context
  const feed = noteFeed(resource)
  store.tasks.keepOnly(feed, '', keys, range)
  const isDue = (key: string) => {
    const known = store.tasks.find({ feed, key })
    return known === undefined || known.dueAt <= now() || context.isConfirming(resource)
  }
  const due = keys.filter(isDue)
  for (const key of due) {
    store.tasks.done({ feed, key }, { round: context.round(resource), dueAt: context.after(WEEK) })
  }
  return due
}

/** Removes the notes of keys that the list names. Returns those that the previous pass had missed. */
export function noteListed(
  { store }: EngineContext,
  resource: ResourceName,
  keys: readonly string[],
): string[] {
  return store.tasks.removeAll(noteFeed(resource), '', keys)
}
