import {
  type DescribedColumn,
  type DescribedKind,
  type DescribedTable,
  MISSING,
  MISSING_OR_MISFIT,
  NEVER_NULL,
} from './described.ts'

/** The typed tables of a workspace's CRM objects and the views over them, described by the workspace's own metadata. */

export interface CrmObjectTold {
  /** API name, such as `deal`. */
  name: string
  /** What people see. */
  label: string | null
  table: string
  liveView: string
  labelledView: string
  /** In the order of the table's columns. */
  fields: readonly CrmFieldTold[]
}

export interface CrmFieldTold {
  name: string
  label: string | null
  /** Type as the API names it. */
  type: string | null
  kind: DescribedKind
  column: string
  /** Name of the column in the labelled view. */
  shown: string
  /** Whether its value is the id of something else. */
  isRelation: boolean
  /** `table.column`: what a relation's value names. */
  refersTo: readonly string[]
}

/** Three for each object: the table, its live rows, and these under the names that people see. Pure. */
export function crmTables(object: CrmObjectTold): DescribedTable[] {
  const { name, label, table, liveView, labelledView, fields } = object
  const what = `Records of the CRM object \`${name}\`${label === null || label === name ? '' : ` (${label})`}`
  const general = { area: 'crm', sortable: ['id'] } as const
  const columns = fields.map(fieldColumn)
  const live = [ID, ...columns, ...TIMES]
  const labelled = fields.map(field => ({ ...labelledColumn(field), name: field.shown }))
  return [
    {
      ...general,
      name: table,
      form: 'table',
      about: `${what}, a column for each field. A value that does not fit its column is in \`crm_records.fields\` alone.`,
      columns: [...live, DELETED],
    },
    { ...general, name: liveView, form: 'view', about: `Live rows only. ${what}.`, columns: live },
    {
      ...general,
      name: labelledView,
      form: 'view',
      about: `Live rows only, as people see them: the names of fields, and of what they point at. ${what}.`,
      columns: [ID, ...labelled, ...TIMES],
    },
  ]
}

/** In place of an id stands the name of what it points at. */
function labelledColumn(field: CrmFieldTold): DescribedColumn {
  if (!field.isRelation) return fieldColumn(field)
  const { about, ...column } = fieldColumn({ ...field, refersTo: [] })
  return { ...column, about: `${about} Name of what it points at; the id where no name is known.` }
}

function fieldColumn(field: CrmFieldTold): DescribedColumn {
  const { label, type, kind, refersTo } = field
  const said = [
    `${label ?? field.name}.`,
    ...(type === null ? [] : [`The CRM’s type: ${type}.`]),
    ...(kind === 'any' ? ['A number; text where it has more digits than a number keeps.'] : []),
    ...(kind === 'timestamp' ? ['As it was sent where that is no date-time.'] : []),
    ...(kind === 'date' ? ['As it was sent where that is no day.'] : []),
    ...refersTo.map(target => `Points at \`${target}\`.`),
  ]
  return {
    ...PLAIN,
    name: field.column,
    kind,
    mayMisfit: kind !== 'text',
    about: said.join(' '),
    nullMeaning: MISSING_OR_MISFIT,
    source: `fields.${field.name}`,
    unit: kind === 'any' ? 'not stated' : null,
    refersTo,
  }
}

const PLAIN = { isKey: false, source: null, unit: null, example: null, refersTo: [] } as const

const INSTANT = '2026-03-04T05:06:07.123Z'

const ID: DescribedColumn = {
  ...PLAIN,
  name: 'id',
  kind: 'text',
  isKey: true,
  about: 'Record id (`crm_records.id`).',
  nullMeaning: NEVER_NULL,
  source: 'id',
  example: 'c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d',
  refersTo: ['crm_records.id'],
}

const timeColumn = (name: string, about: string): DescribedColumn => ({
  ...PLAIN,
  name,
  kind: 'timestamp',
  about,
  nullMeaning: MISSING,
  source: name,
  example: INSTANT,
})

const TIMES: readonly DescribedColumn[] = [
  timeColumn('created_at', 'When the record was created.'),
  timeColumn('updated_at', 'When it was last changed.'),
]

const DELETED: DescribedColumn = {
  ...timeColumn('_deleted_at', 'When its absence was confirmed.'),
  nullMeaning: 'It is live.',
  source: null,
}
