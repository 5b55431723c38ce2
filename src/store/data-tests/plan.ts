import {
  type DescribedColumn,
  type DescribedTable,
  NEVER_NULL,
  type Recount,
} from '../../dictionary/described-table.ts'
import { literal, quote } from '../database/sql.ts'

/**
 * Plans the tests of a warehouse's content from the descriptions of its tables and views. Pure: a table that is added
 * to the descriptions is tested without other code.
 */

/**
 * - `keys`: no two rows have the same key, and columns described as never NULL are not NULL;
 * - `values`: a column has only the values that are described;
 * - `references`: a value has its row in another table;
 * - `sums`: a table agrees with the tables that it is computed from.
 */
export type DataTestKind = 'keys' | 'values' | 'references' | 'sums'

export interface DataTest {
  kind: DataTestKind
  table: string
  columns: readonly string[]
  /** False when rows that fail the test are worth knowing, but no fault. */
  isPromised: boolean
  /** The tables and views that the test reads. */
  reads: readonly string[]
  /** The columns of `sql` that identify a row, without content of people. */
  named: readonly string[]
  /** What is expected: a text that follows the names of table and columns. */
  expected: string
  /** Selects the first rows that fail: the columns `named`, then the number of all rows that fail. */
  sql: string
  /** Set for a test of kind `keys` that looks for NULL. Its `sql` names the column after the key. */
  isNullTest?: true
  /** For a reference: SQL for the number of rows that have a value. */
  all?: string
}

/**
 * False for views of live rows and with labels, whose rows other tests see, and for views that are slow without a
 * condition.
 */
const isTested = ({ name, form, selectBy }: DescribedTable): boolean =>
  form === 'table' || !(selectBy !== undefined || /^(live|labelled)_/.test(name))

/** @param enforced by table: the key and the columns that SQLite itself keeps unique and not NULL */
export function dataTests(
  tables: readonly DescribedTable[],
  enforced: (table: string) => Enforced,
): DataTest[] {
  const byName = new Map(tables.map(table => [table.name, table]))
  return tables
    .filter(isTested)
    .flatMap(table => [
      ...keyTests(table, enforced(table.name)),
      ...table.columns.flatMap(column => valueTests(table, column)),
      ...referenceTests(table, byName),
      ...(table.recounts ?? []).map(recount => recountTest(table, recount)),
    ])
}

export interface Enforced {
  /** Each set of columns that is unique, sorted and joined by commas. */
  unique: ReadonlySet<string>
  notNull: ReadonlySet<string>
}

const keyOf = ({ columns }: DescribedTable): readonly DescribedColumn[] =>
  columns.filter(({ isKey }) => isKey)

/** Keys of people, such as an address, are not shown. */
const namedBy = (table: DescribedTable): string[] =>
  keyOf(table).flatMap(({ name, isContent }) => (isContent ? [] : name))

const list = (names: readonly string[]): string => names.map(quote).join(', ')

/** SQL for the first rows of `from`: the columns `named`, and the number of all rows. */
const found = (named: readonly string[], from: string): string =>
  `SELECT ${[...named.map(quote), 'count(*) OVER ()'].join(', ')} FROM ${from} LIMIT ${SHOWN}`

const SHOWN = 3

function* keyTests(table: DescribedTable, { unique, notNull }: Enforced): Generator<DataTest> {
  const { name } = table
  const key = keyOf(table).map(column => column.name)
  const named = namedBy(table)
  const common = { kind: 'keys', table: name, isPromised: true, reads: [name], named } as const
  if (key.length > 0 && !unique.has([...key].sort().join()))
    yield {
      ...common,
      columns: key,
      expected: 'unique',
      sql: found(
        named,
        `(SELECT ${list(key)} FROM ${quote(name)} GROUP BY ${list(key)} HAVING count(*) > 1)`,
      ),
    }
  const never = table.columns
    .filter(column => column.nullMeaning === NEVER_NULL && !notNull.has(column.name))
    .map(column => column.name)
  if (never.length === 0) return
  const isNull = never.map(column => `WHEN ${quote(column)} IS NULL THEN ${literal(column)}`)
  const nullColumn = `(SELECT *, CASE ${isNull.join(' ')} END AS null_column FROM ${quote(name)})`
  const withColumn = [...named, 'null_column']
  yield {
    ...common,
    named: withColumn,
    isNullTest: true,
    columns: never,
    expected: 'not NULL',
    sql: found(withColumn, `${nullColumn} WHERE null_column IS NOT NULL`),
  }
}

