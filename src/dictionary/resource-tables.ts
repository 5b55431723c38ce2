import { canonicalInstant } from '../base/instant.ts'
import type { ValueOnDelete } from '../catalog/bookkeeping/value-on-delete.ts'
import { CATALOG, type PlacedTable, resourceNamed, TABLES } from '../catalog/catalog.ts'
import { type Child, type Column, type Table, valueWhenPurged } from '../declare/table.ts'
import {
  type DescribedColumn,
  type DescribedTable,
  MISSING,
  NEVER_NULL,
  orPurged,
  type Recount,
} from './described-table.ts'

/** Descriptions of the tables of all resources and of their `live_` views, derived from the declarations. */

const INSTANT = '2026-03-04T05:06:07.123Z'

type General = Omit<DescribedColumn, 'name' | 'isKey' | 'source' | 'unit' | 'refersTo' | 'onDelete'>

/** Columns that a table has because of its kind or its storage, without declaring them. */
const GENERAL_COLUMNS = {
  _id: {
    kind: 'integer',
    about:
      'Internal: number of the row, used by other tables of the file. It changes when the file is rebuilt.',
    nullMeaning: NEVER_NULL,
    example: '17',
  },
  _first_seen_at: {
    kind: 'timestamp',
    about: 'When the row was first stored.',
    nullMeaning: NEVER_NULL,
    example: INSTANT,
  },
  _synced_at: {
    kind: 'timestamp',
    about:
      'When the stored content last changed, including a text that was read later. A row that did not change is not rewritten.',
    nullMeaning: NEVER_NULL,
    example: INSTANT,
  },
  _changed_at: {
    kind: 'timestamp',
    about:
      'When a value was last replaced or removed. A first value, such as a text that is read for the first time, completes the row and does not count.',
    nullMeaning: 'No value was ever replaced or removed.',
    example: INSTANT,
  },
  _deleted_at: {
    kind: 'timestamp',
    about: 'When the deletion was confirmed: the API no longer publishes the row.',
    nullMeaning: 'The row is live.',
    example: INSTANT,
  },
  _extra: {
    kind: 'json',
    about:
      'JSON object of fields that the API sent and that have no column here, and of values that do not fit their column.',
    nullMeaning: 'There are none, or they were purged.',
    example: '{"new_field":"x"}',
  },
} satisfies Readonly<Record<string, General>>

/** The participants of e-mails, merged from those of the copies. */
const MERGED_PEOPLE = 'message_participants'

type GeneralName = keyof typeof GENERAL_COLUMNS

export function resourceTables(): DescribedTable[] {
  return [...TABLES.values()].map(placed => tableDescription(placed, { mayBePurged: true }))
}

/** Every table has a live view: without deleted rows and without the underscore columns. */
export function liveViews(): DescribedTable[] {
  // A withheld row is live, and its content is purged like that of a deleted row.
  return [...TABLES.values()].map(placed =>
    liveViewOf(tableDescription(placed, { mayBePurged: placed.table.openWhen !== undefined })),
  )
}

function liveViewOf(table: DescribedTable): DescribedTable {
  const columns = table.columns.flatMap(column =>
    column.name.startsWith('_') ? [] : [{ ...column, onDelete: 'row removed' as const }],
  )
  return {
    ...table,
    name: `live_${table.name}`,
    form: 'view',
    recounts: [],
    about: `Live rows only. ${table.about}`,
    columns,
    sortable: table.sortable.filter(name => columns.some(column => column.name === name)),
  }
}

/** How the rows of a table come and go, in a word or two for the documentation. */
export function rowLifecycle(placed: PlacedTable): string {
  const { table } = placed
  if (table.kind === 'entity') return 'Entity'
  if (table.name === 'crm_record_changes') return 'History'
  if (table.name === MERGED_PEOPLE) return 'Merged with its e-mail'
  if (table.kind === 'link') return 'Separate list'
  const owner = tableOfOwner(placed)
  return owner === undefined ? 'Child' : `Child of \`${owner}\``
}

interface Contents {
  /** Whether the table or view may have rows whose content was purged. */
  mayBePurged: boolean
}

function tableDescription(placed: PlacedTable, contents: Contents): DescribedTable {
  const { table, resource } = placed
  const before = table.storage === 'rowid' ? (['_id'] as const) : []
  const after = afterColumns(table)
  const newestBy = table.indices.flatMap(
    ({ columns: [first = ''] }) => /^(\w+) DESC$/.exec(first)?.[1] ?? [],
  )[0]
  const label = LABELS.find(name => Object.hasOwn(table.columns, name))
  return {
    name: table.name,
    form: 'table',
    area: resourceNamed(resource).area,
    about: table.about,
    columns: [
      ...before.map(column => generalColumn(placed, column)),
      ...Object.entries(table.columns).map(([name, column]) =>
        declaredColumn(placed, name, column, contents),
      ),
      ...after.map(column => generalColumn(placed, column)),
    ],
    sortable: [...new Set([table.key[0] ?? '', ...table.indices.map(leading)])],
    ...(newestBy === undefined ? {} : { newestBy }),
    ...(table.kind === 'entity' && label !== undefined ? { label } : {}),
    recounts: RECOUNTS[table.name] ?? [],
  }
}

