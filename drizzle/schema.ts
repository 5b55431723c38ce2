import { getTableColumns, type SQL, sql } from 'drizzle-orm'
import {
  type AnySQLiteColumn,
  foreignKey,
  index,
  integer,
  primaryKey,
  real,
  type SQLiteTableExtraConfigValue,
  sqliteTable,
  text,
  uniqueIndex,
} from 'drizzle-orm/sqlite-core'
import { type PlacedTable, TABLES } from '../src/catalog/catalog.ts'
import type { Column, ColumnKind, Table } from '../src/catalog/resource.ts'

/**
 * The drizzle schema from which migrations are generated: the catalogue's tables, then the sync state's.
 * Only `npm run schema` reads this file; the program itself runs the migrations and prepared statements.
 */

const BUILDERS: Readonly<
  Record<ColumnKind, (name: string) => ReturnType<typeof text | typeof integer | typeof real>>
> = {
  text: name => text(name),
  timestamp: name => text(name),
  date: name => text(name),
  json: name => text(name),
  integer: name => integer(name),
  boolean: name => integer(name),
  real: name => real(name),
}

function build(name: string, column: Column) {
  const plain = BUILDERS[column.kind](name)
  const builder =
    column.computed === undefined
      ? plain
      : plain.generatedAlwaysAs(sql.raw(column.computed), { mode: 'virtual' })
  const filled = column.default === undefined ? builder : builder.default(sql.raw(column.default))
  return column.notNull ? filled.notNull() : filled
}

const ENTITY_COLUMNS = {
  _first_seen_at: () => text('_first_seen_at').notNull(),
  _synced_at: () => text('_synced_at').notNull(),
  _changed_at: () => text('_changed_at'),
  _deleted_at: () => text('_deleted_at'),
}

type Builder = ReturnType<typeof build>

function ownColumns(table: Table): Record<string, Builder> {
  return {
    ...(table.storage === 'rowid' ? { _id: integer('_id').primaryKey() } : {}),
    ...Object.fromEntries(Object.entries(table.columns).map(([name, column]) => [name, build(name, column)])),
    ...(table.kind === 'entity'
      ? Object.fromEntries(Object.entries(ENTITY_COLUMNS).map(([name, make]) => [name, make()]))
      : {}),
    ...(table.kind === 'link' ? {} : { _extra: text('_extra') }),
  }
}

type Columns = Record<string, AnySQLiteColumn>
type Pick = (names: readonly string[]) => [AnySQLiteColumn, ...AnySQLiteColumn[]]

function picker(columns: Columns): Pick {
  return names => {
    const [first, ...rest] = names.map(name => {
      const column = columns[name]
      if (!column) throw new TypeError(`no column ${name}`)
      return column
    })
    if (!first) throw new TypeError('no columns')
    return [first, ...rest]
  }
}

/** Columns of an index, some of them descending. */
function ordered(
  columns: Columns,
  names: readonly string[],
): [SQL | AnySQLiteColumn, ...(SQL | AnySQLiteColumn)[]] {
  const pick = picker(columns)
  const [first, ...rest] = names.map(name => {
    const [column] = pick([name.replace(/ DESC$/, '')])
    return name.endsWith(' DESC') ? sql`${column} DESC` : column
  })
  if (!first) throw new TypeError('an index without columns')
  return [first, ...rest]
}

type Built = ReturnType<typeof sqliteTable>

function buildTable({ table, parent }: PlacedTable, built: ReadonlyMap<string, Built>): Built {
  return sqliteTable(table.name, ownColumns(table), columns => {
    const pick = picker(columns as Columns)
    const constraints: SQLiteTableExtraConfigValue[] = [
      table.storage === 'rowid'
        ? uniqueIndex(`${table.name}_key`).on(...pick(table.key))
        : primaryKey({ columns: pick(table.key) }),
    ]
    for (const { name, columns: on, where } of table.indices) {
      const declared = index(name).on(...ordered(columns as Columns, on))
      constraints.push(where === undefined ? declared : declared.where(sql.raw(where)))
    }
    if (table.kind === 'entity') {
      const deleted = index(`${table.name}_deleted`).on(...pick(['_deleted_at']))
      constraints.push(deleted.where(sql.raw('_deleted_at IS NOT NULL')))
    }
    const reference = parent && parentReference(table, parent, built, pick)
    if (reference) constraints.push(reference)
    return constraints
  })
}

