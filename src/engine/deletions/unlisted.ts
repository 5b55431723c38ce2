import type { ResourceName } from '../../catalog/resource.ts'
import type { KeyRange } from '../../store/deletions/seen.ts'
import type { EngineContext } from '../context.ts'
import { WEEK } from '../schedule/intervals.ts'

/**
 * Rows that are read singly and that the last complete pass of their list did not name. A note of each stands among
 * the tasks; it falls due when the single read is to be made again for that reason.
 */

const noteFeed = (resource: ResourceName) => `${resource}.list.unlisted`

export function isUnlisted({ store }: EngineContext, resource: ResourceName, key: string): boolean {
  return store.tasks.find({ feed: noteFeed(resource), key }) !== undefined
}

/** A complete pass has not named these rows of a range, which are live. Returns those that are news, or due again. */
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

/** The list names these keys. Returns those that the pass before had missed. */
export function noteListed(
  { store }: EngineContext,
  resource: ResourceName,
  keys: readonly string[],
): string[] {
  return store.tasks.removeAll(noteFeed(resource), '', keys)
}