/** The tables that are merged from copies have the copies' numbers of rows, and a text that is `present` is stored. */
const RECOUNTS: Readonly<Record<string, readonly Recount[]>> = {
  meetings: [
    {
      about: 'a meeting whose `transcript_state` is `present` has rows of `transcript_entries`',
      key: ['id'],
      ours: "SELECT id FROM meetings WHERE transcript_state = 'present'",
      base: `SELECT id FROM meetings
        WHERE transcript_state = 'present' AND id IN (SELECT meeting_id FROM transcript_entries)`,
    },
  ],
  messages: [
    {
      about: 'an e-mail whose `text_state` is `present` has a text',
      key: ['header_message_id'],
      ours: "SELECT header_message_id FROM messages WHERE text_state = 'present'",
      base: "SELECT header_message_id FROM messages WHERE text_state = 'present' AND text IS NOT NULL",
    },
    {
      about: '`copy_count` is the number of live rows of `message_copies`',
      key: ['header_message_id'],
      values: ['copy_count'],
      ours: 'SELECT header_message_id, copy_count FROM messages WHERE _deleted_at IS NULL',
      base: 'SELECT mail_id, count(*) FROM message_copies WHERE _deleted_at IS NULL GROUP BY 1',
    },
  ],
  [MERGED_PEOPLE]: [
    {
      about:
        'the number of rows is that of the distinct rows of `message_copy_participants` whose owner is live',
      key: ['header_message_id'],
      values: ['rows'],
      ours: 'SELECT header_message_id, count(*) FROM message_participants GROUP BY 1',
      base: `SELECT m, count(*) FROM (SELECT DISTINCT o.mail_id AS m, p.role, p.handle
        FROM message_copies o JOIN message_copy_participants p ON p.message_id = o.id
        WHERE o._deleted_at IS NULL AND p.role IS NOT NULL AND p.handle IS NOT NULL) GROUP BY 1`,
    },
  ],
}

const LABELS = ['title', 'subject', 'label', 'name']

const leading = ({ columns: [first = ''] }: Table['indices'][number]): string => first.replace(/ DESC$/, '')

function afterColumns(table: Table): readonly GeneralName[] {
  if (table.kind === 'entity') return ['_first_seen_at', '_synced_at', '_changed_at', '_deleted_at', '_extra']
  return table.kind === 'child' ? ['_extra'] : []
}

function generalColumn(placed: PlacedTable, name: GeneralName): DescribedColumn {
  const general = { isKey: false, source: null, unit: null, refersTo: [], ...GENERAL_COLUMNS[name] }
  const onDelete = name === '_deleted_at' ? 'set' : onDeleteOf(placed, { content: name === '_extra' })
  return { name, ...general, onDelete }
}

function declaredColumn(
  placed: PlacedTable,
  name: string,
  column: Column,
  contents: Contents,
): DescribedColumn {
  return {
    name,
    kind: column.kind,
    isKey: placed.table.key.includes(name),
    about: column.about,
    nullMeaning: nullMeaningOf(placed.table, column, contents),
    ...(placed.table.nullMeans !== undefined && column.nullMeans === undefined
      ? { nullMeaningIsTables: true }
      : {}),
    source: sourceOf(placed, name),
    unit: column.unit ?? null,
    example: exampleOf(placed, name),
    refersTo: [...(column.refersTo ?? []), ...referenceToOwner(placed, column)],
    resolves: column.resolves ?? isOwnersKey(placed, name, column),
    isContent: isContent(placed.table, column),
    onDelete: onDeleteOf(placed, column),
    ...(column.values === undefined ? {} : { values: column.values }),
  }
}

function nullMeaningOf(
  table: Table,
  { notNull, nullMeans, content }: Column,
  { mayBePurged }: Contents,
): string {
  if (notNull) return NEVER_NULL
  const stated = nullMeans ?? table.nullMeans ?? MISSING
  // When a whole table is content, a purge removes rows and leaves no NULL.
  return content && !table.content && mayBePurged ? orPurged(stated) : stated
}

/**
 * Whether the column has the owner's key. The owner's row is stored first and stays when deleted, so each value has its
 * row.
 */
function isOwnersKey({ table, parent }: PlacedTable, name: string, { source }: Column): boolean {
  return Object.hasOwn(table.livesWith?.on ?? {}, name) || (parent !== undefined && source.from === 'parent')
}

/**
 * The rows of an entity stay when they are deleted, and so do the rows that belong to them, until the content is
 * purged. Only associations and rows merged from live rows are removed at once.
 */
