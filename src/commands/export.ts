import { resolve } from 'node:path'
import { Argument, InvalidArgumentError, Option } from 'commander'
import { systemClock } from '../clock.ts'
import { instant } from '../config-kinds.ts'
import { EXIT_STATUS } from '../errors.ts'
import type { ExportProgress, ExportSummary, TableSummary } from '../export/export.ts'
import { jsonLine, onOneLine } from '../harmless.ts'
import { sizeText } from '../size-text.ts'
import { type CommandContext, type CommandDefinition, settingsFor, settingsIn } from './command.ts'
import { createLiveArea, isLive } from './live-area.ts'
import { type TableColumn, table } from './table.ts'
import { counted, duration, wholeNumber } from './wording.ts'

export interface ExportCommandOptions {
  tables?: readonly string[]
  since?: string
  full?: boolean
  json?: boolean
}

export const exportCommand: CommandDefinition<ExportCommandOptions> = {
  description:
    'Writes the warehouse as Parquet files into a folder, for engines on other machines: a folder for each table, with a folder for each month where rows have a time, and manifest.json, which is written last. All of it is of one instant, and the daemon may go on meanwhile. Run again, it writes only what changed. Deleted rows are written too, with their _deleted_at. It needs no API settings.',
  arguments: [
    new Argument('<format>', 'of the files').choices(['parquet']),
    new Argument('<folder>', 'empty, not there yet, or with an earlier export'),
  ],
  settings: settingsIn('database'),
  options: [
    new Option('--tables <names>', 'only these tables (names or folders), separated by commas').argParser(
      namesIn,
    ),
    new Option(
      '--since <instant>',
      'of tables with months only those from this UTC day or instant on; the others stay as they are',
    ).argParser(instantIn),
    new Option('--full', 'write everything anew, whatever is there'),
    new Option('--json', 'print one JSON summary on standard output'),
  ],
  examples: [
    ['parley export parquet /data/parley', 'everything the first time, then what changed'],
    [
      'parley export parquet /data/parley --tables messages,meetings --since 2026-01-01',
      'only two tables, and of them this year',
    ],
  ],
  async run(context, input) {
    const { settings } = settingsFor(context, input, { requireApi: false })
    const [
      { openDatabase, databaseError },
      { requireWarehouse },
      { openTarget, targetError },
      { exportWarehouse },
    ] = await Promise.all([
      import('../store/open.ts'),
      import('../store/status.ts'),
      import('../export/target.ts'),
      import('../export/export.ts'),
    ])
    const clock = systemClock()
    const path = resolve(context.cwd, settings.database.path)
    const folder = resolve(context.cwd, input.args[1] ?? '')
    requireWarehouse(path)
    const { tables, since, full = false, json = false } = input.options
    const { mode } = settings.database
    const began = clock.elapsed()
    const db = openDatabase({ path, readonly: true })
    const progress = createProgress(context, () => clock.elapsed())
    try {
      const target = openTarget(folder, mode, clock)
      try {
        const summary = await exportWarehouse({
          db,
          target,
          clock,
          mode,
          version: context.version,
          tables,
          since,
          full,
          signal: context.signal,
          onProgress: progress.show,
        })
        progress.end()
        const durationMs = Math.round(clock.elapsed() - began)
        context.stdout.write(
          json
            ? jsonLine({ folder, ...summary, duration_ms: durationMs })
            : `${forPeople(folder, summary, durationMs)}\n`,
        )
        return EXIT_STATUS.done
      } finally {
        target.close()
      }
    } catch (error) {
      progress.end()
      throw databaseError(targetError(error, folder), path)
    } finally {
      db.close()
    }
  },
}

function namesIn(text: string): readonly string[] {
  const names = text
    .split(',')
    .map(name => name.trim())
    .filter(name => name !== '')
  if (names.length === 0) throw new InvalidArgumentError('Expected names of tables, separated by commas.')
  return names
}

function instantIn(text: string): string {
  const found = instant.read(text, { cwd: '.' })
  if (found === undefined) throw new InvalidArgumentError(`Expected ${instant.allowed()}.`)
  return found
}

interface Progress {
  show(progress: ExportProgress): void
  end(): void
}

/** Between two pictures on a terminal, and between two lines elsewhere. */
const PICTURE_MS = 200
const LINE_MS = 30_000

function createProgress({ stderr, env }: CommandContext, elapsed: () => number): Progress {
  const area = isLive(stderr, env) ? createLiveArea(stderr) : undefined
  let shownAt = elapsed()
  return {
    show({ table: name, done, tables, rows }) {
      if (elapsed() - shownAt < (area ? PICTURE_MS : LINE_MS)) return
      shownAt = elapsed()
      const line = `${cut(name)}: ${counted(rows, 'row')} read, ${done} of ${counted(tables, 'table')} done`
      if (area) area.draw([line])
      else stderr.write(`${line}\n`)
    },
    end: () => area?.clear(),
  }
}

const COLUMNS: readonly TableColumn<TableSummary>[] = [
  { title: 'table', cell: row => cut(row.table) },
  { title: 'rows', align: 'right', cell: row => wholeNumber(row.rows) },
  { title: 'size', align: 'right', cell: row => sizeText(row.bytes) },
  { title: 'files', align: 'right', cell: row => wholeNumber(row.files) },
  { title: 'written', align: 'right', cell: row => wholeNumber(row.files_written) },
]

/** Objects of a CRM may have names of any length. */
const MOST_LETTERS = 40

function cut(name: string): string {
  const letters = [...onOneLine(name)]
  return letters.length > MOST_LETTERS ? `${letters.slice(0, MOST_LETTERS - 1).join('')}…` : letters.join('')
}

function forPeople(folder: string, summary: ExportSummary, durationMs: number): string {
  const sum = (of: (row: TableSummary) => number) => summary.tables.reduce((total, row) => total + of(row), 0)
  const files = sum(row => row.files)
  const written = sum(row => row.files_written)
  const removed = summary.files_removed === 0 ? '' : ` ${counted(summary.files_removed, 'file')} removed.`
  return [
    ...table(COLUMNS, summary.tables),
    '',
    `${folder} is as of ${summary.exported_at}: ${counted(
      sum(row => row.rows),
      'row',
    )}, ${sizeText(sum(row => row.bytes))} in ${counted(files, 'file')}.`,
    `${wholeNumber(written)} of them written (${sizeText(sum(row => row.bytes_written))}) in ${duration(durationMs)}.${removed}`,
  ].join('\n')
}