/** Inside one payload rows hang on each other; links across resources stay soft, since either side may come first. */
function parentReference(table: Table, parent: Table, built: ReadonlyMap<string, Built>, pick: Pick) {
  const inherited = Object.entries(table.columns).flatMap(([name, { source }]) =>
    source.from === 'parent' ? [{ name, column: source.column }] : [],
  )
  const target = built.get(parent.name)
  if (inherited.length === 0 || !target) return undefined
  return foreignKey({
    name: `${table.name}_parent`,
    columns: pick(inherited.map(({ name }) => name)),
    foreignColumns: picker(getTableColumns(target))(inherited.map(({ column }) => column)),
  }).onDelete('cascade')
}

function buildCatalogue(): Map<string, Built> {
  const built = new Map<string, Built>()
  for (const placed of TABLES.values()) built.set(placed.table.name, buildTable(placed, built))
  return built
}

const syncMeta = sqliteTable('sync_meta', { key: text('key').primaryKey(), value: text('value') })

const syncResources = sqliteTable('sync_resources', {
  resource: text('resource').primaryKey(),
  round: integer('round').notNull().default(0),
  roundOpen: integer('round_open').notNull().default(0),
  roundStartedAt: text('round_started_at'),
  firstCompleteAt: text('first_complete_at'),
  freshAsOf: text('fresh_as_of'),
  lastSuccessAt: text('last_success_at'),
  nextRunAt: text('next_run_at'),
  completeAsOf: text('complete_as_of'),
  unavailableSince: text('unavailable_since'),
  failingSince: text('failing_since'),
  reason: text('reason'),
  heldSince: text('held_since'),
  heldRound: integer('held_round'),
  deletedSince: text('deleted_since'),
  deletedInRound: integer('deleted_in_round').notNull().default(0),
})

const syncSegments = sqliteTable(
  'sync_segments',
  {
    id: integer('id').primaryKey(),
    feed: text('feed').notNull(),
    scope: text('scope').notNull().default(''),
    fromAt: text('from_at'),
    toAt: text('to_at'),
    query: text('query'),
    cursor: text('cursor'),
    passStartedAt: text('pass_started_at'),
    passRound: integer('pass_round'),
    pages: integer('pages').notNull().default(0),
    rows: integer('rows').notNull().default(0),
    edgeAt: text('edge_at'),
    edgeKeys: text('edge_keys'),
    totalSize: integer('total_size'),
    restarts: integer('restarts').notNull().default(0),
    listedAt: text('listed_at'),
    listedRound: integer('listed_round').notNull().default(0),
    closed: integer('closed').notNull().default(0),
    unavailableSince: text('unavailable_since'),
    attempts: integer('attempts').notNull().default(0),
    retryAt: text('retry_at'),
    passMs: integer('pass_ms'),
  },
  columns => [index('sync_segments_by_feed').on(columns.feed, columns.scope, columns.toAt)],
)

const syncSeen = sqliteTable(
  'sync_seen',
  { feed: text('feed').notNull(), scope: text('scope').notNull(), key: text('key').notNull() },
  columns => [primaryKey({ columns: [columns.feed, columns.scope, columns.key] })],
)

const syncTasks = sqliteTable(
  'sync_tasks',
  {
    feed: text('feed').notNull(),
    scope: text('scope').notNull().default(''),
    key: text('key').notNull(),
    sortAt: text('sort_at'),
    dueAt: text('due_at').notNull(),
    round: integer('round').notNull().default(0),
    attempts: integer('attempts').notNull().default(0),
    deadline: text('deadline'),
    waiting: integer('waiting').notNull().default(0),
  },
  columns => [
    primaryKey({ columns: [columns.feed, columns.scope, columns.key] }),
    index('sync_tasks_by_round').on(columns.feed, columns.round),
    index('sync_tasks_by_due').on(columns.feed, columns.dueAt),
    // Most rows are done until their next time; `sync_status` counts the others.
    index('sync_tasks_open')
      .on(columns.feed, columns.round, columns.waiting, columns.deadline)
      .where(sql.raw('waiting OR round = 0')),
  ],
)

const syncAbsences = sqliteTable(
  'sync_absences',
  {
    table: text('table_name').notNull(),
    scope: text('scope').notNull().default(''),
    key: text('key').notNull(),
    missingSince: text('missing_since').notNull(),
    confirmed: integer('confirmed').notNull().default(0),
    means: text('means').notNull().default('absent'),
  },
  columns => [primaryKey({ columns: [columns.table, columns.scope, columns.key] })],
)

