import { existsSync } from 'node:fs'
import { basename, extname } from 'node:path'
import { Argument, InvalidArgumentError, Option } from 'commander'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { pagePath } from '../../base/installation.ts'
import { nearestName } from '../../base/nearest-name.ts'
import { indentedJson, jsonLine, safeText } from '../../base/safe-text.ts'
import {
  type DescribedColumn,
  type DescribedTable,
  fullMeaning,
  meaning,
  sentence,
} from '../../dictionary/described-table.ts'
import { DICTIONARY } from '../../dictionary/dictionary.ts'
import { isInternal, SEARCH_TABLES } from '../../dictionary/sync-tables.ts'
import type { Output } from '../../terminal/output.ts'
import { textWidth } from '../../terminal/text-width.ts'
import { wrapText } from '../../terminal/wording.ts'
import {
  type CommandDefinition,
  DATABASE_ONLY,
  loadCommandSettings,
  type SettingsNeed,
  settingsOfSections,
} from '../base/command.ts'
import { parseTableNames } from '../base/option-values.ts'
import { ENGINES, type QueryEngine } from './engine-dialects.ts'
import type { PublishedWhere } from './engine-views.ts'

/** The output formats that describe the published tables. */
const OF_PUBLISHED = [...ENGINES, 'ossie'] as const
const FORMATS = ['json', 'datasette', 'duckdb', ...OF_PUBLISHED] as const

/** The option of an output format, which excludes the others. */
const formatOption = (format: (typeof FORMATS)[number], about: string) =>
  new Option(`--${format}`, about).conflicts(FORMATS.filter(other => other !== format))

interface SchemaOptions extends Partial<Record<QueryEngine, boolean>> {
  json?: boolean
  datasette?: boolean
  duckdb?: boolean
  ossie?: boolean
  tables?: readonly string[]
  catalogue?: string
}

export const schemaCommand: CommandDefinition<SchemaOptions> = {
  description:
    'Describes every table, view and column of the warehouse: what it means, what NULL means, the unit, and the API field that it comes from. Works without a warehouse; with one, the output includes the typed tables of its CRM objects. Needs no API settings.',
  arguments: [new Argument('[table]', 'the table or view whose columns to show; default: a list of all')],
  settings: settingsOfSections('database'),
  options: [
    formatOption('json', 'print all tables with all columns as one JSON object on standard output'),
    formatOption('datasette', 'print metadata for Datasette as JSON'),
    formatOption('duckdb', 'print SQL that attaches the file in DuckDB and creates typed views'),
    formatOption(
      'ossie',
      'print the published tables and views for reports, and the metrics, as a semantic model of Apache Ossie 0.1.1: JSON, which is YAML too',
    ),
    ...ENGINES.map(engine =>
      formatOption(
        engine,
        `print SQL for ${engine}: the live_ and labelled_ views over the tables of parley publish`,
      ),
    ),
    new Option(
      '--tables <tables>',
      `with ${OF_PUBLISHED.map(format => `--${format}`).join(', ')}: only views that read these published tables, separated by commas; default publish.tables, usually all`,
    ).argParser(parseTableNames),
    new Option(
      '--catalogue <name>',
      'with the same: where the engine finds the published tables; default lake.parley, for ClickHouse the database lake',
    ).argParser(parseCatalogue),
  ],
  examples: [
    ['parley schema', 'a list of tables and views'],
    ['parley schema meetings', 'the columns of one'],
    ['parley schema --datasette > metadata.json', 'for datasette parley.db --metadata metadata.json'],
    ['parley schema --duckdb > parley.sql', 'for duckdb -init parley.sql'],
    ['parley schema --ossie > parley.json', 'the tables for reports and the metrics, for a semantic layer'],
    ['parley schema --trino > views.sql', 'the views of the rows that are not deleted, for Trino'],
    [
      'parley schema --spark --catalogue parley.lake',
      'the same for Spark, where the tables are in the namespace lake of the catalog parley',
    ],
  ],
  async run(context, { args: [name], options, flags }) {
    refuseWithoutEngine(options)
    const { settings } = loadCommandSettings(
      context,
      { args: [], options, flags },
      await settingsFor(options),
    )
    const { path } = settings.database
    const { readCrmTablesAt } = await import('../../store/dictionary/fill-dictionary.ts')
    const all = [...DICTIONARY, ...readCrmTablesAt(path)]
    if (!existsSync(path)) {
      context.stderr.write(
        `parley: ${path} does not exist yet, so the typed tables of CRM objects are not shown\n`,
      )
    }
    const published = { tables: options.tables ?? settings.publish.tables, catalogue: options.catalogue }
    context.stdout.write(await answer({ all, name, options, path, published, stdout: context.stdout }))
    return EXIT_STATUS.done
  },
}

