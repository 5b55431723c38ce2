import { decodeJson, encodeJson, isJsonObject, isSameValue } from '../../base/json.ts'
import { descendants, tableNamed } from '../../catalog/catalog.ts'
import type { Cell, ParsedItem, ParsedRow } from '../../declare/parsed-item.ts'
import type { Column, Table } from '../../declare/table.ts'
import { isRow, placeholders, quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import type { PurgeQueue } from '../deletions/purge-queue.ts'
import type { RowKey } from '../deletions/suspicions.ts'
import type { Difference } from './merge/parts.ts'
import { createShownFields, type ShownBy, type ShownFields } from './shown-fields.ts'

/** Writes payloads: a row and all rows below it. Rows that did not change are not rewritten. */

export type WriteStatus = 'inserted' | 'changed' | 'revived' | 'unchanged'

export interface Written {
  status: WriteStatus
  /** Whether a stored value was replaced by another or removed, which sets `_changed_at`. */
  isReplaced: boolean
  /** Whether only fields without a column differ, such as a URL that the API signs again for each answer. */
  isExtraAlone: boolean
  /** The columns that differ; undefined when children or fields without a column differ too. */
  onlyColumns?: readonly string[]
  /** The stored cells before the write, in column order; undefined for a new row. */
  before?: readonly Cell[]
}

/** How the given rows differ from the stored ones, and whether they differ only in fields without a column. */
interface Comparison {
  difference: Difference
  isExtraAlone: boolean
}

const SAME: Comparison = { difference: 'none', isExtraAlone: true }

export interface WriterOptions {
  /** Columns that parley fills and for which the items have values. */
  filled?: readonly string[] | undefined
  /** True: a live row keeps its columns and children; only its fields without a column change. */
  keepsLive?: boolean | undefined
  /** The kind of endpoint that returned the rows. Default `list`. */
  shownBy?: ShownBy | undefined
}

/**
 * Stores a row. Returns undefined, and stores nothing, when the stored row is live and its time of last change is later
 * than that of the item.
 * @param mayBeOlder true to store an older item too
 */
export type RowWriter = (
  item: ParsedItem,
  now: string,
  options?: { mayBeOlder: boolean },
) => Written | undefined

/** A writer for one table. It leaves the columns that parley fills unchanged, unless `filled` names them. */
export function createRowWriter(
  prepare: Prepare,
  table: Table,
  shown: ShownFields,
  { filled = [], keepsLive = false, shownBy = 'list' }: WriterOptions = {},
): RowWriter {
  const all = Object.entries(table.columns)
  const written = all
    .map(([name, column], index) => ({ name, column, index }))
    .filter(({ name, column }) => column.source.from !== 'parley' || filled.includes(name))
  const keyIndexes = table.key.map(name => all.findIndex(([column]) => column === name))
  const rootKeyIndex = keyIndexes.at(-1) ?? 0
  const changedAt = all.findIndex(([name]) => name === table.changedAt)
  const isOlder = (given: Cell | undefined, stored: Cell | undefined) =>
    typeof given === 'string' && typeof stored === 'string' && given < stored
  const sql = rowSql(
    table,
    written.map(({ name }) => name),
  )
  const insert = prepare(sql.insert)
  const select = prepare<Cell[]>(sql.select).raw()
  const update = prepare(sql.update)
  const children = descendants(table).map(({ table: child }) => createChildWriter(prepare, child))

  const extras = createExtras(table, shown, shownBy)

  return (item, now, { mayBeOlder } = { mayBeOlder: false }) => {
    if (table.mergesExtra) extras.note(item.extra)
    const values = written.map(({ index }) => item.cells[index] ?? null)
    if (insert.run(...values, item.extra, now, now).changes === 1) {
      for (const child of children) child.insert(item.children.get(child.name) ?? [])
      return { status: 'inserted', isReplaced: false, isExtraAlone: false }
    }
    const key = keyIndexes.map(index => item.cells[index] ?? null)
    const found = onlyRow(select, ...key)
    const foundExtra = found[all.length] ?? null
    const deleted = found[all.length + 1] != null
    if (keepsLive && !deleted) {
      const extra = extras.added(foundExtra, item.extra)
      if (isSameJson(foundExtra, extra)) return unchanged(found)
      const kept = written.map(({ index }) => found[index] ?? null)
      const isReplaced = replacesExtra(foundExtra, extra)
      update.run(...kept, extra, now, isReplaced ? now : null, ...key)
      return { status: 'changed', isReplaced, isExtraAlone: true, before: found }
    }
    if (!mayBeOlder && !deleted && isOlder(item.cells[changedAt], found[changedAt])) return undefined
    const extra = table.mergesExtra ? extras.merged(foundExtra, item.extra) : item.extra
    const rootKey = item.cells[rootKeyIndex] ?? null
    const compared = children.map(child => child.compare(rootKey, item.children.get(child.name) ?? []))
    const hasOtherChildren = compared.some(({ difference }) => difference !== 'none')
    const otherColumns = written.filter(
      ({ column, index }, at) => !sameCell(column, found[index] ?? null, values[at] ?? null),
    )
    const hasOtherCells = otherColumns.length > 0
    const hasOtherFields = !isSameJson(foundExtra, extra)
    if (!hasOtherChildren && !hasOtherCells && !hasOtherFields && !deleted) return unchanged(found)
    const isReplaced =
      compared.some(({ difference }) => difference === 'replaced') ||
      replacesExtra(foundExtra, extra) ||
      written.some(({ column, index }, at) => replacesCell(column, found[index] ?? null, values[at] ?? null))
    update.run(...values, extra, now, isReplaced ? now : null, ...key)
    // Foreign keys are off, so nothing cascades. Each child table is replaced explicitly, parents first.
    if (hasOtherChildren)
      for (const child of children) child.replace(rootKey, item.children.get(child.name) ?? [])
    const isExtraAlone = !deleted && !hasOtherCells && compared.every(each => each.isExtraAlone)
    const onlyColumns = hasOtherChildren || hasOtherFields ? undefined : otherColumns.map(({ name }) => name)
    return {
      status: deleted ? 'revived' : 'changed',
      isReplaced,
      isExtraAlone,
      before: found,
      ...(onlyColumns && { onlyColumns }),
    }
  }
}

function unchanged(before: readonly Cell[]): Written {
  return { status: 'unchanged', isReplaced: false, isExtraAlone: false, before }
}

function rowSql(table: Table, written: readonly string[]) {
  const name = quote(table.name)
  const columns = [...written, '_extra', '_first_seen_at', '_synced_at'].map(quote)
  const key = isRow(table.key)
  const sets = [...written, '_extra', '_synced_at'].map(column => `${quote(column)} = ?`)
  return {
    insert: `INSERT INTO ${name} (${columns.join(', ')}) VALUES (${placeholders(columns.length)})
      ON CONFLICT DO NOTHING`,
    select: `SELECT ${Object.keys(table.columns).map(quote).join(', ')}, _extra, _deleted_at FROM ${name} WHERE ${key}`,
    update: `UPDATE ${name} SET ${sets.join(', ')}, _changed_at = coalesce(?, _changed_at), _deleted_at = NULL
      WHERE ${key}`,
  }
}

/**
 * A writer for a child table. The first key column of the table repeats the root row's key. In a table without such a
 * column, all rows belong to the only root row.
 */
function createChildWriter(prepare: Prepare, table: Table) {
  const columns = Object.entries(table.columns)
  const [first = ''] = table.key
  const inherits = table.columns[first]?.source.from === 'parent'
  const where = inherits ? `WHERE ${quote(first)} = ?` : ''
  const key = (rootKey: Cell) => (inherits ? [rootKey] : [])
  const names = [...columns.map(([name]) => name), '_extra'].map(quote).join(', ')
  const insertRow = prepare(
    `INSERT INTO ${quote(table.name)} (${names}) VALUES (${placeholders(columns.length + 1)})`,
  )
  const select = prepare<Cell[]>(`SELECT ${names} FROM ${quote(table.name)} ${where}`).raw()
  const remove = prepare(`DELETE FROM ${quote(table.name)} ${where}`)
  const keyIndexes = table.key.map(name => columns.findIndex(([column]) => column === name))
  const keyOf = (cells: readonly (Cell | undefined)[]) => keyIndexes.map(index => cells[index]).join('\u0000')
  const insert = (rows: readonly ParsedRow[]) => {
    for (const row of rows) insertRow.run(...row.cells, row.extra)
  }
  return {
    name: table.name,
    insert,
    compare(rootKey: Cell, rows: readonly ParsedRow[]): Comparison {
      const present = select.all(...key(rootKey))
      if (present.length === 0)
        return rows.length === 0 ? SAME : { difference: 'completed', isExtraAlone: false }
      const byKey = new Map(present.map(cells => [keyOf(cells), cells]))
      let { difference, isExtraAlone } = SAME
      for (const row of rows) {
        const name = keyOf(row.cells)
        const of = compareRow(columns, byKey.get(name), row)
        if (of.difference !== 'none' && difference !== 'replaced') difference = of.difference
        isExtraAlone &&= of.isExtraAlone
        if (difference === 'replaced' && !isExtraAlone) break
        byKey.delete(name)
      }
      if (byKey.size === 0 || (difference === 'replaced' && !isExtraAlone))
        return { difference, isExtraAlone }
      return { difference: 'replaced', isExtraAlone: false }
    },
    replace(rootKey: Cell, rows: readonly ParsedRow[]) {
      remove.run(...key(rootKey))
      insert(rows)
    },
  }
}

function compareRow(
  columns: readonly (readonly [name: string, Column])[],
  stored: readonly Cell[] | undefined,
  row: ParsedRow,
): Comparison {
  if (!stored) return { difference: 'completed', isExtraAlone: false }
  const extra = stored[columns.length] ?? null
  const isExtraAlone = columns.every(
    ([, column], index) =>
      column.source.from === 'parley' || sameCell(column, stored[index] ?? null, row.cells[index] ?? null),
  )
  if (isExtraAlone && isSameJson(extra, row.extra)) return SAME
  const isReplaced =
    replacesExtra(extra, row.extra) ||
    columns.some(
      ([, column], index) =>
        column.source.from !== 'parley' &&
        replacesCell(column, stored[index] ?? null, row.cells[index] ?? null),
    )
  return { difference: isReplaced ? 'replaced' : 'completed', isExtraAlone }
}

function sameCell(column: Column, stored: Cell, given: Cell): boolean {
  return stored === given || (column.kind === 'json' && isSameJson(stored, given))
}

/**
 * Whether a cell sets `_changed_at`: a stored value is replaced by another value or removed. A value in place of null
 * completes the row and does not count.
 */
function replacesCell(column: Pick<Column, 'kind' | 'source'>, stored: Cell, given: Cell): boolean {
  // This cell follows from other cells, which are compared themselves.
  if (column.source.from === 'row') return false
  if (stored === null || stored === given) return false
  if (column.kind !== 'json' || typeof stored !== 'string' || typeof given !== 'string') return true
  return hasOtherValue(decodeJson(stored).value, decodeJson(given).value)
}

/**
 * Whether a field without a column has another value than before. Removed and added fields do not count: a removed
 * field may have its own column since an upgrade, and an added field may be new in the API for all rows at once.
 */
function replacesExtra(stored: Cell, given: string | null): boolean {
  if (typeof stored !== 'string' || given === null) return false
  const [before, after] = [decodeJson(stored).value, decodeJson(given).value]
  if (!isJsonObject(before) || !isJsonObject(after)) return false
  return Object.keys(before).some(
    name => before[name] !== null && Object.hasOwn(after, name) && hasOtherValue(before[name], after[name]),
  )
}

const hasOtherValue = (before: unknown, after: unknown): boolean =>
  !isSameValue(before, after, { nullIsMissing: true })

/** Whether two JSON texts have the same value. The order of an object's fields does not count. */
export function isSameJson(stored: Cell, given: Cell): boolean {
  if (stored === given) return true
  if (typeof stored !== 'string' || typeof given !== 'string') return false
  return isSameValue(decodeJson(stored).value, decodeJson(given).value)
}

/** Merges `_extra` for a table whose rows come from a list and from single reads, each with different fields. */
function createExtras(table: Table, shown: ShownFields, by: ShownBy) {
  const undeclared = (extra: Cell): [string, unknown][] =>
    typeof extra === 'string'
      ? Object.entries(decodeJson(extra).value as object).filter(([name]) => !declaredFields(table).has(name))
      : []
  /**
   * Whether the API has dropped a field that is missing from the answer. It has if this endpoint returned the field
   * before. But once a list has returned the field, only its absence from a list counts.
   */
  const isDropped = (field: string): boolean =>
    shown.has(table.name, by, field) && (by === 'list' || !shown.has(table.name, 'list', field))
  const keptOf = (stored: Cell) => undeclared(stored).filter(([name]) => !isDropped(name))

  return {
    note: (given: string | null) =>
      shown.note(
        table.name,
        by,
        undeclared(given).map(([name]) => name),
      ),
    /** The fields of this answer, and the stored fields that the answer lacks and that the API has not dropped. */
    merged(stored: Cell, given: string | null): string | null {
      const kept = keptOf(stored)
      if (kept.length === 0) return given
      const fresh = given === null ? [] : Object.entries(decodeJson(given).value as object)
      return encodeJson(Object.fromEntries([...kept, ...fresh]))
    },
    /** As `merged`, but fields that have a column stay as stored: this endpoint does not write columns. */
    added(stored: Cell, given: string | null): string | null {
      const before = typeof stored === 'string' ? Object.entries(decodeJson(stored).value as object) : []
      const kept = before.filter(([name]) => declaredFields(table).has(name) || !isDropped(name))
      const all = Object.fromEntries([...kept, ...undeclared(given)])
      return Object.keys(all).length === 0 ? null : encodeJson(all)
    },
  }
}

const DECLARED_FIELDS = new Map<string, ReadonlySet<string>>()

function declaredFields(table: Table): ReadonlySet<string> {
  const known = DECLARED_FIELDS.get(table.name)
  if (known) return known
  const fields = new Set(
    Object.values(table.columns).flatMap(({ source }) =>
      source.from === 'payload' ? source.path.slice(0, 1) : [],
    ),
  )
  for (const { list } of table.children) if (list[0] !== undefined) fields.add(list[0])
  DECLARED_FIELDS.set(table.name, fields)
  return fields
}

/** SQL that sets `_synced_at` and `_changed_at` of the row to which a child table's rows belong. */
function ownerUpdateSql({ livesWith }: Table): string | undefined {
  const [key] = Object.values(livesWith?.on ?? {})
  if (!livesWith || key === undefined) return undefined
  return `UPDATE ${quote(livesWith.table)} SET _synced_at = ?, _changed_at = coalesce(?, _changed_at)
    WHERE ${quote(key)} = ?`
}

export type RowWriters = ReturnType<typeof createRowWriters>

export function createRowWriters(prepare: Prepare, purgeQueue: Pick<PurgeQueue, 'insertBlocker'>) {
  const shown = createShownFields(prepare)
  const writers = new Map<string, RowWriter>()
  const childWriters = new Map<string, ReturnType<typeof createChildWriter>>()
  return {
    /** The writer of a table. The same arguments return the same writer. */
    to(table: string, options: WriterOptions = {}) {
      const { filled = [], keepsLive = false, shownBy = 'list' } = options
      const name = [table, keepsLive, shownBy, ...filled].join(' ')
      const writer = writers.get(name) ?? createRowWriter(prepare, tableNamed(table), shown, options)
      writers.set(name, writer)
      return writer
    },
    /**
     * Replaces the rows of a child table that is read separately, such as a transcript, and updates the times of the row
     * that owns them. Returns false when nothing changed, or when the owner is deleted or withheld.
     */
    replaceChildren(table: string, rootKey: string, rows: readonly ParsedRow[], now: string) {
      const writer = childWriters.get(table) ?? createChildWriter(prepare, tableNamed(table))
      childWriters.set(table, writer)
      if (purgeQueue.insertBlocker(table)?.(() => rootKey)) return false
      const { difference } = writer.compare(rootKey, rows)
      if (difference === 'none') return false
      writer.replace(rootKey, rows)
      const touch = ownerUpdateSql(tableNamed(table))
      if (touch) prepare(touch).run(now, difference === 'replaced' ? now : null, rootKey)
      return true
    },
    /**
     * Replaces one column of a live row, which a separate single read returns. Returns how many rows changed. The first
     * value does not set `_changed_at`.
     */
    replacePart(
      { table, key }: Pick<RowKey, 'table' | 'key'>,
      column: string,
      value: string | null,
      now: string,
    ) {
      const part = quote(column)
      const update = prepare(
        `UPDATE ${quote(table)} SET ${part} = @value, _synced_at = @now,
           _changed_at = iif(${part} IS NULL, _changed_at, @now)
         WHERE id = @key AND _deleted_at IS NULL`,
      )
      return update.run({ value, now, key }).changes
    },
  }
}
