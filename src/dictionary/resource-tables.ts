import { CATALOG, type PlacedTable, TABLES } from '../catalog.ts'
import type { Column, ResourceName, Table } from '../resource.ts'
import {
  type Area,
  type DescribedColumn,
  type DescribedTable,
  MISSING,
  NEVER_NULL,
  orErased,
} from './described.ts'
import { exampleOf, ownerOf, sourceOf } from './examples.ts'

/** The tables of the resources and their `live_` views, as their declarations describe them. */

const AREAS: Readonly<Record<ResourceName, Area>> = {
  members: 'people',
  teams: 'people',
  collections: 'meetings',
  collection_meetings: 'meetings',
  activities: 'timeline',
  messages: 'mail',
  message_bodies: 'mail',
  meetings: 'meetings',
  transcripts: 'meetings',
  playbook_results: 'meetings',
  playbooks: 'meetings',
  crm_objects: 'crm',
  crm_records: 'crm',
  crm_record_links: 'crm',
  access_logs: 'service',
  bot_definition: 'service',
  integrations: 'service',
}

const INSTANT = '2026-03-04T05:06:07.123Z'

type General = Omit<DescribedColumn, 'name' | 'isKey' | 'source' | 'unit' | 'refersTo'>

/** Columns that tables have by their kind alone. */
export const GENERAL_COLUMNS = {
  _id: {
    kind: 'integer',
    about:
      'Internal: number of the row, which other parts of the file point at. It changes when the file is made anew.',
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
      'When what is stored of it last changed, also by a text that was read later; a row that did not change is not rewritten.',
    nullMeaning: NEVER_NULL,
    example: INSTANT,
  },
  _changed_at: {
    kind: 'timestamp',
    about:
      'When a value of it was last replaced by another or taken away. What completes the row is no change: a value where there was none, a text that is read for the first time.',
    nullMeaning: 'None ever was.',
    example: INSTANT,
  },
  _deleted_at: {
    kind: 'timestamp',
    about: 'When its absence was confirmed: the API publishes it no longer.',
    nullMeaning: 'It is live.',
    example: INSTANT,
  },
  _extra: {
    kind: 'json',
    about:
      'JSON object of fields that the API sent and that have no column here, and of values that do not fit their column.',
    nullMeaning: 'There are none, or they were erased after the withdrawal.',
    example: '{"new_field":"x"}',
  },
} satisfies Readonly<Record<string, General>>

type GeneralName = keyof typeof GENERAL_COLUMNS

export function resourceTables(): DescribedTable[] {
  return [...TABLES.values()].map(placed => describe(placed, { mayBeErased: true }))
}

/** Every table has one: without what was withdrawn and without the underscore columns. */
export function liveViews(): DescribedTable[] {
  // What is withheld is erased like what was withdrawn, and its row is live.
  return [...TABLES.values()].map(placed =>
    liveViewOf(describe(placed, { mayBeErased: placed.table.openWhen !== undefined })),
  )
}

function liveViewOf(table: DescribedTable): DescribedTable {
  const columns = table.columns.filter(({ name }) => !name.startsWith('_'))
  return {
    ...table,
    name: `live_${table.name}`,
    form: 'view',
    about: `Live rows only. ${table.about}`,
    columns,
    sortable: table.sortable.filter(name => columns.some(column => column.name === name)),
  }
}

/** What it means for rows that they are in this table: how they come and go. */
export function kindOf(placed: PlacedTable): string {
  const { table } = placed
  if (table.kind === 'entity') return 'Entity'
  if (CATALOG.some(({ history }) => history?.into === table.name)) return 'History'
  if (CATALOG.some(({ derivation }) => derivation?.parts.into === table.name)) return 'Merged with its e-mail'
  if (table.kind === 'link') return 'List of its own'
  const owner = ownerOf(placed)
  return owner === undefined ? 'Child' : `Child of \`${owner}\``
}

interface Fate {
  /** Whether rows are there whose content was erased. */
  mayBeErased: boolean
}

function describe(placed: PlacedTable, fate: Fate): DescribedTable {
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
    area: AREAS[resource],
    about: table.about,
    columns: [
      ...before.map(general),
      ...Object.entries(table.columns).map(([name, column]) => declared(placed, name, column, fate)),
      ...after.map(general),
    ],
    sortable: [...new Set([table.key[0] ?? '', ...table.indices.map(leading)])],
    ...(newestBy === undefined ? {} : { newestBy }),
    ...(table.kind === 'entity' && label !== undefined ? { label } : {}),
  }
}

const LABELS = ['title', 'subject', 'label', 'name']

const leading = ({ columns: [first = ''] }: Table['indices'][number]): string => first.replace(/ DESC$/, '')

function afterColumns(table: Table): readonly GeneralName[] {
  if (table.kind === 'entity') return ['_first_seen_at', '_synced_at', '_changed_at', '_deleted_at', '_extra']
  return table.kind === 'child' ? ['_extra'] : []
}

function general(name: GeneralName): DescribedColumn {
  return { name, isKey: false, source: null, unit: null, refersTo: [], ...GENERAL_COLUMNS[name] }
}

function declared(placed: PlacedTable, name: string, column: Column, fate: Fate): DescribedColumn {
  return {
    name,
    kind: column.kind,
    isKey: placed.table.key.includes(name),
    about: column.about,
    nullMeaning: nullMeaningOf(placed.table, column, fate),
    ...(placed.table.nullMeans !== undefined && column.nullMeans === undefined ? { nullIsTold: true } : {}),
    source: sourceOf(placed, name),
    unit: column.unit ?? null,
    example: exampleOf(placed, name),
    refersTo: [...(column.refersTo ?? []), ...referenceToOwner(placed, column)],
  }
}

function nullMeaningOf(table: Table, { notNull, nullMeans, content }: Column, { mayBeErased }: Fate): string {
  if (notNull) return NEVER_NULL
  const said = nullMeans ?? table.nullMeans ?? MISSING
  // Of a table that is content in itself whole rows are erased.
  return content && !table.content && mayBeErased ? orErased(said) : said
}

function referenceToOwner({ above }: PlacedTable, { source }: Column): string[] {
  return above && source.from === 'parent' ? [`${above.name}.${source.column}`] : []
}
