import { canonicalId, UUID_GLOB, withCanonicalIds } from '../../base/uuid.ts'
import { descendants, hasIds, type PlacedTable, TABLES } from '../../catalog/catalog.ts'
import type { Column, Table } from '../../declare/table.ts'
import { readCrmTableStates } from '../crm/table-state.ts'
import { isRow, placeholders, quote } from '../database/sql.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { onlyRow, statementCache } from '../database/statements.ts'
import { isUnpublished } from '../deletions/purge-queue.ts'
import { isSameJson } from '../rows/payload-writer.ts'
import { createMergedMails, type MergedMails, mailOf } from './regrouped-mails.ts'

/**
 * Brings the UUIDs that earlier versions stored in upper case to lower case. Two rows whose ids differ only by case are
 * joined: a live row stays rather than a deleted row, else the newer row.
 */

/** How many rows are renamed between two reads of the table. */
const BATCH = 500

const isUpperCase = (column: string) =>
  `(${quote(column)} GLOB '*[A-F]*' AND ${quote(column)} GLOB '${UUID_GLOB}')`

/** Tables of parley's own state with ids, each with all columns of its key. */
const STATE: Readonly<Record<string, readonly string[]>> = {
  sync_tasks: ['feed', 'scope', 'key'],
  sync_seen: ['feed', 'scope', 'key'],
  sync_purge_queue: ['table_name', 'scope', 'key'],
  sync_suspicions: ['table_name', 'scope', 'key'],
}

/**
 * Reads keys only, mostly in an index. Columns that refer to other rows are skipped: their ids come in the same answer
 * as the row's id, and a row whose id is in lower case is rewritten when it is read again.
 */
function hasUpperCaseIds(prepare: Prepare): boolean {
  const places = [
    ...[...TABLES.values()].flatMap(placed =>
      isCopied(placed.table) ? [] : idsInKey(placed).map(column => [placed.table.name, column] as const),
    ),
    ...Object.keys(STATE).flatMap(table => ['scope', 'key'].map(column => [table, column] as const)),
  ]
  const anyOf = places.map(
    ([table, column]) => `EXISTS (SELECT 1 FROM ${quote(table)} WHERE ${isUpperCase(column)})`,
  )
  return anyOf.some(exists => onlyRow(prepare<number>(`SELECT ${exists}`).pluck()) === 1)
}

/** Whether the key of a table repeats ids of rows in another table. */
const isCopied = ({ kind, livesWith }: Table) => kind === 'child' || livesWith?.table === 'crm_records'

function idsInKey(placed: PlacedTable): string[] {
  return placed.table.key.filter(column => hasIds(placed, column))
}

export function lowerCaseIds(db: Sqlite, now: string): void {
  const prepare = statementCache(db)
  if (!hasUpperCaseIds(prepare)) return
  const define = (name: string, change: (text: string) => string) =>
    db.function(name, { deterministic: true }, cell => (typeof cell === 'string' ? change(cell) : cell))
  define('canonical_ids', text => text.replace(/[^\0 ]+/g, canonicalId))
  define('canonical_json', withCanonicalIds)
  const mails = createMergedMails(prepare)
  for (const placed of TABLES.values())
    if (placed.table.kind === 'entity' && idsInKey(placed).length > 0) renameRows(prepare, placed, mails, now)
  for (const placed of TABLES.values()) renameReferences(prepare, placed, now)
  renameState(prepare)
  // The store makes the typed tables again from the records.
  for (const { made, next } of readCrmTableStates(prepare).values())
    for (const typed of [made, next]) if (typed) db.exec(`DROP TABLE IF EXISTS ${quote(typed.table)}`)
}

// ----------------------------------------------------------------------------------------------- rows

function renameRows(prepare: Prepare, placed: PlacedTable, mails: MergedMails, now: string): void {
  const { table } = placed
  const key = table.key.map(quote).join(', ')
  const some = prepare<string[]>(
    `SELECT ${key} FROM ${quote(table.name)}
     WHERE ${isUpperCase(table.key.at(-1) ?? '')} AND (${key}) > (${placeholders(table.key.length)})
     ORDER BY ${key} LIMIT ${BATCH}`,
  ).raw()
  const rows = createRowChanges(prepare, table, now)
  const copies = table.name === 'message_copies' ? createCopyChanges(prepare, mails) : undefined
  let keys = some.all(table.key.map(() => ''))
  while (keys.length > 0) {
    const changedMails = new Set<string>()
    for (const upper of keys) {
      const lower = [...upper.slice(0, -1), canonicalId(upper.at(-1) ?? '')]
      const before = copies?.read(upper, lower)
      rows.endSuspicions(upper, lower)
      if (rows.has(lower)) rows.join(upper, lower)
      else rows.rename(upper, lower)
      for (const mail of copies?.follow(before ?? [], lower) ?? []) changedMails.add(mail)
    }
    if (copies) mails.refresh(changedMails, now)
    keys = some.all(keys.at(-1))
  }
}

