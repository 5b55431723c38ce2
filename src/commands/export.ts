import { resolve } from 'node:path'
import { Argument, Option } from 'commander'
import { systemClock } from '../base/clock.ts'
import { EXIT_STATUS } from '../base/errors.ts'
import { jsonLine } from '../base/safe-text.ts'
import { sizeText } from '../base/size-text.ts'
import { wholeNumber } from '../base/whole-number.ts'
import { instant } from '../config/kinds.ts'
import type { ExportSummary, TableSummary } from '../export/export.ts'
import { type TableColumn, table } from '../terminal/table.ts'
import { countText, durationText } from '../terminal/wording.ts'
import { type CommandDefinition, loadCommandSettings, settingsOfSections } from './base/command.ts'
import { parsedAs, parseTableNames } from './base/option-values.ts'
import { createTableProgress, shortTableName } from './table-progress.ts'

export interface ExportCommandOptions {
  tables?: readonly string[]
  since?: string
  full?: boolean
  json?: boolean
}

export const exportCommand: CommandDefinition<ExportCommandOptions> = {
  description:
    'Writes the warehouse as Parquet files for other query engines. Each table has a folder; tables whose rows have a time have a folder for each month in it. views.sql creates views of them in DuckDB. manifest.json is written last. All files show the same instant, and the daemon may keep writing. A later export into the same folder writes only what changed. Deleted rows are included, with their _deleted_at. Needs no API settings.',
  arguments: [
    new Argument('<format>', 'format of the files').choices(['parquet']),
    new Argument('<folder>', 'new or empty folder, or one with an earlier export'),
  ],
  settings: settingsOfSections('database'),
  options: [
    new Option(
      '--tables <tables>',
      'only these tables (names of tables or folders), separated by commas',
    ).argParser(parseTableNames),
    new Option(
      '--since <instant>',
      'write only months from this UTC day or RFC 3339 instant on; earlier months stay as they are',
    ).argParser(parsedAs(instant)),
    new Option('--full', 'write all files again, also unchanged ones'),
    new Option('--json', 'print one JSON summary on standard output'),
  ],
  examples: [
    ['parley export parquet /data/parley', 'everything the first time, later only changes'],
    [
      'parley export parquet /data/parley --tables messages,meetings --since 2026-01-01',
      'two tables, this year only',
    ],
  ],
  async run(context, input) {
    const { settings } = loadCommandSettings(context, input, { requireApi: false })
    const [{ openDatabase }, { databaseError }, { requireWarehouse }, { openTarget }, { exportWarehouse }] =
      await Promise.all([
        import('../store/file/open.ts'),
        import('../store/database/sqlite-errors.ts'),
        import('../store/status/status.ts'),
        import('../export/target.ts'),
        import('../export/export.ts'),
      ])
    const { noteExport } = await import('../store/sync/export-notes.ts')
    const clock = systemClock()
    const folder = resolve(context.cwd, input.args[1] ?? '')
    const { path } = settings.database
    requireWarehouse(path)
    const { tables, since, full = false, json = false } = input.options
    const began = clock.elapsed()
    const db = openDatabase({ path, readonly: true })
    const progress = createTableProgress(context, () => clock.elapsed())
    try {
      const target = openTarget(folder, settings.database.mode, clock)
      try {
        const summary = await exportWarehouse({
          db,
          target,
          clock,
          version: context.version,
          tables,
          since,
          full,
          signal: context.signal,
          onProgress: progress.show,
        })
        noteExport(path, { folder, purgedAt: summary.purged_at ?? '' })
        progress.end()
        const durationMs = Math.round(clock.elapsed() - began)
        context.stdout.write(
          json
            ? jsonLine({ folder, ...summary, duration_ms: durationMs })
            : `${summaryText(tables ? `The chosen tables in ${folder} have` : `${folder} has`, summary, durationMs)}\n`,
        )
        return EXIT_STATUS.done
      } finally {
        target.close()
      }
    } catch (error) {
      progress.end()
      throw databaseError(error, path)
    } finally {
      db.close()
    }
  },
}

const COLUMNS: readonly TableColumn<TableSummary>[] = [
  { title: 'table', cell: row => shortTableName(row.table) },
  { title: 'rows', align: 'right', cell: row => wholeNumber(row.rows) },
  { title: 'size', align: 'right', cell: row => sizeText(row.bytes) },
  { title: 'files', align: 'right', cell: row => wholeNumber(row.files) },
  { title: 'written', align: 'right', cell: row => wholeNumber(row.files_written) },
]

/** @param subject the beginning of the sentence about rows, with its verb */
function summaryText(subject: string, summary: ExportSummary, durationMs: number): string {
  const sum = (of: (row: TableSummary) => number) => summary.tables.reduce((total, row) => total + of(row), 0)
  const files = sum(row => row.files)
  const written = sum(row => row.files_written)
  const removed = summary.files_removed === 0 ? '' : ` Removed ${countText(summary.files_removed, 'file')}.`
  return [
    ...table(COLUMNS, summary.tables),
    '',
    `${subject} ${countText(
      sum(row => row.rows),
      'row',
    )}, ${sizeText(sum(row => row.bytes))} in ${countText(files, 'file')}.`,
    `Wrote ${wholeNumber(written)} of them (${sizeText(sum(row => row.bytes_written))}) in ${durationText(durationMs)}.${removed}`,
    summary.completeness,
  ].join('\n')
}