/** `publish.tables` matters only for a description of published tables that names none. */
async function settingsFor(options: SchemaOptions): Promise<SettingsNeed> {
  if (options.tables !== undefined || !OF_PUBLISHED.some(format => options[format])) return DATABASE_ONLY
  const { declaredTableNames } = await import('../../export/chosen-tables.ts')
  return {
    ...DATABASE_ONLY,
    used: [...DATABASE_ONLY.used, 'publish.tables'],
    tableNames: declaredTableNames(),
  }
}

function parseCatalogue(text: string): string {
  if (/^[^\s;'-][^\s;']*$/.test(text)) return text
  throw new InvalidArgumentError(
    'Expected the name of a catalogue and its namespace as they stand in SQL, such as lake.parley.',
  )
}

interface SchemaQuestion {
  all: readonly DescribedTable[]
  name: string | undefined
  options: SchemaOptions
  path: string
  published: PublishedWhere
  stdout: Output
}

async function answer({ all, name, options, path, published, stdout }: SchemaQuestion): Promise<string> {
  const chosen = name === undefined ? undefined : findTable(name, all, options)
  if (options.json) return jsonLine({ tables: (chosen ? [chosen] : all).map(tableJson) })
  if (options.datasette) {
    const { datasetteMetadata } = await import('./datasette.ts')
    const { readQuestions } = await import('../../dictionary/questions.ts')
    return indentedJson(datasetteMetadata(basename(path, extname(path)), all, readQuestions()))
  }
  const engine = ENGINES.find(one => options[one])
  if (engine) {
    const { readCrmObjectsAt } = await import('../../store/dictionary/fill-dictionary.ts')
    const { engineViews } = await import('./engine-views.ts')
    return engineViews(engine, readCrmObjectsAt(path), published)
  }
  if (options.ossie) {
    const { ossieModel } = await import('./ossie.ts')
    return indentedJson(ossieModel(published))
  }
  if (options.duckdb) return (await import('./duckdb.ts')).duckdbScript(path, all)
  const width = stdout.isTTY ? stdout.columns || 80 : Number.POSITIVE_INFINITY
  return `${(chosen ? tablePage(chosen, width) : listPage(all, width)).join('\n')}\n`
}

/** @throws StopError (exit status 64) for `--tables` or `--catalogue` without a format for published tables */
function refuseWithoutEngine(options: SchemaOptions): void {
  const given = (['tables', 'catalogue'] as const).find(one => options[one] !== undefined)
  if (given === undefined || OF_PUBLISHED.some(format => options[format])) return
  throw new StopError(
    `--${given} is for the views of a query engine or a semantic model, and none is named`,
    {
      code: 'no-engine',
      hint: `Add ${OF_PUBLISHED.map(format => `--${format}`).join(' or ')}, or leave --${given} out.`,
      exitStatus: EXIT_STATUS.usage,
    },
  )
}

/** @throws StopError (exit status 64) for an unknown table, and for any table together with an output format */
function findTable(name: string, all: readonly DescribedTable[], options: SchemaOptions): DescribedTable {
  const format = (['datasette', 'duckdb', ...OF_PUBLISHED] as const).find(one => options[one])
  if (format !== undefined) {
    throw new StopError(
      `parley schema --${format} describes the whole database and takes no table: ${JSON.stringify(name)}`,
      {
        code: 'table-not-taken',
        hint: `Leave ${JSON.stringify(name)} out.`,
        exitStatus: EXIT_STATUS.usage,
      },
    )
  }
  // SQLite ignores the case of names.
  const found = all.find(known => known.name.toLowerCase() === name.toLowerCase())
  if (found) return found
  throw new StopError(`${JSON.stringify(name)} is not a table or view that parley schema describes`, {
    code: 'unknown-table',
    hint: [...hintsFor(name, all), 'Run parley schema for the list of tables and views.'].join(' '),
    exitStatus: EXIT_STATUS.usage,
  })
}

