import { REJECT_TABLE } from '../../catalog/bookkeeping/tables.ts'
import { ownerOf, TABLES } from '../../catalog/catalog.ts'
import type { LivesWith, Table } from '../../declare/table.ts'
import { LEADING_COLUMNS, TRAILING_COLUMNS } from '../crm/columns.ts'
import { readCrmTableStates } from '../crm/table-state.ts'
import { quote } from '../database/sql.ts'
import type { Sqlite, StoredCell } from '../database/sqlite-types.ts'
import { versionContents } from '../reporting/version-content.ts'
import { META, readMeta } from '../sync/meta.ts'
import { isUnpublished } from './purge-queue.ts'

/** Recognises content that was purged from the warehouse in a copy of one of its tables, such as a published file. */

/** Whether a row of the copy has content that was purged. The cells are in the order of the copy's columns. */
export type PurgedContentTest = (cells: readonly StoredCell[]) => boolean

/**
 * @returns undefined when nothing of the table was ever purged, or the table has no content of people
 * @param table the name of the table in the warehouse
 */
export function purgedContentTest(
  db: Sqlite,
  table: string,
  columns: readonly string[],
): PurgedContentTest | undefined {
  if (table === REJECT_TABLE.name) return removedRejectTest(db, columns)
  const rule = ruleOf(db, table, columns)
  if (rule === undefined || (!rule.wholeRows && rule.content.length === 0)) return undefined
  const { owner, on, fixed, wholeRows } = rule
  const isPurged = db.prepare(purgedRows(owner, [...Object.keys(fixed), ...Object.values(on)]))
  const anyPurged = db.prepare(purgedRows(owner, []))
  if (anyPurged.get() === undefined) return undefined
  const keys = Object.keys(on).map(column => columns.indexOf(column))
  const content = rule.content.map(column => columns.indexOf(column)).filter(place => place >= 0)
  return cells =>
    (wholeRows || content.some(place => cells[place] != null)) &&
    isPurged.get(...Object.values(fixed), ...keys.map(place => cells[place] ?? null)) !== undefined
}

/**
 * A reject leaves the warehouse with the row that it belongs to, or some time after its item could be stored. Both
 * count as purges. So a reject of the copy was purged if the warehouse lacks it and it was last seen before the last
 * purge. A reject that was seen later is missing because the warehouse was restored from an older copy.
 */
function removedRejectTest(db: Sqlite, columns: readonly string[]): PurgedContentTest | undefined {
  const purgedAt = readMeta(db, META.purgedAt)
  if (purgedAt === undefined) return undefined
  const places = ['id', 'first_seen_at', 'last_seen_at'].map(column => columns.indexOf(column))
  // The id alone does not decide: another reject may have got the same id.
  const find = db.prepare('SELECT 1 FROM sync_rejects WHERE id = ? AND first_seen_at = ?')
  return cells => {
    const [id, first, last] = places.map(place => cells[place] ?? null)
    return String(last) <= purgedAt && find.get(id, first) === undefined
  }
}

interface Rule {
  /** The entity whose purge removes the content. */
  owner: Table
  /** The copy's column → the owner's column. */
  on: LivesWith['on']
  /** Other columns of the owner with their values. */
  fixed: Readonly<Record<string, string>>
  /** True: a purge removes whole rows. */
  wholeRows: boolean
  /** The columns that a purge empties. */
  content: readonly string[]
}

function ruleOf(db: Sqlite, name: string, columns: readonly string[]): Rule | undefined {
  const placed = TABLES.get(name)
  if (placed === undefined) return versionRule(db, name) ?? crmRule(db, name, columns)
  const { table } = placed
  const content = Object.keys(table.columns).filter(column => table.columns[column]?.content)
  const own = { fixed: {}, wholeRows: table.content, content: [...content, '_extra'] }
  if (table.kind === 'entity')
    return { ...own, owner: table, on: Object.fromEntries(table.key.map(key => [key, key])) }
  const owner = ownerOf(placed)
  const entity = owner && TABLES.get(owner.table)?.table
  return owner && entity && { ...own, owner: entity, on: owner.on }
}

/** @returns the rule of a table with versions of rows */
function versionRule(db: Sqlite, name: string): Rule | undefined {
  const versions = versionContents(db).find(({ table }) => table === name)
  const owner = versions && TABLES.get(versions.owner)?.table
  if (!versions || !owner) return undefined
  const { key, scope, content } = versions
  const [scopeColumn = ''] = owner.key
  const fixed =
    scope === undefined
      ? {}
      : { [scopeColumn]: db.prepare<unknown[], string | null>(`SELECT ${scope}`).pluck().get() ?? '' }
  return { owner, on: { [key]: owner.key.at(-1) ?? '' }, fixed, wholeRows: false, content }
}

/** @returns the rule of a typed table of CRM records */
function crmRule(db: Sqlite, name: string, columns: readonly string[]): Rule | undefined {
  const states = readCrmTableStates(sql => db.prepare(sql))
  const [object] = [...states].find(([, { made }]) => made?.table === name) ?? []
  const owner = TABLES.get('crm_records')?.table
  if (object === undefined || owner === undefined) return undefined
  const others: readonly string[] = [...LEADING_COLUMNS, ...TRAILING_COLUMNS]
  const content = columns.filter(column => !others.includes(column))
  return { owner, on: { id: 'id' }, fixed: { object }, wholeRows: false, content }
}

/** SQL for purged rows: rows that are no longer published and are not in the purge queue. */
function purgedRows(owner: Table, columns: readonly string[]): string {
  const key = quote(owner.key.at(-1) ?? '')
  const scope = owner.key.length > 1 ? `o.${quote(owner.key[0] ?? '')}` : "''"
  const conditions = [
    ...columns.map(column => `o.${quote(column)} = ?`),
    isUnpublished(owner),
    `NOT EXISTS (SELECT 1 FROM sync_purge_queue WHERE table_name = '${owner.name}' AND scope = ${scope} AND key = o.${key})`,
  ]
  return `SELECT 1 FROM ${quote(owner.name)} o WHERE ${conditions.join(' AND ')} LIMIT 1`
}
