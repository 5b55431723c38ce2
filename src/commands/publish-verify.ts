import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { Argument, Option } from 'commander'
import { systemClock } from '../clock.ts'
import { EXIT_STATUS, type ExitStatus, StopError } from '../errors.ts'
import { isMendedByPublishing } from '../publish/verify/fault.ts'
import type { VerifySummary } from '../publish/verify/verify.ts'
import { jsonLine, safeLines } from '../safe-text.ts'
import { sizeText } from '../size-text.ts'
import { type TableColumn, table } from '../terminal/table.ts'
import { countText, durationText } from '../terminal/wording.ts'
import { wholeNumber } from '../whole-number.ts'
import { type CommandDefinition, loadCommandSettings } from './command.ts'
import { TARGET_SETTINGS } from './publish.ts'
import { createTableProgress, shortTableName } from './table-progress.ts'

export interface PublishVerifyOptions {
  location?: string
  json?: boolean
}

export const publishVerifyCommand: CommandDefinition<PublishVerifyOptions> = {
  description:
    'Reads every file of a target of parley publish and checks it: its size, its rows, and the digest of its values, for each part of each table. If the warehouse is there, parts are also compared with it, and no file may have content of rows that it has purged. Changes nothing. Exit status: 0 without faults, 73 with damage, 75 when the only faults are purged rows, which the next publication removes.',
  arguments: [new Argument('<target>', 'a folder or s3://bucket/prefix with publications')],
  settings: TARGET_SETTINGS,
  options: [
    new Option('--location <url>', 'where readers find the target, as given to parley publish'),
    new Option('--json', 'print one JSON summary on standard output'),
  ],
  examples: [
    ['parley publish verify /data/lake', 'all files, against the warehouse'],
    [
      'parley publish verify /data/lake --json | jq .faults',
      'only the faults: table, part, file, what is wrong and what to do',
    ],
  ],
  async run(context, input) {
    const [{ openTargetReader, TARGET_SECRETS }, { parseTargetOfFiles }] = await Promise.all([
      import('../publish/storage/open.ts'),
      import('../publish/target.ts'),
    ])
    const target = parseTargetOfFiles(input.args[0] ?? '', context.cwd)
    const { settings } = loadCommandSettings(context, input, {
      requireApi: false,
      secrets: TARGET_SECRETS[target.by],
    })
    if (target.by === 'folder' && !existsSync(target.path)) throw missingFolder(target.path)
    const [{ openDatabase }, { databaseError }, { verifyTarget }] = await Promise.all([
      import('../store/database/open.ts'),
      import('../store/database/sqlite-errors.ts'),
      import('../publish/verify/verify.ts'),
    ])
    const clock = systemClock()
    const path = resolve(context.cwd, settings.database.path)
    const { location, json = false } = input.options
    const { signal } = context
    const began = clock.elapsed()
    const progress = createTableProgress(context, () => clock.elapsed())
    const db = existsSync(path) ? openDatabase({ path, readonly: true }) : undefined
    try {
      const storage = await openTargetReader(target, { settings, location, clock, signal })
      try {
        const summary = await verifyTarget({ db, storage, clock, signal, onProgress: progress.show })
        progress.end()
        const durationMs = Math.round(clock.elapsed() - began)
        const facts = { target: storage.name, database: path, durationMs }
        context.stdout.write(
          json
            ? jsonLine({ target: storage.name, ...summary, duration_ms: durationMs })
            : `${safeLines(summaryText(summary, facts))}\n`,
        )
        return statusOf(summary)
      } finally {
        storage.close()
      }
    } catch (error) {
      progress.end()
      throw databaseError(error, path)
    } finally {
      db?.close()
    }
  },
}

function missingFolder(path: string): StopError {
  return new StopError(`There is no folder ${path}`, {
    code: 'publish-nothing',
    hint: 'Name the folder of a publication.',
    exitStatus: EXIT_STATUS.usage,
  })
}

function statusOf({ faults }: VerifySummary): ExitStatus {
  if (faults.length === 0) return EXIT_STATUS.done
  return faults.every(isMendedByPublishing) ? EXIT_STATUS.unfinished : EXIT_STATUS.databaseUnavailable
}

type VerifiedTable = VerifySummary['tables'][number]

const COLUMNS: readonly TableColumn<VerifiedTable>[] = [
  { title: 'table', cell: row => shortTableName(row.folder) },
  { title: 'rows', align: 'right', cell: row => wholeNumber(row.rows) },
  { title: 'size', align: 'right', cell: row => sizeText(row.bytes) },
  { title: 'files', align: 'right', cell: row => wholeNumber(row.files) },
  { title: 'earlier', align: 'right', cell: row => wholeNumber(row.earlier_files) },
  { title: 'changed', align: 'right', cell: row => wholeNumber(row.parts_changed) },
]

interface VerifiedPlace {
  target: string
  database: string
  durationMs: number
}

function summaryText(summary: VerifySummary, { target, database, durationMs }: VerifiedPlace): string {
  const { tables, faults, compared } = summary
  const sum = (of: (row: VerifiedTable) => number) => tables.reduce((total, row) => total + of(row), 0)
  const files = sum(row => row.files + row.earlier_files)
  return [
    ...table(COLUMNS, tables),
    '',
    ...faults.flatMap(({ table: name, part, file, message, hint }) => [
      `${name}, ${part === null ? '' : `part ${shortTableName(part)}, `}${file}: ${message}.`,
      `  hint: ${hint}`,
    ]),
    `Checked publication ${summary.publication} of ${summary.published_at} in ${target}, and what earlier ones keep: ${countText(files, 'file')} in ${durationText(durationMs)}, ${faults.length === 0 ? 'no fault' : countText(faults.length, 'fault')}.`,
    compared
      ? changedText(sum(row => row.parts_changed))
      : `The warehouse was not compared, and purged rows were not searched for: there is no ${database}.`,
  ].join('\n')
}

const changedText = (parts: number): string =>
  parts === 0
    ? 'No part has changed in the warehouse since.'
    : `${countText(parts, 'part')} changed in the warehouse since. The next publication writes them.`
