import { METRIC_TABLE, REPORT_CHANGE_TABLE, REPORT_SETTING_TABLE } from '../../catalog/bookkeeping/tables.ts'
import { COLUMN_VALUES } from '../../dictionary/column-values.ts'
import {
  type DescribedColumn,
  type DescribedTable,
  fullMeaning,
  sentence,
} from '../../dictionary/described-table.ts'
import { METRICS, type Metric } from '../../dictionary/metrics.ts'
import { REPORT_TABLES } from '../../dictionary/report-tables.ts'
import { isExported } from '../../store/changes/divisions.ts'
import { referencesOf } from '../../store/data-tests/plan.ts'
import { DIALECTS } from './engine-dialects.ts'
import { type PublishedWhere, publishedNames } from './engine-views.ts'

/**
 * The published tables and views for reports as a semantic model of Apache Ossie (incubating), formerly Open Semantic
 * Interchange: https://github.com/apache/ossie. The model is JSON, which every reader of YAML accepts and which is the
 * only form that dbt reads. Pure.
 */

/** The newest released version. The draft of 0.2.0 accepts the same content under its own number. */
const OSSIE_VERSION = '0.1.1'

/** Tables that are left out, since they describe parley and not the workspace. */
const ABOUT_PARLEY: readonly string[] = [
  ...[METRIC_TABLE, REPORT_SETTING_TABLE, REPORT_CHANGE_TABLE, COLUMN_VALUES].map(({ name }) => name),
]

const INSTRUCTIONS = [
  'An outcome of a deal that is unknown is neither open nor won nor lost: say how many deals have one.',
  'Never add amounts of several currencies: use amount_reporting, or group by currency.',
  'Count persons by party_id, since one may have several addresses.',
  'Days are local days. Take periods such as last quarter from the dataset periods, and weeks and fiscal quarters from calendar.',
  'NULL means that something is not known; it is never 0 or false.',
  'Join conversations by kind and conversation_id together.',
]

/** @throws StopError (exit status 64) for a name that neither a table nor a CRM object can have */
export function ossieModel({ tables: names, catalogue = DIALECTS.spark.catalogue }: PublishedWhere): object {
  const published = publishedNames([], names)
  const datasets = REPORT_TABLES.filter(
    ({ name }) => published.has(name) && !ABOUT_PARLEY.includes(name),
  ).map(table => ({ ...table, columns: table.columns.filter(({ name }) => isExported(name)) }))
  const byName = new Map(datasets.map(table => [table.name, table]))
  return {
    version: OSSIE_VERSION,
    semantic_model: [
      {
        name: 'parley',
        description:
          'Deals, conversations and people of a sales team, from its CRM, its e-mails and its meetings.',
        ai_context: { instructions: INSTRUCTIONS.join(' ') },
        datasets: datasets.map(table => datasetOf(table, `${catalogue}.${table.name}`)),
        relationships: datasets.flatMap(table => relationshipsOf(table, byName)),
        metrics: METRICS.flatMap(metric => {
          const table = byName.get(metric.dataset)
          return table ? [metricOf(metric, table)] : []
        }),
      },
    ],
  }
}

function datasetOf({ name, about, columns }: DescribedTable, source: string): object {
  const key = keyOf(columns)
  return {
    name,
    source,
    ...(key.length > 0 && { primary_key: key }),
    description: sentence(about),
    fields: columns.map(fieldOf),
  }
}

const keyOf = (columns: readonly DescribedColumn[]): string[] =>
  columns.flatMap(({ name, isKey }) => (isKey ? name : []))

/** A column with a unit is a quantity and so no dimension. */
function fieldOf(column: DescribedColumn): object {
  const { name, kind, unit } = column
  return {
    name,
    expression: inAnsi(name),
    ...(unit === null && { dimension: { is_time: kind === 'date' || kind === 'timestamp' } }),
    description: fullMeaning(column),
  }
}

const inAnsi = (expression: string) => ({ dialects: [{ dialect: 'ANSI_SQL', expression }] })

/** One relationship for each key of another dataset to which columns of this table refer. */
function relationshipsOf(table: DescribedTable, datasets: ReadonlyMap<string, DescribedTable>): object[] {
  return referencesOf(table, datasets).flatMap(({ columns, targets }) => {
    const from = columns.map(({ name }) => name)
    return targets.flatMap(target => {
      const key = keyOf(datasets.get(target.table)?.columns ?? [])
      if (key.length === 0 || key.join() !== target.columns.join()) return []
      return {
        name: `${table.name}_${from.join('_')}_to_${target.table}`,
        from: table.name,
        to: target.table,
        from_columns: from,
        to_columns: target.columns,
        ...(!columns.every(({ resolves }) => resolves) && {
          ai_context: 'Some rows have none, or name one that is not published: keep them.',
        }),
      }
    })
  })
}

/** A model has no filters, so each value that an aggregate takes is NULL in the rows that do not count. */
function metricOf(
  { name, label, expression, filter, unit, isAdditive, description, caveat }: Metric,
  table: DescribedTable,
): object {
  const counted = (value: string) => `CASE WHEN ${filter} THEN ${value === '*' ? '1' : value} END`
  const additive = isAdditive ? '' : ' Values of parts do not add up.'
  return {
    name,
    expression: inAnsi(qualified(expression(counted), table)),
    description: `${description} Unit: ${unit}.`,
    ai_context: { synonyms: [label], instructions: `${caveat}${additive}` },
  }
}

/** The SQL with the dataset's name before each of its columns, except inside quotes. */
function qualified(sql: string, { name: dataset, columns }: DescribedTable): string {
  const names = new Set(columns.map(({ name }) => name))
  return sql.replace(/'[^']*'|\w+/g, word => (names.has(word) ? `${dataset}.${word}` : word))
}
