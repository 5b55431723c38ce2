import {
  type DescribedColumn,
  type DescribedKind,
  type DescribedTable,
  MISSING,
  MISSING_OR_MISFIT,
  NEVER_NULL,
} from './described-table.ts'

/** Descriptions of the typed CRM tables and their views, from the workspace's own metadata. */

export interface CrmObjectDescription {
  /** API name, such as `deal`. */
  name: string
  /** Display name. */
  label: string | null
  table: string
  liveView: string
  labelledView: string
  /** In the order of the table's columns. */
  fields: readonly CrmFieldDescription[]
}

export interface CrmFieldDescription {
  name: string
  label: string | null
  /** Type as the API names it. */
  type: string | null
  kind: DescribedKind
  column: string
  /** Name of the column in the labelled view. */
  labelledColumn: string
  /** Whether the value is the id of another row. */
  isRelation: boolean
  /** `table.column` of the rows that a relation's value identifies. */
  refersTo: readonly string[]
}

/** Three descriptions for each object: the typed table, its live view and its labelled view. Pure. */
export function describedCrmTables(object: CrmObjectDescription): DescribedTable[] {
  const { name, label, table, liveView, labelledView, fields } = object
  const subject = `Records of the CRM object \`${name}\`${label === null || label === name ? '' : ` (${label})`}`
  const general = { area: 'crm', sortable: ['id'] } as const
  const columns = fields.map(fieldColumn)
  const live = [ID, ...columns, ...TIMES]
  const labelled = fields.map(field => ({ ...labelledColumn(field), name: field.labelledColumn }))
  return [
    {
      ...general,
      name: table,
      form: 'table',
      about: `${subject}, with a column for each field. A value that does not fit its column is only in \`crm_records.fields\`.`,
      columns: [...live, DELETED],
      recounts: [
        {
          about: `it has the rows of \`crm_records\` of the object \`${name}\``,
          key: ['id'],
          values: ['_deleted_at'],
          ours: `SELECT id, _deleted_at FROM ${quoted(table, '"')}`,
          base: `SELECT id, _deleted_at FROM crm_records WHERE object = ${quoted(name, "'")}`,
        },
      ],
    },
    {
      ...general,
      name: liveView,
      form: 'view',
      about: `Live rows only. ${subject}.`,
      columns: leaving(live),
    },
    {
      ...general,
      name: labelledView,
      form: 'view',
      about: `Live rows only, with display names: those of fields as column names, those of related rows in place of ids. ${subject}.`,
      columns: leaving([ID, ...labelled, ...TIMES]),
    },
  ]
}

/** A quoted name. Names from the CRM may contain the quotation mark. */
const quoted = (name: string, mark: string): string => mark + name.replaceAll(mark, mark + mark) + mark

/** A relation shows the name of the related row in place of its id. */
function labelledColumn(field: CrmFieldDescription): DescribedColumn {
  if (!field.isRelation) return fieldColumn(field)
  const { about, ...column } = fieldColumn({ ...field, refersTo: [] })
  return { ...column, about: `${about} Name of the related row, or its id where no name is known.` }
}

function fieldColumn(field: CrmFieldDescription): DescribedColumn {
  const { label, type, kind, refersTo } = field
  const sentences = [
    `${label ?? field.name}.`,
    ...(type === null ? [] : [`The CRM’s type: ${type}.`]),
    ...(kind === 'any' ? ['A number, or text where a number would lose digits.'] : []),
    ...(kind === 'timestamp' ? ['A value that is not a date-time is stored as sent.'] : []),
    ...(kind === 'date' ? ['A value that is not a date is stored as sent.'] : []),
    ...refersTo.map(target => `Points at \`${target}\`.`),
  ]
  return {
    ...PLAIN,
    name: field.column,
    kind,
    mayMisfit: kind !== 'text',
    about: sentences.join(' '),
    nullMeaning: MISSING_OR_MISFIT,
    source: `fields.${field.name}`,
    unit: kind === 'any' ? 'not stated' : null,
    refersTo,
    onDelete: 'purged',
  }
}

const PLAIN = {
  isKey: false,
  source: null,
  unit: null,
  example: null,
  refersTo: [],
  onDelete: 'kept',
} as const

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
  resolves: true,
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
  timeColumn('updated_at', 'When the record was last changed.'),
]

const DELETED: DescribedColumn = {
  ...timeColumn('_deleted_at', 'When the deletion of the record was confirmed.'),
  nullMeaning: 'The row is live.',
  source: null,
  onDelete: 'set',
}

/** The columns as in a view, which a deleted record leaves. */
const leaving = (columns: readonly DescribedColumn[]): readonly DescribedColumn[] =>
  columns.map(column => ({ ...column, onDelete: 'row removed' }))