/**
 * The API may add values with its next version, so another value in a column of the API is worth knowing, but no fault.
 */
function valueTests(table: DescribedTable, { name, values, source }: DescribedColumn): DataTest[] {
  if (values === undefined) return []
  const where = `${quote(name)} NOT IN (${values.map(literal).join(', ')})`
  return [
    {
      kind: 'values',
      table: table.name,
      columns: [name],
      isPromised: source === null,
      reads: [table.name],
      named: namedBy(table),
      expected: `one of ${values.join(', ')}`,
      sql: found(namedBy(table), `${quote(table.name)} WHERE ${where}`),
    },
  ]
}

export interface Reference {
  columns: readonly DescribedColumn[]
  /** For each target its table and columns, in the order of `columns`. */
  targets: readonly { table: string; columns: readonly string[] }[]
}

function referenceTests(table: DescribedTable, byName: ReadonlyMap<string, DescribedTable>): DataTest[] {
  return referencesOf(table, byName).map(({ columns, targets }) => {
    const names = columns.map(({ name }) => name)
    const isSet = areSet(names)
    const isMissing = targets.map(
      target =>
        `(${list(names)}) NOT IN (SELECT ${list(target.columns)} FROM ${quote(target.table)} WHERE ${areSet(target.columns)})`,
    )
    return {
      kind: 'references',
      table: table.name,
      columns: names,
      isPromised: columns.every(({ resolves }) => resolves === true),
      reads: [table.name, ...targets.map(target => target.table)],
      named: namedBy(table),
      expected: targets.map(target => `${target.table}.${target.columns.join('+')}`).join(' or '),
      sql: found(namedBy(table), `${quote(table.name)} WHERE ${[isSet, ...isMissing].join(' AND ')}`),
      all: `SELECT count(*) FROM ${quote(table.name)} WHERE ${isSet}`,
    }
  })
}

const areSet = (columns: readonly string[]): string =>
  columns.map(column => `${quote(column)} IS NOT NULL`).join(' AND ')

/** Columns that together name the key of one table are one reference. */
export function referencesOf(
  table: DescribedTable,
  byName: ReadonlyMap<string, DescribedTable>,
): Reference[] {
  const referring = table.columns.filter(({ refersTo }) => refersTo.length > 0)
  const together = [...new Set(referring.flatMap(({ refersTo }) => refersTo.map(tableIn)))].flatMap(
    target => {
      const key = keyOf(byName.get(target) ?? table).map(({ name }) => name)
      const columns = key.flatMap(
        name => referring.find(({ refersTo }) => refersTo.includes(`${target}.${name}`)) ?? [],
      )
      const isWhole = key.length > 1 && new Set(columns).size === key.length
      return isWhole && target !== table.name ? [{ columns, targets: [{ table: target, columns: key }] }] : []
    },
  )
  const taken = new Set(together.flatMap(({ columns }) => columns))
  const single = referring.flatMap(column => {
    if (taken.has(column)) return []
    const targets = column.refersTo.map(target => ({ table: tableIn(target), columns: [columnIn(target)] }))
    return [{ columns: [column], targets }]
  })
  return [...together, ...single]
}

const tableIn = (target: string): string => target.slice(0, target.lastIndexOf('.'))
const columnIn = (target: string): string => target.slice(target.lastIndexOf('.') + 1)

/** Compares `ours` and `base` as sets, so that NULL equals NULL. A row that differs is in both differences. */
function recountTest(table: DescribedTable, { about, key, values = [], ours, base }: Recount): DataTest {
  const named = key.filter(name => table.columns.some(column => column.name === name && !column.isContent))
  const columns = [...key, ...values]
  const differing = `WITH o(${list(columns)}) AS (${ours}), b(${list(columns)}) AS (${base})
    SELECT DISTINCT ${list(key)} FROM (
      SELECT * FROM (SELECT * FROM o EXCEPT SELECT * FROM b)
      UNION ALL SELECT * FROM (SELECT * FROM b EXCEPT SELECT * FROM o))`
  return {
    kind: 'sums',
    table: table.name,
    columns: [],
    isPromised: true,
    reads: [table.name],
    named,
    expected: about,
    sql: found(named, `(${differing})`),
  }
}