type Key = readonly string[]

function createRowChanges(prepare: Prepare, table: Table, now: string) {
  const name = quote(table.name)
  const own = isRow(table.key)
  const id = quote(table.key.at(-1) ?? '')
  const find = prepare(`SELECT 1 FROM ${name} WHERE ${own}`)
  const state = prepare<{ live: number; syncedAt: string; pending: number }>(
    `SELECT _deleted_at IS NULL AS live, _synced_at AS syncedAt, ${isPending(table)} AS pending FROM ${name} WHERE ${own}`,
  )
  const rename = prepare(`UPDATE ${name} SET ${id} = ?, _synced_at = ? WHERE ${own}`)
  const remove = prepare(`DELETE FROM ${name} WHERE ${own}`)
  const complete = prepare(completeSql(table))
  const endSuspicion = prepare('DELETE FROM sync_suspicions WHERE table_name = ? AND scope = ? AND key = ?')
  const forgetPurge = prepare(
    `DELETE FROM sync_purge_queue WHERE table_name = ? AND scope = ? AND key IN (?, ?)
       AND EXISTS (SELECT 1 FROM ${name} WHERE ${own} AND NOT (${isUnpublished(table)}))`,
  )
  const children = descendants(table).flatMap(({ table: child }) => childChanges(prepare, child))
  const parts = partsOf(table).flatMap(part => childChanges(prepare, part))
  const history = createHistoryChanges(prepare, table)

  const renameRow = (from: Key, to: Key) => {
    rename.run(to.at(-1), now, ...from)
    for (const child of children) child.rename(from, to)
  }
  return {
    has: (key: Key) => find.get(...key) !== undefined,
    rename(from: Key, to: Key) {
      renameRow(from, to)
      for (const part of parts) part.rename(from, to)
    },
    /** Makes one row of the two, under the key in lower case. */
    join(upper: Key, lower: Key) {
      const [one, other] = [onlyRow(state, ...upper), onlyRow(state, ...lower)]
      const isUpperNewer = one.live === other.live ? one.syncedAt > other.syncedAt : one.live > other.live
      const [kept, left] = isUpperNewer ? [upper, lower] : [lower, upper]
      const keepsParts = (isUpperNewer ? one : other).pending === 0
      complete.run({ now, ...named('kept', kept), ...named('left', left) })
      remove.run(...left)
      for (const child of children) child.remove(left)
      for (const part of parts) part.remove(keepsParts || part.has(kept) ? left : kept)
      if (isUpperNewer) renameRow(upper, lower)
      for (const part of parts) part.rename(upper, lower)
      history?.join(upper, lower)
      const scope = lower.slice(0, -1).join('\0')
      forgetPurge.run(table.name, scope, upper.at(-1), lower.at(-1), ...lower)
    },
    endSuspicions(upper: Key, lower: Key) {
      const scope = lower.slice(0, -1).join('\0')
      for (const key of [upper, lower]) endSuspicion.run(table.name, scope, key.at(-1))
    },
  }
}

/** Parameters of a statement: `kept0`, `kept1` for a key of two columns. */
const named = (name: string, key: Key) =>
  Object.fromEntries(key.map((value, place) => [`${name}${place}`, value]))

const ownColumns = ({ columns, key }: Table): [string, Column][] =>
  Object.entries(columns).filter(([name, { source }]) => source.from === 'parley' && !key.includes(name))

/** SQL condition under which no single read has returned anything of the row yet. */
function isPending(table: Table): string {
  const states = ownColumns(table).filter(([, column]) => column.default === "'pending'")
  return ['true', ...states.map(([name]) => `${quote(name)} = 'pending'`)].join(' AND ')
}

