import { DAY_MS } from '../../../base/clock.ts'
import { tableNamed } from '../../../catalog/catalog.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { SnapshotFeed } from '../../../declare/resource.ts'
import type { Segment } from '../../../store/sync/segments.ts'
import type { KeyRange } from '../../../store/sync/tasks/seen-keys.ts'
import type { EngineContext } from '../../context/context.ts'
import { scaled } from '../../context/intervals.ts'
import type { Batches } from '../../context/job.ts'
import { CONFIRM_MANY_AFTER_MS, MANY_MISSING } from '../../context/missed-rows.ts'
import { noteDenial } from '../../deletions/denial.ts'
import { probeLater } from '../../deletions/probe-later.ts'
import { confirmingPassMs } from '../../deletions/recheck.ts'
import { noteUnlisted } from '../../deletions/unlisted.ts'
import { wantSegment } from '../../due/wants.ts'
import { isAskable } from '../keys/key-requests.ts'
import { endPassOf } from '../pass.ts'

/** How many keys one transaction compares or forgets. */
const KEYS_AT_ONCE = 2000

/** A pass whose final page is stored. */
export interface EndedPass extends DeclaredFeed<SnapshotFeed> {
  pass: Segment
  /**
   * The list's size changed during the pass, so a row may have moved to a page that was already read; or the pass
   * showed fewer rows than the list states to have. No row counts as missing then.
   */
  isPartial: boolean
}

/**
 * Denies the rows that the pass has not seen, one range of keys in each batch. The first batch runs in the transaction
 * of the final page, and is usually the only one. Until all ranges are done, the checkpoint stays before the final
 * page: if the process is killed, the next process requests this page again and compares from the start.
 */
export function* endPass(context: EngineContext, ended: EndedPass): Batches {
  const { store, missedRows } = context
  const { resource, id, feed, pass, isPartial } = ended
  store.segments.noteSize(pass, !isPartial, context.now())
  const rows = { table: feed.table, scope: pass.scope }
  let missed = 0
  let upTo: string | undefined
  if (!isPartial) {
    do {
      if (upTo !== undefined) yield
      const after: string = upTo ?? ''
      upTo = store.seen.rangeEnd(rows, after, KEYS_AT_ONCE)
      missed += denyUnseen(context, ended, { after, upTo }, missed)
    } while (upTo !== undefined)
  }
  missedRows.note(pass.id, missed)
  // A task that no list has named: if the API has no such row, nothing is pending.
  for (const key of feed.always ?? [])
    store.tasks.add({ feed: `${resource}.detail`, key, dueAt: store.dueClock.after(0) })
  endPassOf(store.segments, pass)
  // Where only a pass denies rows, another one follows anyway.
  const isEmpty = pass.rows === 0 && feed.evidence.by !== 'second-pass'
  const againMs =
    missedRows.passEnded(pass.id, { isSuspecting: missed > 0, isEmpty }) ?? confirmingPassMs(context, ended)
  if (againMs !== undefined) wantSegment(context, pass, againMs)
  if (pass.passStartedAt && !feed.scope) store.state.fresh(resource, pass.passStartedAt)
  yield* forgetSeen(context, id, pass.scope)
}

/**
 * A naming of a key counts again, and makes a deleted row due again, if the last counted naming was before this time:
 * the first page of a list is read 1,440 times a day.
 */
export const dayAgo = ({ store, options }: EngineContext): string =>
  store.dueClock.after(-scaled(DAY_MS, options))

export function* forgetSeen({ store }: Pick<EngineContext, 'store'>, feed: string, scope: string): Batches {
  while (store.seen.forget(feed, scope, KEYS_AT_ONCE)) yield
}

/**
 * Denies those rows of a key range that the pass has not seen. Returns how many of them are newly suspected, or due for
 * a single read.
 * @param before the sum of the results for the earlier ranges
 */
function denyUnseen(context: EngineContext, ended: EndedPass, range: KeyRange, before: number): number {
  const { id, feed, pass } = ended
  const { evidence, table } = feed
  const keys = context.store.seen.unseen(id, { table, scope: pass.scope }, range)
  if (evidence.by === 'detail') return readUnlisted(context, ended, keys, range, before)
  if (evidence.by === 'second-pass') return denyByPass(context, ended, keys)
  const askable = keys.filter(key => isAskable(evidence, key))
  const place = { resource: ended.resource, table, probe: `${id}.probe`, scope: pass.scope }
  const suspected = probeLater(
    context,
    place,
    askable.map(key => ({ key, at: null })),
    before,
  )
  // A key that cannot be requested is denied by a second pass.
  const others = keys.filter(key => !isAskable(evidence, key))
  return suspected + denyByPass(context, ended, others)
}

/**
 * Denies the rows with these keys, unless the list has shown items without an id, which may be these rows. The pass
 * confirms only suspicions that are older than its start.
 */
function denyByPass(
  context: EngineContext,
  { id, feed: { table }, pass }: EndedPass,
  keys: readonly string[],
): number {
  if (context.store.seen.hasUnnamed(id, pass.scope)) return 0
  // Rows of a table with one key column have no scope, even if the list has one.
  const scope = tableNamed(table).key.length > 1 ? pass.scope : ''
  let suspected = 0
  for (const key of keys) {
    const row = { table, scope, key }
    const known = context.store.suspicions.find(row)
    if (!known) suspected += 1
    noteDenial(context, row, { confirms: known !== undefined && known.since < (pass.passStartedAt ?? '') })
  }
  return suspected
}

/**
 * Makes the single read due for each row that the list does not show. That read decides whether the row is gone. The
 * rows are noted as unlisted, so that a row that still exists is not read again for that reason within a week.
 */
function readUnlisted(
  context: EngineContext,
  { resource, feed }: EndedPass,
  keys: readonly string[],
  range: KeyRange,
  before: number,
): number {
  const { store, schedule } = context
  const due = noteUnlisted(context, resource, keys, range)
  const isMany = before + due.length > MANY_MISSING
  for (const { key, isNew } of due) {
    const row = { table: feed.table, scope: '', key }
    // The list may never show the rows in `always`, so it cannot deny them.
    const isDenied = isNew && !feed.always?.includes(key) && store.stored.state(row) === 'open'
    const verdict = isDenied ? noteDenial(context, row, { confirms: false }) : undefined
    const task = { feed: `${resource}.detail`, key }
    // A backfill does not wait to confirm: it reads every row in its round anyway, and most unlisted rows still exist.
    if (!schedule.isTimed || verdict?.state !== 'suspected')
      store.tasks.demand({ ...task, dueAt: store.dueClock.after(0) })
    else {
      const askAgainMs = isMany ? scaled(CONFIRM_MANY_AFTER_MS, context.options) : verdict.askAgainMs
      store.tasks.askAt({ ...task, dueAt: store.dueClock.after(askAgainMs) })
    }
  }
  return due.length
}
