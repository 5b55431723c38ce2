import type { ColumnKind } from '../resource.ts'

/** A table or view of the warehouse as analysts are told of it, and how each of its facts is worded. Pure. */

export type DescribedKind = ColumnKind | 'any'

export interface DescribedColumn {
  name: string
  kind: DescribedKind
  isKey: boolean
  /** What the value means, as a sentence. */
  about: string
  /** What NULL means, as a sentence. */
  nullMeaning: string
  /** That it means the same in most columns of its table, which says it of itself. */
  nullIsTold?: true
  /** People type these values into a CRM: a value may not fit the kind. */
  mayMisfit?: boolean
  /** Field of the API that the value comes from, with `[]` for every list on the way; null for parley's own. */
  source: string | null
  /** Null where the value is no quantity; `not stated` where the API does not say. */
  unit: string | null
  /** A made-up value as it is stored. */
  example: string | null
  /** `table.column`: whose rows the value names. */
  refersTo: readonly string[]
}

/** The part of the warehouse that a table belongs to. */
export type Area = 'people' | 'timeline' | 'mail' | 'meetings' | 'crm' | 'service' | 'sync' | 'dictionary'

export interface DescribedTable {
  name: string
  form: 'table' | 'view'
  area: Area
  /** What a row is, as a sentence. */
  about: string
  columns: readonly DescribedColumn[]
  /** Columns that are cheap to sort by: those that lead a key or an index. */
  sortable: readonly string[]
  /** The column by which the newest rows are found first. */
  newestBy?: string
  /** The column that names a row to people. */
  label?: string
}

export const NEVER_NULL = 'Never NULL.'
export const MISSING = 'The API sent null or nothing.'

export const MISSING_OR_MISFIT =
  'The API sent null or nothing, or a value that does not fit; that one is in `crm_records.fields`.'

/** Meanings of NULL that hold for so many columns that they are told once. */
const USUAL: readonly string[] = [NEVER_NULL, MISSING, orErased(MISSING), MISSING_OR_MISFIT]

/** Ends with a full stop, as most are declared. */
export function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`
}

/** For what people wrote or said, and rows that may have been withdrawn a while ago. */
export function orErased(nullMeaning: string): string {
  return `${nullMeaning.replace(/\.$/, '')}, or it was erased after its withdrawal.`
}

/** What a column means, and whose rows it names where that is not said in so many words. */
export function meaning({ about, refersTo }: DescribedColumn): string {
  const unsaid = refersTo.map(target => `\`${target}\``).filter(target => !about.includes(target))
  return unsaid.length === 0 ? sentence(about) : `${sentence(about)} Joins ${unsaid.join(' or ')}.`
}

/** That, its unit, and what NULL means where that is not what it usually does: one paragraph. */
export function fullMeaning(column: DescribedColumn): string {
  const { unit, nullMeaning, nullIsTold } = column
  const parts = [meaning(column)]
  if (unit !== null) parts.push(`Unit: ${unit}.`)
  if (!nullIsTold && !USUAL.includes(nullMeaning)) parts.push(`NULL: ${lowerFirst(nullMeaning)}`)
  return parts.join(' ')
}

/** What follows a colon begins small, but for what is all capitals. */
function lowerFirst(text: string): string {
  return /^[A-Z][a-z ]/.test(text) ? `${text.charAt(0).toLowerCase()}${text.slice(1)}` : text
}

/** Ends where it should, whatever the text holds. */
export function sqlComment(text: string): string {
  return `/* ${text.replaceAll('*/', '* /').replace(/\s+/g, ' ')} */`
}

/** What is said of a column by hand, where no declaration has it: `[kind, about]`, and what else there is to say. */
export type Line = readonly [
  kind: DescribedKind,
  about: string,
  more?: Partial<Omit<DescribedColumn, 'name'>>,
]

/** A table or view described by hand. */
export function described(
  table: Omit<DescribedTable, 'columns' | 'sortable'> & Partial<Pick<DescribedTable, 'sortable'>>,
  lines: Readonly<Record<string, Line>>,
): DescribedTable {
  const columns = Object.entries(lines).map(([name, [kind, about, more]]) => ({
    name,
    kind,
    about,
    isKey: false,
    nullMeaning: NEVER_NULL,
    source: null,
    unit: null,
    example: null,
    refersTo: [],
    ...more,
  }))
  return { sortable: [], ...table, columns }
}
