import { Argument, Option } from 'commander'
import { isoInstant, systemClock } from '../base/clock.ts'
import { EXIT_STATUS, StopError } from '../base/errors.ts'
import { jsonLine, safeText } from '../base/safe-text.ts'
import { sizeText } from '../base/size-text.ts'
import { wholeNumber } from '../base/whole-number.ts'
import * as kinds from '../config/kinds.ts'
import { loadSettings } from '../config/load-settings.ts'
import { settingsPage } from '../config/setting-findings.ts'
import type { SettingKey } from '../config/settings.ts'
import { RESOURCE_NAMES } from '../declare/resource-names.ts'
import type { PublishSummary } from '../publish/publish.ts'
import { type TableColumn, table } from '../terminal/table.ts'
import { countText, durationText } from '../terminal/wording.ts'
import {
  type CommandContext,
  type CommandDefinition,
  type CommandInput,
  loadCommandSettings,
  settingsOfSections,
} from './base/command.ts'
import { parsedAs, parseTableNames } from './base/option-values.ts'
import { createTableProgress, shortTableName } from './table-progress.ts'

export interface PublishCommandOptions {
  keep?: number
  tables?: readonly string[]
  location?: string
  full?: boolean
  json?: boolean
}

/** Settings without a flag here: the command has an option of the same meaning, or does not use the setting. */
const WITHOUT_FLAG: readonly SettingKey[] = [
  'publish.target',
  'publish.every',
  'publish.keep',
  'publish.tables',
  'publish.location',
]

/** Settings of the database and of the target that have flags. */
export const TARGET_SETTINGS = settingsOfSections('database', 'publish').filter(
  key => !WITHOUT_FLAG.includes(key),
)

export const publishCommand: CommandDefinition<PublishCommandOptions> = {
  description:
    'Publishes the warehouse as Apache Iceberg tables, which Spark, Trino, Snowflake, BigQuery, Databricks, ClickHouse and DuckDB read. The target is a folder, or a prefix of a bucket of S3 or of storage that offers its API. All tables show the same instant, and the daemon may keep writing. A later publication to the same target writes only what changed. Deleted rows are included, with their _deleted_at. Needs no API settings.',
  arguments: [
    new Argument(
      '[target]',
      'a folder or s3://bucket/prefix: new, empty, or with earlier publications of this warehouse; default publish.target of the settings',
    ),
  ],
  settings: TARGET_SETTINGS,
  options: [
    new Option(
      '--keep <number>',
      'how many publications of each table stay readable; default publish.keep, usually 5',
    ).argParser(parsedAs(kinds.number({ whole: true, min: 1, max: 1000 }))),
    new Option(
      '--tables <tables>',
      'only these tables, separated by commas; tables of the target that are left out lose their rows; default publish.tables, usually all',
    ).argParser(parseTableNames),
    new Option(
      '--location <url>',
      'where readers find the target, if it is not at the same path for them; default publish.location for the target of the settings',
    ).argParser(parsedAs(kinds.location)),
    new Option(
      '--full',
      'compare all rows with the target, also those that no sync has changed since the last publication; without this option, that is done once a day',
    ),
    new Option('--json', 'print one JSON summary on standard output'),
  ],
  examples: [
    ['parley publish /data/lake', 'everything the first time, later only changes'],
    [
      'parley publish s3://bucket/lake --s3-access-key-id AKIAIOSFODNN7EXAMPLE --s3-secret-access-key-file s3.secret',
      'directly to a bucket; the settings of section [publish] say how',
    ],
    ['parley publish /data/lake --location s3://bucket/lake', 'for a folder that is copied to a bucket'],
  ],
  async run(context, input) {
    const [{ parseTarget, targetName, TARGET_SECRETS }, { declaredTableNames }] = await Promise.all([
      import('../publish/storage/open.ts'),
      import('../export/chosen-tables.ts'),
    ])
    const tableNames = declaredTableNames()
    const target = parseTarget(input.args[0] ?? targetOfSettings(context, input, tableNames), context.cwd)
    const { settings, sources } = loadCommandSettings(context, input, {
      requireApi: false,
      tableNames,
      secrets: TARGET_SECRETS[target.by],
    })
    const [
      { publishOnce },
      { attemptOf, removalFailure },
      { namesWithoutTable },
      { recordAttempt },
      { requireWarehouse },
    ] = await Promise.all([
      import('../publish/publish-once.ts'),
      import('../publish/attempt.ts'),
      import('../publish/published-tables.ts'),
      import('../store/sync/publications.ts'),
      import('../store/status/status.ts'),
    ])
    const clock = systemClock()
    const { path: database } = settings.database
    requireWarehouse(database)
    const { json = false, full = false, ...chosen } = input.options
    const name = targetName(target)
    const { publish } = settings
    const isOfSettings = publish.target !== undefined && targetName(parseTarget(publish.target, '/')) === name
    const location = isOfSettings ? publish.location : undefined
    const [startedAt, began] = [isoInstant(clock.now()), clock.elapsed()]
    const progress = createTableProgress(context, () => clock.elapsed())
    const { version, signal, stderr } = context
    const summary = await publishOnce({
      database,
      target,
      settings: { ...settings, publish: { ...publish, location, ...chosen } },
      clock,
      version,
      full,
      signal,
      onProgress: progress.show,
      onEmptied: ({ message }) =>
        void stderr.write(`parley: ${message}. Its publications begin again with number 1.\n`),
      onEnd(db, outcome) {
        progress.end()
        if (signal.aborted) return
        if ('summary' in outcome)
          for (const table of namesWithoutTable(db, chosen.tables ?? publish.tables ?? []))
            stderr.write(`parley: ${comingText(table)}\n`)
        const when = { target: name, started_at: startedAt, finished_at: isoInstant(clock.now()) }
        recordAttempt(db, attemptOf(when, outcome))
      },
    }).catch(error => {
      throw chosen.tables === undefined ? errorOfSetting(error, sources['publish.tables']) : error
    })
    const durationMs = Math.round(clock.elapsed() - began)
    context.stdout.write(
      json
        ? jsonLine({ target: name, ...summary, duration_ms: durationMs })
        : `${summaryText(summary, name, durationMs)}\n`,
    )
    const failure = removalFailure(summary)
    if (failure) throw failure
    return EXIT_STATUS.done
  },
}

