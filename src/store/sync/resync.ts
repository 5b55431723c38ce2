import { CATALOG, resourceNamed } from '../../catalog/catalog.ts'
import { feedsOf } from '../../catalog/feeds.ts'
import type { Feed, ItemFeed } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import { REPORTS, type Resyncable } from '../../declare/resyncable.ts'
import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { createMeta, META } from './meta.ts'
import type { Rounds } from './rounds.ts'
import type { Segments } from './segments.ts'

/** A resource to be read again, or reports to be computed again. */
export interface Marked {
  resource: Resyncable
  /** Number of the resource's single reads, one request each. */
  reads: number
}

/** The resource, and the resources that `parley resync` reads again with it. */
export function resourceWithParts<Name extends Resyncable>(resource: Name): readonly (Name | ResourceName)[] {
  const parts = CATALOG.filter(({ readAgainWith }) => readAgainWith === resource)
  return [resource, ...parts.map(({ name }) => name)]
}

interface ResyncDeps {
  prepare: Prepare
  segments: Segments
  rounds: Pick<Rounds, 'restart'>
}

/**
 * @returns a function that marks resources to be read from the start: it removes the checkpoints of their lists and
 * makes their single reads due. Rows stay as they are. Tables for reports are computed again at their next update. Call
 * it inside a transaction.
 */
export function createResync(deps: ResyncDeps) {
  const { prepare, rounds } = deps
  const meta = createMeta(prepare)
  const due = prepare(
    `UPDATE sync_tasks SET round = 0, due_at = ?, attempts = 0, deadline = NULL, waiting = 0, failures = 0
     WHERE feed >= ? || '.' AND feed < ? || '/'`,
  )
  const count = prepare<number>(
    "SELECT count(*) FROM sync_tasks WHERE feed >= ? || '.' AND feed < ? || '/'",
  ).pluck()
  return (resources: readonly Resyncable[], now: string) =>
    resources.map((resource): Marked => {
      if (resource === REPORTS) {
        for (const key of [META.reportRules, META.dealVersions]) meta.remove(key)
        return { resource, reads: 0 }
      }
      rounds.restart(resource)
      for (const { id, feed } of feedsOf(resourceNamed(resource))) {
        if (feed.mode === 'item') demandRead(prepare, id, feed, now)
        else forgetLists(deps, id, feed)
      }
      due.run(now, resource, resource)
      return { resource, reads: onlyRow(count, resource, resource) }
    })
}

/** A timeline gets one new segment without bounds, since its segments must cover the whole time axis. */
function forgetLists({ prepare, segments }: ResyncDeps, id: string, feed: Feed): void {
  segments.removeAll(id)
  prepare('DELETE FROM sync_seen WHERE feed = ?').run(id)
  if (feed.mode === 'timeline') segments.add({ feed: id, scope: '', from: null, to: null })
}

/** SQL conditions for rows that had their single read, for feeds that keep no task after the read. */
const WAS_READ: Readonly<Partial<Record<ItemFeed['stores'], string>>> = {
  body: "text_state <> 'pending'",
  transcript: "transcript_state <> 'pending' AND access = 'open'",
}

function demandRead(prepare: Prepare, id: string, feed: ItemFeed, now: string): void {
  const wasRead = WAS_READ[feed.stores]
  if (wasRead === undefined || feed.pending === undefined) return
  const { table, key, time } = feed.pending
  prepare(
    `INSERT OR IGNORE INTO sync_tasks (feed, scope, key, sort_at, due_at)
     SELECT ?, '', ${quote(key)}, ${quote(time)}, ? FROM ${quote(table)}
     WHERE ${wasRead} AND _deleted_at IS NULL`,
  ).run(id, now)
}
