import { tableNamed } from '../../catalog/catalog.ts'
import { ITEM_FEEDS } from '../../catalog/feeds.ts'
import type { Cascade, Table } from '../../declare/table.ts'
import { isLive, isRow, quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import type { PurgeQueue } from '../deletions/purge-queue.ts'
import { keyOfValues, type Suspicions } from '../deletions/suspicions.ts'
import type { Freshness } from './freshness.ts'
import type { Group, MessageMerge } from './merge/messages.ts'

interface TombstoneDeps {
  prepare: Prepare
  suspicions: Pick<Suspicions, 'hasAny' | 'end'>
  merge: MessageMerge
  purgeQueue: PurgeQueue
  freshness: Freshness
}

type KeyList = readonly (readonly string[])[]

/** Called with the number of rows of a table that were deleted as dependants of a given row. */
type OnCascade = (table: string, rows: number) => void

export function createTombstones(deps: TombstoneDeps) {
  const { prepare, suspicions, merge, purgeQueue, freshness } = deps

  /**
   * Marks rows as deleted, and the rows that depend on them (cascades). Removes rows of a link table. Returns how many
   * of the given rows were live before.
   */
  const tombstone = (name: string, keys: KeyList, now: string, onCascade?: OnCascade): number => {
    const table = tableNamed(name)
    if (table.kind === 'link') return removeLinks(table, keys)
    const where = isRow(table.key)
    const mark = prepare(`UPDATE ${quote(name)} SET _deleted_at = ? WHERE ${where} AND _deleted_at IS NULL`)
    const isMerged = name === 'message_copies'
    const isSuspected = suspicions.hasAny(name)
    const groups: Group[] = []
    let count = 0
    for (const key of keys) {
      if (isSuspected) suspicions.end(keyOfValues(name, key))
      if (mark.run(now, ...key).changes === 0) continue
      count += 1
      purgeQueue.note(name, key, now)
      freshness.close(name, key.join('\u0000'))
      forgetFirstRead(name, key)
      const row = onlyRow(prepare<TombstoneRow>(`SELECT * FROM ${quote(name)} WHERE ${where}`), ...key)
      for (const cascade of table.cascades) apply(cascade, row, now, onCascade)
      if (isMerged) groups.push({ key: String(row['mail_id']), isReplaced: true })
    }
    if (isMerged) merge.refresh(groups, now)
    return count
  }

  const removeLinks = (table: Table, keys: KeyList): number => {
    const remove = prepare(`DELETE FROM ${quote(table.name)} WHERE ${isRow(table.key)}`)
    const isSuspected = suspicions.hasAny(table.name)
    let count = 0
    for (const key of keys) {
      count += remove.run(...key).changes
      if (isSuspected) suspicions.end(keyOfValues(table.name, key))
    }
    return count
  }

  /** Marks rows as existing but not readable, and adds the rows that are not stored. Returns how many rows changed. */
  const withhold = (name: string, keys: KeyList, now: string, onCascade?: OnCascade): number => {
    if (keys.length === 0) return 0
    const table = tableNamed(name)
    const mark = prepare(
      `INSERT INTO ${quote(name)} (id, access, transcript_state, _first_seen_at, _synced_at)
       VALUES (@key, 'withheld', 'withheld', @now, @now)
       ON CONFLICT DO UPDATE SET access = 'withheld', transcript_state = 'withheld', _synced_at = @now,
         _changed_at = iif(access = 'open', @now, _changed_at), _deleted_at = NULL
       WHERE access IS NOT 'withheld' OR _deleted_at IS NOT NULL`,
    )
    const find = prepare<TombstoneRow>(`SELECT * FROM ${quote(name)} WHERE id = ?`)
    let count = 0
    for (const [key = ''] of keys) {
      if (mark.run({ key, now }).changes === 0) continue
      count += 1
      purgeQueue.note(name, [key], now)
      freshness.close(name, key)
      for (const cascade of table.cascades) apply(cascade, onlyRow(find, key), now, onCascade)
    }
    return count
  }

  /** Removes the tasks of a row: if the row comes back, its first read must not wait for a task that was put off. */
  const forgetFirstRead = (name: string, key: readonly string[]) => {
    for (const feed of FIRST_READS.get(name) ?? []) {
      prepare("DELETE FROM sync_tasks WHERE feed = ? AND scope = '' AND key = ?").run(feed, key.at(-1))
    }
  }

  const apply = (cascade: Cascade, row: TombstoneRow, now: string, onCascade?: OnCascade) => {
    const table = tableNamed(cascade.table)
    const gone = prepare<string[]>(
      `SELECT ${table.key.map(quote).join(', ')} FROM ${quote(table.name)}
       WHERE ${isRow(Object.keys(cascade.on))} AND ${isLive(table)}`,
    ).raw()
    const values = Object.values(cascade.on).map(mine => row[mine])
    const rows = tombstone(table.name, gone.all(...values), now, onCascade)
    onCascade?.(table.name, rows)
  }

  return { tombstone, withhold }
}

/** By table: the item feeds that read the table's pending rows. */
const FIRST_READS: ReadonlyMap<string, readonly string[]> = firstReads()

function firstReads(): Map<string, string[]> {
  const reads = new Map<string, string[]>()
  for (const { id, feed } of ITEM_FEEDS) {
    if (!feed.pending) continue
    const { table } = feed.pending
    reads.set(table, [...(reads.get(table) ?? []), id])
  }
  return reads
}

type TombstoneRow = Record<string, string | number | null>