/** SQL that copies parley's own values from the row `left` to the row `kept`, where `kept` has only the default. */
function completeSql(table: Table): string {
  const sets = ownColumns(table).map(([name, column]) => {
    const cell = quote(name)
    return `${cell} = iif(k.${cell} IS ${column.default ?? 'NULL'}, l.${cell}, k.${cell})`
  })
  const isKey = (alias: string, name: string) =>
    table.key.map((column, place) => `${alias}.${quote(column)} = @${name}${place}`).join(' AND ')
  return `UPDATE ${quote(table.name)} AS k SET ${[
    ...sets,
    '_first_seen_at = min(k._first_seen_at, l._first_seen_at)',
    "_changed_at = nullif(max(coalesce(k._changed_at, ''), coalesce(l._changed_at, '')), '')",
    '_synced_at = @now',
  ].join(', ')} FROM ${quote(table.name)} l WHERE ${isKey('k', 'kept')} AND ${isKey('l', 'left')}`
}

/** Tables whose rows are read separately and replaced together, such as the entries of a transcript. */
function partsOf({ name }: Table): Table[] {
  return [...TABLES.values()].flatMap(({ table }) =>
    table.kind === 'child' && table.livesWith?.table === name ? [table] : [],
  )
}

/** A child row repeats the id of its root in the first column of its key. */
function childChanges(prepare: Prepare, child: Table) {
  const [first = ''] = child.key
  if (child.columns[first]?.source.from !== 'parent') return []
  const name = quote(child.name)
  const find = prepare(`SELECT 1 FROM ${name} WHERE ${isRow([first])} LIMIT 1`)
  const rename = prepare(`UPDATE ${name} SET ${quote(first)} = ? WHERE ${isRow([first])}`)
  const remove = prepare(`DELETE FROM ${name} WHERE ${isRow([first])}`)
  return [
    {
      has: (root: Key) => find.get(root.at(-1)) !== undefined,
      rename: (from: Key, to: Key) => void rename.run(to.at(-1), from.at(-1)),
      remove: (root: Key) => void remove.run(root.at(-1)),
    },
  ]
}

// ----------------------------------------------------------------------------------------------- copies of e-mails

interface RenamedCopy {
  _id: number
  mail_id: string
}

/** Keeps the merged e-mails in step with their copies. */
function createCopyChanges(prepare: Prepare, mails: MergedMails) {
  const find = prepare<RenamedCopy & Record<string, string | number | null>>(
    'SELECT * FROM message_copies WHERE id = ?',
  )
  const setMail = prepare('UPDATE message_copies SET mail_id = ? WHERE _id = ?')
  const setTextFrom = prepare(
    'UPDATE messages SET _text_from = ? WHERE header_message_id = ? AND _text_from = ?',
  )
  return {
    read: (...keys: readonly Key[]): RenamedCopy[] => keys.flatMap(key => find.get(key.at(-1)) ?? []),
    /** Returns the e-mails to merge again. @param before the copies that have become the copy with this key */
    follow(before: readonly RenamedCopy[], key: Key): string[] {
      const row = onlyRow(find, key.at(-1))
      const mail = mailOf(row)
      if (row.mail_id !== mail) setMail.run(mail, row._id)
      for (const { _id, mail_id } of before) {
        if (_id !== row._id) setTextFrom.run(row._id, mail_id, _id)
        // The e-mail of a copy without a Message-ID has the id of the copy.
        const canonical = canonicalMail(mail_id)
        if (canonical === mail_id) continue
        if (canonical === mail) mails.move(mail_id, mail)
        else mails.remove(mail_id)
      }
      return [mail, ...before.map(({ mail_id }) => mail_id)]
    },
  }
}

const canonicalMail = (mail: string) =>
  mail.startsWith('id:') ? `id:${canonicalId(mail.slice('id:'.length))}` : mail

// ----------------------------------------------------------------------------------------------- history

/**
 * Joins the histories of the two rows of a record. A change to a value that the joined history already has is removed.
 */
