import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { SnapshotFeed, StatusMeanings, TimelineFeed } from '../../../declare/resource.ts'
import type { RowKey } from '../../../store/deletions/suspicions.ts'
import type { Task } from '../../../store/sync/tasks/task.ts'
import type { EngineContext } from '../../context/context.ts'
import { WEEK_MS } from '../../context/intervals.ts'
import type { Source } from '../../context/job.ts'
import { noteDenial } from '../../deletions/denial.ts'
import { finalProbeOf } from '../../deletions/probe-later.ts'
import { NOT_PUBLISHED } from './key-requests.ts'
import { createKeySource, type KeyReads } from './key-source.ts'

/**
 * Requests the rows that a list no longer shows, each by its key. A row that is found exists. A row that is not found
 * is denied once more.
 *
 * A request by `ids` only asks the endpoint of the list again. So it confirms no deletion: a row that it denies too
 * gets a final probe, a single read of another endpoint.
 */
export function createProbes(
  context: EngineContext,
  { resource, id, feed }: DeclaredFeed<TimelineFeed | SnapshotFeed>,
): Source[] {
  const { evidence } = feed
  const { store } = context
  const probe = { resource, id: `${id}.probe` }
  const finalProbe = { resource, id: finalProbeOf(probe.id) }

  const reads = {
    list: id,
    lane: 'audit',
    everyRound: false,
    // The row exists although no list shows it. It is requested again after a week, or sooner (`isRefuted`).
    found(task) {
      store.suspicions.end(rowOf(feed, task))
      if (task.feed !== probe.id) store.tasks.remove(task)
      const { scope, key, attempts } = task
      const round = context.rounds.number(resource)
      store.tasks.done(
        { feed: probe.id, scope, key },
        { round, dueAt: context.after(WEEK_MS), attempts: attempts + 1 },
      )
    },
  } as const satisfies Partial<KeyReads>

  /** Returns whether the probe is over. */
  type Deny = (row: RowKey, task: Task) => boolean
  const missing = (deny: Deny) => (task: Task) => {
    const row = rowOf(feed, task)
    if (store.stored.state(row) !== 'open' || deny(row, task)) store.tasks.remove(task)
  }
  const confirm: Deny = (row, task) => {
    const verdict = noteDenial(context, row)
    if (verdict.state === 'confirmed') return true
    store.tasks.askAt({ ...task, dueAt: store.dueClock.after(verdict.askAgainMs) })
    return false
  }
  if (evidence.by === 'single')
    return [createKeySource(context, feed, evidence, { ...reads, where: probe, missing: missing(confirm) })]
  if (evidence.by !== 'ids') return []

  const denyAgain: Deny = (row, task) => {
    const verdict = noteDenial(context, row, { confirms: false })
    if (verdict.state === 'confirmed') return true
    const dueAt = store.dueClock.after(verdict.askAgainMs)
    if (verdict.askAgainMs > 0) store.tasks.askAt({ ...task, dueAt })
    else store.tasks.add({ ...task, feed: finalProbe.id, dueAt })
    return verdict.askAgainMs === 0
  }
  // Without a suspicion, an answer has shown the row since it was denied.
  const confirmDenied: Deny = (row, task) => store.suspicions.find(row) === undefined || confirm(row, task)
  const single = { by: 'single', read: evidence.read } as const
  return [
    createKeySource(context, feed, evidence, { ...reads, where: probe, missing: missing(denyAgain) }),
    createKeySource(context, feed, single, {
      ...reads,
      where: finalProbe,
      expected: NOT_SHOWN,
      missing: missing(confirmDenied),
    }),
  ]
}

/** A refusal of any kind does not show the row, and an id that a list has shown may be none for a single read. */
const NOT_SHOWN: StatusMeanings = { ...NOT_PUBLISHED, 400: 'absent' }

function rowOf({ table }: TimelineFeed | SnapshotFeed, { scope, key }: Task): RowKey {
  return { table, scope, key }
}