const syncRuns = sqliteTable(
  'sync_runs',
  {
    id: integer('id').primaryKey(),
    resource: text('resource').notNull(),
    lane: text('lane').notNull(),
    startedAt: text('started_at').notNull(),
    endedAt: text('ended_at'),
    outcome: text('outcome'),
    requests: integer('requests').notNull().default(0),
    throttled: integer('throttled').notNull().default(0),
    rowsRead: integer('rows_read').notNull().default(0),
    rowsChanged: integer('rows_changed').notNull().default(0),
    rowsDeleted: integer('rows_deleted').notNull().default(0),
    error: text('error'),
  },
  columns => [
    index('sync_runs_by_resource').on(columns.resource, columns.startedAt),
    index('sync_runs_open').on(columns.id).where(sql.raw('ended_at IS NULL')),
  ],
)

const syncRejects = sqliteTable(
  'sync_rejects',
  {
    id: integer('id').primaryKey(),
    resource: text('resource').notNull(),
    item: text('item').notNull(),
    reason: text('reason').notNull(),
    firstSeenAt: text('first_seen_at').notNull(),
    lastSeenAt: text('last_seen_at').notNull(),
    resolvedAt: text('resolved_at'),
    feed: text('_feed').notNull(),
    scope: text('_scope').notNull().default(''),
    digest: text('_digest').notNull(),
  },
  columns => [uniqueIndex('sync_rejects_digest').on(columns.resource, columns.digest)],
)

/** What was withdrawn and still has its content, with when it was withdrawn. */
const syncErasures = sqliteTable(
  'sync_erasures',
  {
    table: text('table_name').notNull(),
    scope: text('scope').notNull().default(''),
    key: text('key').notNull(),
    withdrawnAt: text('withdrawn_at').notNull(),
  },
  columns => [
    primaryKey({ columns: [columns.table, columns.scope, columns.key] }),
    index('sync_erasures_by_time').on(columns.withdrawnAt),
  ],
)

/** How long after they happened rows came to be known: a histogram, a row for each bucket. */
const syncArrivals = sqliteTable(
  'sync_arrivals',
  {
    resource: text('resource').notNull(),
    bucket: integer('bucket').notNull(),
    rows: integer('rows').notNull().default(0),
    longestMs: integer('longest_ms').notNull().default(0),
  },
  columns => [primaryKey({ columns: [columns.resource, columns.bucket] })],
)

/** What other processes ask of the one that writes. */
const syncRequests = sqliteTable('sync_requests', {
  id: integer('id').primaryKey(),
  kind: text('kind').notNull(),
  resource: text('resource').notNull(),
  askedAt: text('asked_at').notNull(),
  doneAt: text('done_at'),
})

/** Every table by name, catalogue first. */
/** What every column means, filled from the declarations when the program's version changes. */
const dataDictionary = sqliteTable(
  'data_dictionary',
  {
    tableName: text('table_name').notNull(),
    columnName: text('column_name').notNull(),
    position: integer('position').notNull(),
    type: text('type').notNull(),
    nullMeaning: text('null_meaning'),
    description: text('description').notNull(),
    sourceField: text('source_field'),
    unit: text('unit'),
    example: text('example'),
  },
  table => [primaryKey({ columns: [table.tableName, table.columnName] })],
)

/** The questions that come with the program, filled from their files when the program's version changes. */
const parleyQuestions = sqliteTable('parley_questions', {
  name: text('name').primaryKey().notNull(),
  question: text('question').notNull(),
  parameters: text('parameters').notNull(),
  sql: text('sql').notNull(),
  duckdbSql: text('duckdb_sql').notNull(),
})

export const SCHEMA: Readonly<Record<string, Built>> = {
  ...Object.fromEntries(buildCatalogue()),
  ...Object.fromEntries([
    ['sync_meta', syncMeta],
    ['sync_resources', syncResources],
    ['sync_segments', syncSegments],
    ['sync_seen', syncSeen],
    ['sync_tasks', syncTasks],
    ['sync_absences', syncAbsences],
    ['sync_runs', syncRuns],
    ['sync_rejects', syncRejects],
    ['sync_erasures', syncErasures],
    ['sync_arrivals', syncArrivals],
    ['sync_requests', syncRequests],
    ['data_dictionary', dataDictionary],
    ['parley_questions', parleyQuestions],
  ] as const),
}

/** Tables that are stored by their key alone; drizzle cannot say so, the migration does. */
export const CLUSTERED: ReadonlySet<string> = new Set([
  ...[...TABLES.values()].filter(({ table }) => table.storage === 'clustered').map(({ table }) => table.name),
  'sync_meta',
  'sync_resources',
  'sync_seen',
  'sync_tasks',
  'sync_absences',
  'sync_erasures',
  'sync_arrivals',
  'data_dictionary',
])
