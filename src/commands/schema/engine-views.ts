import { TABLES } from '../../catalog/catalog.ts'
import type { CrmObjectDescription } from '../../dictionary/crm-tables.ts'
import { liveRows } from '../../dictionary/live-rows.ts'
import { folderOf } from '../../export/crm-tables.ts'
import { firstName, labelledRecords, liveRecords, type RecordsDialect } from '../../publish/record-views.ts'
import { DIALECTS, type Dialect, type Engine } from './engine-dialects.ts'

/**
 * SQL for the engines that read the tables of `parley publish`: a view `live_…` for each table, with the rows that are
 * not deleted and whose owner is not, and for each typed table of a CRM object also a view `labelled_…`. Pure.
 */
export function engineViews(engine: Engine, objects: readonly CrmObjectDescription[]): string {
  const dialect = DIALECTS[engine]
  const { preface, createView, quote, statement } = dialect
  const records = { ...dialect, nameOf: joinedName(dialect) }
  const declared = [...TABLES.values()].map(
    placed => [placed.table.name, liveRows(placed, { ...dialect, inSet: 'IN' })] as const,
  )
  const typed = objects.map(object => [folderOf(object.table), liveRecords(object, records)] as const)
  const labelled = objects.map(
    object => [folderOf(object.table), labelledRecords(object, objects, records)] as const,
  )
  const views = [
    ...[...declared, ...typed].map(([name, select]) => [`live_${name}`, select] as const),
    ...labelled.map(([name, select]) => [`labelled_${name}`, select] as const),
  ].map(([name, select]) => statement(`${createView} ${quote(name)} AS\n${select}`))
  return `${[...preface.map(line => `-- ${line}`), '', views.join('\n\n')].join('\n')}\n`
}

/** A join, since some engines have no correlated subqueries. */
const joinedName =
  (dialect: Dialect): RecordsDialect['nameOf'] =>
  (id, from, place) => {
    const { quote, table } = dialect
    const names = `SELECT ${quote('id')}, ${firstName(dialect, from)} AS ${quote('name')} FROM ${table(from.table)}`
    const joined = `n${place}`
    return {
      value: `coalesce(${joined}.${quote('name')}, ${id})`,
      join: `LEFT JOIN (${names}) ${joined} ON ${joined}.${quote('id')} = ${id}`,
    }
  }
