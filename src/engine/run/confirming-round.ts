import { isoInstant } from '../../base/clock.ts'
import { ITEM_FEEDS } from '../../catalog/feeds.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { EngineContext } from '../context/context.ts'
import { tablesOfResource } from '../deletions/apply.ts'
import { confirmAfterMs } from '../deletions/denial.ts'
import { ITEM_HANDLERS } from '../modes/items/items.ts'

/**
 * Prepares the confirming round after a hold of the mass-deletion guard (deletions/apply.ts). That round must find
 * every missing row by itself, so all suspicions of the resource end here. The round reads these again:
 *
 * - every list of the resource;
 * - each row that has a single read and that its list does not show (deletions/unlisted.ts);
 * - each row that only single reads deny, such as a transcript. Its suspicion starts again now.
 *
 * round-end.ts begins the round in the daemon, backfill-rounds.ts in a backfill.
 */
export function suspectAgain(context: EngineContext, resource: ResourceName): void {
  const { store, server } = context
  const since = isoInstant(server.now())
  const dueAt = store.dueClock.after(confirmAfterMs(context))
  for (const { name: table } of tablesOfResource(resource)) {
    const denied = store.suspicions.confirmedRows(table).map(row => ({ ...row, table }))
    const reads = ITEM_FEEDS.filter(({ feed }) => feed.table === table)
    store.suspicions.endAll(table)
    for (const row of denied) {
      const [task] = reads.flatMap(read => ITEM_HANDLERS[read.feed.stores].taskOf?.(store, read, row) ?? [])
      if (!task) continue
      store.suspicions.note(row, { since, means: row.means })
      store.tasks.askAt({ ...task, dueAt })
    }
  }
}
