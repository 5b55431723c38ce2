import { TABLES } from '../../catalog/catalog.ts'
import type { CrmObjectDescription } from '../../dictionary/crm-tables.ts'
import { liveRows, tablesOfLiveRows } from '../../dictionary/live-rows.ts'
import { chosenTables } from '../../export/chosen-tables.ts'
import { folderOf } from '../../export/crm-tables.ts'
import { declaredTables } from '../../export/tables.ts'
import {
  firstName,
  labelledRecords,
  liveRecords,
  objectForReaders,
  type RecordsDialect,
} from '../../publish/record-views.ts'
import { DIALECTS, type Dialect, type Engine } from './engine-dialects.ts'

export interface PublishedWhere {
  /** Names of the tables that are published; undefined: all. */
  tables?: readonly string[] | undefined
  /** As the engine knows it; undefined: as in the page for engines. */
  catalogue?: string | undefined
}

/**
 * SQL for the engines that read the tables of `parley publish`: a view `live_…` for each table, with the rows that are
 * not deleted and whose owner is not, and for each typed table of a CRM object also a view `labelled_…`. A view that
 * reads a table which is not published is left out. Pure.
 * @throws StopError 64 for a name that neither a table nor a CRM object can have
 */
export function engineViews(
  engine: Engine,
  all: readonly CrmObjectDescription[],
  { tables: names, catalogue = DIALECTS[engine].catalogue }: PublishedWhere = {},
): string {
  const { table, ...ofEngine } = DIALECTS[engine]
  const dialect = { ...ofEngine, table: (name: string) => `${catalogue}.${table(name)}` }
  const { preface, createView, quote, statement } = dialect
  const published = publishedNames(all, names)
  const objects = all.filter(({ table }) => published.has(folderOf(table))).map(objectForReaders)
  const records = { ...dialect, nameOf: joinedName(dialect, published) }
  const declared = [...TABLES.values()]
    .filter(placed => tablesOfLiveRows(placed).every(one => published.has(one)))
    .map(placed => [placed.table.name, liveRows(placed, { ...dialect, inSet: 'IN' })] as const)
  const typed = objects.map(object => [folderOf(object.table), liveRecords(object, records)] as const)
  const labelled = objects.map(
    object => [folderOf(object.table), labelledRecords(object, objects, records)] as const,
  )
  const views = [
    ...[...declared, ...typed].map(([name, select]) => [`live_${name}`, select] as const),
    ...labelled.map(([name, select]) => [`labelled_${name}`, select] as const),
  ].map(([name, select]) => statement(`${createView} ${quote(name)} AS\n${select}`))
  const found = `The published tables are read as ${dialect.table('…')}.`
  const comments = [found, ...preface, ...(names ? [LEFT_OUT] : [])].map(line => `-- ${line}`)
  return `${[...comments, '', views.join('\n\n')].join('\n')}\n`
}

const LEFT_OUT =
  'Views of tables that are not published are left out, and so are the names that they would show.'

function publishedNames(
  objects: readonly CrmObjectDescription[],
  names: readonly string[] | undefined,
): ReadonlySet<string> {
  const typed = objects.map(({ table }) => ({ name: table, folder: folderOf(table) }))
  // Without a warehouse, and before its records were read, an object has no table yet.
  const chosen = chosenTables([...declaredTables(), ...typed], names, name => /^crm_/i.test(name))
  return new Set(chosen.map(({ folder }) => folder))
}

/** A join, since some engines have no correlated subqueries. */
const joinedName =
  (dialect: Dialect, published: ReadonlySet<string>): RecordsDialect['nameOf'] =>
  (id, from, place) => {
    if (!published.has(from.table)) return undefined
    const { quote, table } = dialect
    const names = `SELECT ${quote('id')}, ${firstName(dialect, from)} AS ${quote('name')} FROM ${table(from.table)}`
    const joined = `n${place}`
    return {
      value: `coalesce(${joined}.${quote('name')}, ${id})`,
      join: `LEFT JOIN (${names}) ${joined} ON ${joined}.${quote('id')} = ${id}`,
    }
  }
