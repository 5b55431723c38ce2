import type { ValueOnDelete } from '../catalog/bookkeeping/value-on-delete.ts'
import type { ResourceArea } from '../declare/resource.ts'
import type { ColumnKind } from '../declare/table.ts'

/** The description of a table or view for analysts, and the wording of its facts. Pure. */

export type DescribedKind = ColumnKind | 'any'

export interface DescribedColumn {
  name: string
  kind: DescribedKind
  isKey: boolean
  /** What the value means, as a sentence. */
  about: string
  /** What NULL means, as a sentence. */
  nullMeaning: string
  /** Set where `nullMeaning` is the table's `nullMeans`: the table's own description explains it. */
  nullMeaningIsTables?: true
  /** True for CRM fields: people type their values, so a value may not fit the kind. */
  mayMisfit?: boolean
  /** The API field of the value, with `[]` after each list in its path; null for values that parley sets. */
  source: string | null
  /** Null where the value is not a quantity; `not stated` where the API does not state it. */
  unit: string | null
  /** A made-up value in its stored form. */
  example: string | null
  /** `table.column` of the rows that the value identifies. */
  refersTo: readonly string[]
  /**
   * Whether each value is promised to have a row in `refersTo`. Values of other columns may name rows that are not
   * published or not read.
   */
  resolves?: boolean
  /** All values that the column may hold. */
  values?: readonly string[]
  /** What the column holds after its row was deleted at the source; null where rows are never deleted. */
  onDelete: ValueOnDelete | null
  /** True for values that say who people are or what they wrote or said. Findings never show such values. */
  isContent?: boolean
}

/** A test of a table: a query over the table must give the same rows as a query over the tables that it is made of. */
export interface Recount {
  /** What is compared, as it follows the table's name: `has one row for each live copy`. */
  about: string
  /** The first columns of both queries, which identify a row. */
  key: readonly string[]
  /** The columns that follow, which are compared. */
  values?: readonly string[]
  /** SQL over the table itself. */
  ours: string
  /** SQL over those other tables. */
  base: string
}

/** The topic that a table belongs to. */
export type Area = ResourceArea | 'reports' | 'sync' | 'dictionary'

export interface DescribedTable {
  name: string
  form: 'table' | 'view'
  area: Area
  /** What one row is, as a sentence. */
  about: string
  columns: readonly DescribedColumn[]
  /** Columns that are cheap to sort by: the first column of the key and of each index. */
  sortable: readonly string[]
  /** The column to sort by, descending, for the newest rows first. */
  newestBy?: string
  /** The column with the display name of a row. */
  label?: string
  /**
   * A query of the view needs a condition on this column: without one it is slow. So no test reads the view. Tests read
   * the tables below it.
   */
  selectBy?: string
  /** Tests of the rows against other tables. */
  recounts?: readonly Recount[]
}

export const NEVER_NULL = 'Never NULL.'
export const MISSING = 'The API sent null or nothing.'

export const MISSING_OR_MISFIT =
  'The API sent null or nothing, or a value that does not fit the column and is only in `crm_records.fields`.'

/** Meanings of NULL that most columns have. Such a meaning is explained once, not for each column. */
const USUAL: readonly string[] = [NEVER_NULL, MISSING, orPurged(MISSING), MISSING_OR_MISFIT]

/** The text with a full stop, unless it already ends a sentence. */
export function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`
}

/** The meaning of NULL in a column whose content is purged some time after the row is deleted or withheld. */
export function orPurged(nullMeaning: string): string {
  return `${nullMeaning.replace(/\.$/, '')}, or the value was purged.`
}

/** What a column means, and which columns it joins where `about` does not name them. */
export function meaning({ about, refersTo }: DescribedColumn): string {
  const unnamed = refersTo.map(target => `\`${target}\``).filter(target => !about.includes(target))
  return unnamed.length === 0 ? sentence(about) : `${sentence(about)} Joins ${unnamed.join(' or ')}.`
}

/** The meaning, the unit, and the meaning of NULL unless it is a usual one: one paragraph. */
export function fullMeaning(column: DescribedColumn): string {
  const { unit, nullMeaning, nullMeaningIsTables } = column
  const parts = [meaning(column)]
  if (unit !== null) parts.push(`Unit: ${unit}.`)
  if (!nullMeaningIsTables && !USUAL.includes(nullMeaning)) parts.push(`NULL: ${lowerFirst(nullMeaning)}`)
  return parts.join(' ')
}

/** A sentence as it follows a colon. A first word in capitals, such as `API`, stays. */
function lowerFirst(text: string): string {
  return /^[A-Z][a-z ]/.test(text) ? `${text.charAt(0).toLowerCase()}${text.slice(1)}` : text
}

/** An SQL comment. The text cannot end it early. */
export function sqlComment(text: string): string {
  return `/* ${text.replaceAll('*/', '* /').replace(/\s+/g, ' ')} */`
}

/** The description of a column that no resource declares. What is left out is as in most columns. */
export type ColumnLine = Pick<DescribedColumn, 'kind' | 'about'> & ColumnDetails
export type ColumnDetails = Partial<Omit<DescribedColumn, 'name'>>

export const column = (
  kind: DescribedKind,
  about: string,
  example: string,
  details: ColumnDetails = {},
): ColumnLine => ({ kind, about, example, ...details })

/** What a description has besides its columns. */
type LinedTable = Omit<DescribedTable, 'columns' | 'sortable'> &
  Partial<Pick<DescribedTable, 'sortable'>> & {
    /** The value for columns without their own. Default: a row leaves a view, and no row of a table is deleted. */
    onDelete?: DescribedColumn['onDelete']
  }

/** The description of a table or view that no resource declares. */
export function tableFromLines(
  { onDelete, ...table }: LinedTable,
  lines: Readonly<Record<string, ColumnLine>>,
): DescribedTable {
  const columns = Object.entries(lines).map(([name, line]) => ({
    name,
    isKey: false,
    nullMeaning: NEVER_NULL,
    source: null,
    unit: null,
    example: null,
    refersTo: [],
    onDelete: onDelete === undefined ? (table.form === 'view' ? 'row removed' : null) : onDelete,
    ...line,
  }))
  return { sortable: [], ...table, columns }
}

const forReports =
  (form: DescribedTable['form']) =>
  (table: Omit<LinedTable, 'form' | 'area'>, lines: Readonly<Record<string, ColumnLine>>): DescribedTable =>
    tableFromLines({ ...table, form, area: 'reports' }, lines)

export const reportTable = forReports('table')
export const reportView = forReports('view')

/** The columns of a described table, all or those with these names, for a view that has them too. */
export const columnsOf = (
  tables: readonly DescribedTable[],
  table: string,
  names?: readonly string[],
): DescribedColumn[] =>
  tables
    .find(({ name }) => name === table)
    ?.columns.filter(({ name }) => names?.includes(name) ?? true)
    .map(column => ({ ...column, onDelete: column.onDelete && 'row removed' })) ?? []