function createHistoryChanges(prepare: Prepare, table: Table) {
  if (table.name !== 'crm_records') return undefined
  const changes = prepare<{
    id: string
    field: string
    at: string
    before: string | null
    after: string | null
  }>(
    `SELECT record_id AS id, field, observed_at AS at, old_value AS before, new_value AS after FROM crm_record_changes
     WHERE object = ? AND record_id IN (?, ?) ORDER BY field, observed_at, record_id`,
  )
  const change = 'object = ? AND record_id = ? AND field = ? AND observed_at = ?'
  const remove = prepare(`DELETE FROM crm_record_changes WHERE ${change}`)
  const setBefore = prepare(`UPDATE crm_record_changes SET old_value = ? WHERE ${change}`)
  return {
    join([object, upper]: Key, [, lower]: Key) {
      const all = changes.all(object, upper, lower)
      if (new Set(all.map(({ id }) => id)).size < 2) return
      let last: (typeof all)[number] | undefined
      for (const each of all) {
        const key = [object, each.id, each.field, each.at]
        const isNext = last?.field === each.field
        const isKnown = isNext && last?.after !== null && each.after !== null
        if (isKnown && isSameJson(last?.after ?? null, each.after)) remove.run(...key)
        else {
          if (isKnown) setBefore.run(last?.after, ...key)
          last = each
        }
      }
    },
  }
}

// ----------------------------------------------------------------------------------------------- references

function renameReferences(prepare: Prepare, placed: PlacedTable, now: string): void {
  const { table } = placed
  const name = quote(table.name)
  const [touch, times] = table.kind === 'entity' ? [', _synced_at = ?', [now]] : ['', []]
  for (const [column, { kind }] of Object.entries(table.columns)) {
    if (!hasIds(placed, column)) continue
    const cell = quote(column)
    const [lower, isUpper] =
      kind === 'json'
        ? [`canonical_json(${cell})`, `${cell} <> canonical_json(${cell})`]
        : [`lower(${cell})`, isUpperCase(column)]
    // If the column is in the key, the row may exist in lower case. The row in upper case is then deleted.
    prepare(`UPDATE OR IGNORE ${name} SET ${cell} = ${lower}${touch} WHERE ${isUpper}`).run(...times)
    if (table.key.includes(column)) prepare(`DELETE FROM ${name} WHERE ${isUpper}`).run()
  }
}

// ----------------------------------------------------------------------------------------------- state

function renameState(prepare: Prepare): void {
  prepare(
    'DELETE FROM sync_suspicions WHERE canonical_ids(scope) <> scope OR canonical_ids(key) <> key',
  ).run()
  // The passes over these scopes start again, so the keys that they have seen are deleted.
  prepare('DELETE FROM sync_seen WHERE canonical_ids(scope) <> scope').run()
  for (const [table, key] of Object.entries(STATE)) renameKeys(prepare, table, key)
  // Of two segments, the one in lower case stays. A pass begins again, since a cursor is only valid with its query.
  prepare(
    `DELETE FROM sync_segments WHERE canonical_ids(scope) <> scope AND EXISTS (
       SELECT 1 FROM sync_segments s WHERE s.feed = sync_segments.feed AND s.scope = canonical_ids(sync_segments.scope))`,
  ).run()
  prepare(
    `UPDATE sync_segments SET query = NULL, cursor = NULL, pass_started_at = NULL, pass_round = NULL,
       pass_wanted_at = NULL, pages = 0, rows = 0, edge_at = NULL, edge_keys = NULL, total_size = NULL
     WHERE canonical_ids(scope) <> scope AND pass_started_at IS NOT NULL`,
  ).run()
  prepare('UPDATE sync_segments SET scope = canonical_ids(scope) WHERE canonical_ids(scope) <> scope').run()
  prepare('UPDATE sync_segments SET edge_keys = canonical_json(edge_keys) WHERE edge_keys IS NOT NULL').run()
  prepare(
    'UPDATE sync_rejects SET _scope = canonical_ids(_scope) WHERE canonical_ids(_scope) <> _scope',
  ).run()
}

/** Of two rows, the one in lower case stays. A task is then due at the earlier of the two times. */
function renameKeys(prepare: Prepare, table: string, key: readonly string[]): void {
  const columns = prepare<string>('SELECT name FROM pragma_table_info(?)').pluck().all(table)
  const others = columns.filter(column => !key.includes(column)).map(quote)
  const isUpper = 'canonical_ids(scope) <> scope OR canonical_ids(key) <> key'
  const [owner = ''] = key
  const conflict = columns.includes('due_at') ? 'UPDATE SET due_at = min(due_at, excluded.due_at)' : 'NOTHING'
  prepare(
    `INSERT INTO ${table} (${[owner, 'scope', 'key', ...others].join(', ')})
     SELECT ${[owner, 'canonical_ids(scope)', 'canonical_ids(key)', ...others].join(', ')} FROM ${table}
     WHERE ${isUpper} ON CONFLICT DO ${conflict}`,
  ).run()
  prepare(`DELETE FROM ${table} WHERE ${isUpper}`).run()
}
