import { CATALOG, TABLES, tableNamed } from '../../catalog/catalog.ts'
import type { Cell } from '../../declare/parsed-item.ts'
import type { LivesWith, Table } from '../../declare/table.ts'
import { isRow, quote } from '../database/sql.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { META } from '../sync/meta.ts'
import { keyOfValues, type RowKey } from './suspicions.ts'

export type PurgeQueue = ReturnType<typeof createPurgeQueue>

/**
 * The deleted and withheld rows that are not purged yet. The transaction that deletes, withholds or revives a row
 * updates the queue.
 */
export function createPurgeQueue(prepare: Prepare) {
  // An instant before the last maintenance comes from a clock that is behind. The wait then starts at the next
  // maintenance.
  const note = prepare(
    `INSERT INTO sync_purge_queue (table_name, scope, key, withdrawn_at)
     SELECT @table, @scope, @key, iif(@at < coalesce((SELECT value FROM sync_meta WHERE key = @maintained), ''), @never, @at)
     WHERE true ON CONFLICT DO NOTHING`,
  )
  const noteAt = (row: RowKey, at: string) =>
    note.run({ ...row, at, never: NOT_COUNTED, maintained: META.maintainedAt })
  const forget = prepare('DELETE FROM sync_purge_queue WHERE table_name = ? AND scope = ? AND key = ?')
  const owners = blockingOwners()
  return {
    /** Queues a row that was deleted or withheld. A row that is already in the queue keeps its time. */
    note: (table: string, key: readonly string[], now: string) => {
      noteAt(keyOfValues(table, key), now)
    },
    /** Removes a row that is live again, or no longer withheld. */
    forget: (table: string, columns: readonly string[]) => {
      const { scope, key } = keyOfValues(table, columns)
      forget.run(table, scope, key)
    },
    /** Of the merged e-mails with these keys, queues the deleted ones and removes the live ones from the queue. */
    updateMerged(keys: Iterable<string>) {
      const deletedAt = prepare<string | null>(
        'SELECT _deleted_at FROM messages WHERE header_message_id = ?',
      ).pluck()
      for (const key of keys) {
        const at = deletedAt.get(key)
        if (at) noteAt(keyOfValues('messages', [key]), at)
        else forget.run('messages', '', key)
      }
    },
    /**
     * Returns a predicate for rows of `table`: true when a row may not be stored, because the row that it belongs to is
     * deleted or withheld. Undefined for a table without such an owner.
     */
    insertBlocker(table: string): ((cell: (column: string) => Cell) => boolean) | undefined {
      const owner = owners.get(table)
      if (!owner) return undefined
      const columns = Object.keys(owner.on)
      const unpublished = prepare(
        `SELECT 1 FROM ${quote(owner.table)}
         WHERE ${isRow(Object.values(owner.on))} AND ${isUnpublished(tableNamed(owner.table))}`,
      )
      return cell => unpublished.get(...columns.map(cell)) !== undefined
    },
  }
}

/** Marks a row whose wait has not started: later than every instant. `Purger.restartWaits` replaces it. */
const NOT_COUNTED = '9999-12-31T23:59:59.999Z'

/**
 * Queues the rows that were deleted or withheld before the queue existed. Call it once, in the transaction that creates
 * the queue: a second call would queue purged rows again.
 */
export function queueEarlierDeletions(db: Sqlite): void {
  for (const { table } of TABLES.values()) {
    if (table.kind !== 'entity') continue
    const scope = table.key.length > 1 ? quote(table.key[0] ?? '') : "''"
    db.exec(
      `INSERT INTO sync_purge_queue (table_name, scope, key, withdrawn_at)
       SELECT '${table.name}', ${scope}, ${quote(table.key.at(-1) ?? '')}, coalesce(_deleted_at, _synced_at)
       FROM ${quote(table.name)} WHERE ${isUnpublished(table)}`,
    )
  }
}

/** SQL condition under which the content of an entity's row is no longer published. */
export function isUnpublished({ openWhen }: Pick<Table, 'openWhen'>): string {
  return openWhen === undefined ? '_deleted_at IS NOT NULL' : `(_deleted_at IS NOT NULL OR NOT (${openWhen}))`
}

/** For each table whose rows are not stored while their parent is deleted or withheld: that parent. */
function blockingOwners(): ReadonlyMap<string, LivesWith> {
  const tables = CATALOG.flatMap(resource => resource.tables)
  const cascaded = tables.flatMap(({ name, cascades }) =>
    cascades
      .filter(({ blocksInserts }) => blocksInserts)
      .map(({ table, on }): [string, LivesWith] => [table, { table: name, on }]),
  )
  const parts = tables.flatMap(({ name, content, livesWith }): [string, LivesWith][] =>
    content && livesWith ? [[name, livesWith]] : [],
  )
  return new Map([...cascaded, ...parts])
}