/**
 * The target that the settings name. The target decides which secrets are read, so the settings are then read a second
 * time.
 */
function targetOfSettings(
  { env, cwd }: CommandContext,
  { flags }: CommandInput<object>,
  tableNames: readonly string[],
): string {
  const names = { resourceNames: RESOURCE_NAMES, tableNames }
  const { target } = loadSettings({ flags, env, cwd, requireApi: false, ...names }).settings.publish
  if (target !== undefined) return target
  throw new StopError('parley publish needs a target: a folder or s3://bucket/prefix', {
    code: 'publish-no-target',
    hint: `Name it after the command, or set publish.target. ${settingsPage()}`,
    exitStatus: EXIT_STATUS.usage,
  })
}

/** A table that only the warehouse can refuse, such as that of a CRM object which does not exist. */
function errorOfSetting(error: unknown, source: string): unknown {
  if (!(error instanceof StopError) || error.code !== 'unknown-table') return error
  const { message, hint = '' } = error
  return new StopError(`Invalid settings: publish.tables in ${source}: ${message}`, {
    code: 'bad-settings',
    hint,
    exitStatus: EXIT_STATUS.settings,
    cause: error,
  })
}

const comingText = (table: string): string =>
  `${JSON.stringify(safeText(table))} was not published, since the warehouse has no such table yet: the table of a CRM object appears when its records were read`

type PublishedFigures = PublishSummary['tables'][number]

const COLUMNS: readonly TableColumn<PublishedFigures>[] = [
  { title: 'table', cell: row => shortTableName(row.folder) },
  { title: 'rows', align: 'right', cell: row => wholeNumber(row.rows) },
  { title: 'size', align: 'right', cell: row => sizeText(row.bytes) },
  { title: 'files', align: 'right', cell: row => wholeNumber(row.files) },
  { title: 'written', align: 'right', cell: row => wholeNumber(row.filesWritten) },
]

function summaryText(
  { publication, published_at: at, tables }: PublishSummary,
  target: string,
  durationMs: number,
): string {
  const sum = (of: (row: PublishedFigures) => number) => tables.reduce((total, row) => total + of(row), 0)
  const rows = countText(
    sum(row => row.rows),
    'row',
  )
  const files = countText(
    sum(row => row.files),
    'file',
  )
  return [
    ...table(COLUMNS, tables),
    '',
    `Publication ${publication} in ${target} shows the warehouse as of ${at}: ${rows}, ${sizeText(sum(row => row.bytes))} in ${files}.`,
    `Wrote ${wholeNumber(sum(row => row.filesWritten))} of them (${sizeText(sum(row => row.bytesWritten))}) in ${durationText(durationMs)}.`,
  ].join('\n')
}