function onDeleteOf({ table }: PlacedTable, column: Parameters<typeof valueWhenPurged>[0]): ValueOnDelete {
  if (table.kind === 'link' && isRemovedAtOnce(table)) return 'row removed'
  if (table.content) return 'row purged'
  const value = valueWhenPurged(column)
  return value === undefined ? 'kept' : value === 'NULL' ? 'purged' : 'reset'
}

const isRemovedAtOnce = ({ name }: Table): boolean =>
  name === MERGED_PEOPLE ||
  CATALOG.some(({ tables }) => tables.some(({ cascades }) => cascades.some(({ table }) => table === name)))

/**
 * Whether the column is content. In a table that is content as a whole, columns that only identify the row are not
 * content.
 */
function isContent(table: Table, { content, source, hasIds, refersTo, values }: Column): boolean {
  if (content || !table.content) return content ?? false
  const isPlace = ['parent', 'position', 'request'].includes(source.from)
  return !(isPlace || hasIds || refersTo !== undefined || values !== undefined)
}

function referenceToOwner({ parent }: PlacedTable, { source }: Column): string[] {
  return parent && source.from === 'parent' ? [`${parent.name}.${source.column}`] : []
}

/**
 * The value of a column in the made-up example payloads of the declarations, in its stored form, as text; null where no
 * payload has the value.
 */
function exampleOf(placed: PlacedTable, name: string): string | null {
  const column = columnOf(placed, name)
  if (column.example !== undefined) return column.example
  const { source } = column
  if (source.from === 'position') return '0'
  if (source.from === 'parent') return valueOfOwner(placed, owner => exampleOf(owner, source.column))
  const path = 'path' in source ? source.path : undefined
  if (path === undefined) return null
  const value = rowsOf(placed)
    .map(row => valueAt(row, path))
    .find(known => known !== undefined && known !== null)
  return value === undefined ? null : asStored(value, column)
}

/** The API field: names joined by dots, `[]` after each list in the path; null for values that parley sets. */
function sourceOf(placed: PlacedTable, name: string): string | null {
  const { apiField, source } = columnOf(placed, name)
  if (apiField !== undefined) return apiField
  const list = listPath(placed)
  if (source.from === 'position') return list
  if (source.from === 'parent') return valueOfOwner(placed, owner => sourceOf(owner, source.column))
  if (!('path' in source) || source.path === undefined) return null
  if (childIn(placed)?.items === 'scalar') return list
  return [...(placed.table.kind === 'child' ? [list] : []), ...source.path].join('.')
}

/** The table that the rows belong to: the parent, or the table in `livesWith`. */
function tableOfOwner({ table, parent }: PlacedTable): string | undefined {
  return parent?.name ?? table.livesWith?.table
}

function columnOf({ table }: PlacedTable, name: string): Column {
  const column = table.columns[name]
  if (!column) throw new TypeError(`${table.name} declares no column ${name}`)
  return column
}

function valueOfOwner(placed: PlacedTable, read: (owner: PlacedTable) => string | null): string | null {
  const owner = TABLES.get(tableOfOwner(placed) ?? '')
  return owner ? read(owner) : null
}

function childIn({ table, parent }: PlacedTable): Child | undefined {
  return parent?.children.find(child => child.table.name === table.name)
}

/** Path of the list whose items are the rows, such as `attendees[].teams[]`; `[]` where the answer is the list. */
function listPath(placed: PlacedTable): string {
  const parent = placed.parent && TABLES.get(placed.parent.name)
  const own = `${childIn(placed)?.list.join('.') ?? ''}[]`
  return parent?.parent ? `${listPath(parent)}.${own}` : own
}

/** The table's rows in the example payloads of its resource. */
function rowsOf(placed: PlacedTable): readonly unknown[] {
  const parent = placed.parent && TABLES.get(placed.parent.name)
  if (!parent) return Object.values(resourceNamed(placed.resource).example)
  const child = childIn(placed)
  const items = rowsOf(parent)
    .map(row => valueAt(row, child?.list ?? []))
    .flatMap(list => (Array.isArray(list) ? (list as unknown[]) : []))
  return child?.items === 'scalar' ? items.map(value => ({ value })) : items
}

function valueAt(row: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, step) => fieldsOf(value).get(step), row)
}

function fieldsOf(value: unknown): ReadonlyMap<string, unknown> {
  return new Map(typeof value === 'object' && value !== null ? Object.entries(value) : [])
}

function asStored(value: unknown, { kind, tuple }: Column): string {
  if (kind === 'boolean') return value === true ? '1' : '0'
  if (kind === 'timestamp') return canonicalInstant(String(value)) ?? String(value)
  if (kind !== 'json') return String(value)
  if (tuple === undefined || !Array.isArray(value)) return JSON.stringify(value)
  return JSON.stringify((value as unknown[]).map(item => tuple.map(field => valueAt(item, [field]))))
}