/** Hints for an unknown name: an index, an internal table, or similar names. */
function hintsFor(name: string, all: readonly DescribedTable[]): string[] {
  const index = SEARCH_TABLES[name]
  if (index !== undefined) return [index, `${pagePath('drizzle/README.md')} says how to use it.`]
  if (isInternal(name)) return ['It is internal to parley and may change.']
  const guesses = similarNames(
    name,
    all.map(known => known.name),
  )
  return guesses.length === 0 ? [] : [`Did you mean ${guesses.join(' or ')}?`]
}

/** The shortest names that contain the word, such as `crm_deal` for `deals`; otherwise the most similar name. */
function similarNames(name: string, known: readonly string[]): string[] {
  const word = name.toLowerCase().replace(/s$/, '')
  const having = known.filter(each => !isLiveView(each) && each.toLowerCase().includes(word))
  if (word.length > 2 && having.length > 0) return having.sort((a, b) => a.length - b.length).slice(0, 3)
  return [nearestName(name, known) ?? []].flat()
}

const isLiveView = (name: string): boolean => /^(live|labelled)_/.test(name)

// ------------------------------------------------------------------------------------------------- output

/** The keys of a column match the columns of `data_dictionary`, with some additions; `name` is `column_name`. */
function tableJson({ name, form, about, columns }: DescribedTable): object {
  return {
    name,
    form,
    description: sentence(about),
    columns: columns.map((column, position) => ({
      name: column.name,
      position,
      type: column.kind,
      key: column.isKey,
      null_meaning: column.nullMeaning,
      description: meaning(column),
      source_field: column.source,
      unit: column.unit,
      example: column.example,
      refers_to: column.refersTo,
      value_on_delete: column.onDelete,
    })),
  }
}

function listPage(all: readonly DescribedTable[], width: number): string[] {
  const names = new Set(all.map(({ name }) => name))
  const shown = all.filter(({ name }) => !(name.startsWith('live_') && names.has(name.slice('live_'.length))))
  const rows = shown.map(({ name, form, about }) => [name, form, sentence(about)])
  return [
    ...alignedLines(['name', 'form', 'what is in it'], rows, width),
    '',
    ...wrapText(
      'Each table whose rows can be deleted has a view live_… without the deleted rows. Start from these views.',
      width,
    ),
    ...wrapText(
      `${Object.keys(SEARCH_TABLES).join(', ')}: full-text indices; ${pagePath('drizzle/README.md')} says how to use them.`,
      width,
    ),
    'parley schema NAME shows the columns.',
  ]
}

function tablePage({ name, form, about, columns }: DescribedTable, width: number): string[] {
  const rows = columns.map(column => [
    column.name,
    column.kind,
    column.isKey ? 'key' : '',
    wholeMeaning(column),
  ])
  return [
    ...wrapText(`${name} (${form}): ${sentence(about)}`, width),
    '',
    ...alignedLines(['column', 'type', 'key', 'meaning'], rows, width),
  ]
}

function wholeMeaning(column: DescribedColumn): string {
  const { source, example } = column
  return [
    fullMeaning(column),
    ...(source === null ? [] : [`API: ${source}.`]),
    ...(example === null ? [] : [`Example: ${example}`]),
  ].join(' ')
}

/** A longer name gets its own line, so that it does not widen the column. */
const MAX_NAME_WIDTH = 40

/** Aligned lines with titles. The last cell of each row is wrapped to fit the width. */
function alignedLines(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  width: number,
): string[] {
  const widths = titles
    .slice(0, -1)
    .map((title, at) =>
      Math.max(
        ...[title, ...rows.map(row => row[at] ?? '')].map(textWidth).filter(each => each <= MAX_NAME_WIDTH),
      ),
    )
  const pad = (cell: string, at: number) =>
    cell + ' '.repeat(Math.max(0, (widths[at] ?? 0) - textWidth(cell)))
  const left = widths.reduce((sum, each) => sum + each + 2, 0)
  return [titles, ...rows.map(row => row.map(safeText))].flatMap(([name = '', ...cells]) => {
    const isWide = textWidth(name) > MAX_NAME_WIDTH
    const head = [isWide ? '' : name, ...cells.slice(0, -1)].map(pad).join('  ')
    const lines = wrapText(cells.at(-1) ?? '', Math.max(30, width - left))
    const body = lines.map((line, at) => `${at === 0 ? head : ' '.repeat(left - 2)}  ${line}`.trimEnd())
    return isWide ? [name, ...body] : body
  })
}
