import { resolve } from 'node:path'
import { Argument, InvalidArgumentError, Option } from 'commander'
import { systemClock } from '../clock.ts'
import { EXIT_STATUS } from '../errors.ts'
import type { PublishProgress, PublishSummary } from '../publish/publish.ts'
import { jsonLine } from '../safe-text.ts'
import { sizeText } from '../size-text.ts'
import { createLiveArea, isRedrawable } from '../terminal/live-area.ts'
import { type TableColumn, table } from '../terminal/table.ts'
import { countText, durationText, shortText } from '../terminal/wording.ts'
import { wholeNumber } from '../whole-number.ts'
import {
  type CommandContext,
  type CommandDefinition,
  loadCommandSettings,
  settingsOfSections,
} from './command.ts'

export interface PublishCommandOptions {
  keep: number
  location?: string
  json?: boolean
}

const USUAL_KEEP = 5

export const publishCommand: CommandDefinition<PublishCommandOptions> = {
  description:
    'Publishes the warehouse as Apache Iceberg tables, which Spark, Trino, Snowflake, BigQuery, Databricks, ClickHouse and DuckDB read, or as tables of a ClickHouse database. The target is a folder, a prefix of a bucket of S3 or of storage that offers its API, or a database. All tables show the same instant, and the daemon may keep writing. A later publication to the same target writes only what changed. Deleted rows are included, with their _deleted_at. Needs no API settings.',
  arguments: [
    new Argument(
      '<target>',
      'a folder, s3://bucket/prefix or clickhouse://host:8123/database: new, empty, or with earlier publications of this warehouse',
    ),
  ],
  settings: settingsOfSections('database', 'publish'),
  options: [
    new Option('--keep <number>', 'how many publications of each table stay readable')
      .argParser(parseKeep)
      .default(USUAL_KEEP),
    new Option('--location <url>', 'where readers find the target, if it is not at the same path for them'),
    new Option('--json', 'print one JSON summary on standard output'),
  ],
  examples: [
    ['parley publish /data/lake', 'everything the first time, later only changes'],
    [
      'parley publish s3://bucket/lake --s3-access-key-id AKIAIOSFODNN7EXAMPLE --s3-secret-access-key-file s3.secret',
      'directly to a bucket; the settings of section [publish] say how',
    ],
    [
      'parley publish clickhouse://db.example.com:8123/parley --clickhouse-password-file clickhouse.password',
      'to a ClickHouse server; ?secure for TLS, ?cluster=NAME for the shards of a cluster',
    ],
    ['parley publish /data/lake --location s3://bucket/lake', 'for a folder that is copied to a bucket'],
  ],
  async run(context, input) {
    const { parsePublicationTarget, publishTo, SECRETS_OF_TARGETS } = await import('../publish/target.ts')
    const target = parsePublicationTarget(input.args[0] ?? '', context.cwd)
    const { settings } = loadCommandSettings(context, input, {
      requireApi: false,
      secrets: SECRETS_OF_TARGETS[target.by],
    })
    const [{ openDatabase }, { databaseError }, { requireWarehouse }] = await Promise.all([
      import('../store/database/open.ts'),
      import('../store/database/sqlite-errors.ts'),
      import('../store/status/status.ts'),
    ])
    const clock = systemClock()
    const path = resolve(context.cwd, settings.database.path)
    requireWarehouse(path)
    const { keep, location, json = false } = input.options
    const began = clock.elapsed()
    const progress = createProgressView(context, () => clock.elapsed())
    const db = openDatabase({ path, readonly: true })
    try {
      const { name, summary } = await publishTo(target, {
        settings,
        db,
        location,
        clock,
        version: context.version,
        keep,
        signal: context.signal,
        onProgress: progress.show,
      })
      progress.end()
      const durationMs = Math.round(clock.elapsed() - began)
      context.stdout.write(
        json
          ? jsonLine({ target: name, ...summary, duration_ms: durationMs })
          : `${summaryText(name, summary, durationMs)}\n`,
      )
      return EXIT_STATUS.done
    } catch (error) {
      progress.end()
      throw databaseError(error, path)
    } finally {
      db.close()
    }
  },
}

function parseKeep(text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) throw new InvalidArgumentError('Expected a whole number from 1 to 9999.')
  return Number(text)
}

interface PublishProgressView {
  show(progress: PublishProgress): void
  end(): void
}

/** Time between two updates on a terminal, and between two lines of other output. */
const REDRAW_MS = 200
const LINE_MS = 30_000

function createProgressView({ stderr, env }: CommandContext, elapsed: () => number): PublishProgressView {
  const area = isRedrawable(stderr, env) ? createLiveArea(stderr) : undefined
  let shownAt = elapsed()
  return {
    show({ table: name, done, tables, rows }) {
      if (elapsed() - shownAt < (area ? REDRAW_MS : LINE_MS)) return
      shownAt = elapsed()
      const line = `${shortName(name)}: ${countText(rows, 'row')} read, ${done} of ${countText(tables, 'table')} done`
      if (area) area.draw([line])
      else stderr.write(`${line}\n`)
    },
    end: () => area?.clear(),
  }
}

type TableRow = PublishSummary['tables'][number]

const COLUMNS: readonly TableColumn<TableRow>[] = [
  { title: 'table', cell: row => shortName(row.folder) },
  { title: 'rows', align: 'right', cell: row => wholeNumber(row.rows) },
  { title: 'size', align: 'right', cell: row => sizeText(row.bytes) },
  { title: 'files', align: 'right', cell: row => wholeNumber(row.files) },
  { title: 'written', align: 'right', cell: row => wholeNumber(row.filesWritten) },
]

const MAX_NAME_LENGTH = 40

const shortName = (name: string): string => shortText(name, MAX_NAME_LENGTH)

function summaryText(target: string, summary: PublishSummary, durationMs: number): string {
  const sum = (of: (row: TableRow) => number) => summary.tables.reduce((total, row) => total + of(row), 0)
  const rows = countText(
    sum(row => row.rows),
    'row',
  )
  const files = countText(
    sum(row => row.files),
    'file',
  )
  return [
    ...table(COLUMNS, summary.tables),
    '',
    `Publication ${summary.publication} in ${target} shows the warehouse as of ${summary.published_at}: ${rows}, ${sizeText(sum(row => row.bytes))} in ${files}.`,
    `Wrote ${wholeNumber(sum(row => row.filesWritten))} of them (${sizeText(sum(row => row.bytesWritten))}) in ${durationText(durationMs)}.`,
  ].join('\n')
}
