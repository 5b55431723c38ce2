import { existsSync } from 'node:fs'
import { Argument, Option } from 'commander'
import { systemClock } from '../base/clock.ts'
import { EXIT_STATUS, type ExitStatus, StopError } from '../base/errors.ts'
import { jsonLine, safeMultilineText } from '../base/safe-text.ts'
import { sizeText } from '../base/size-text.ts'
import { wholeNumber } from '../base/whole-number.ts'
import * as kinds from '../config/kinds.ts'
import { isMendedByPublishing, type VerifyFault } from '../publish/verify/fault.ts'
import type { VerifySummary } from '../publish/verify/verify.ts'
import { type TableColumn, table } from '../terminal/table.ts'
import { countText, durationText } from '../terminal/wording.ts'
import { type CommandDefinition, loadCommandSettings } from './base/command.ts'
import { parsedAs } from './base/option-values.ts'
import { TARGET_SETTINGS } from './publish.ts'
import { createTableProgress, shortTableName } from './table-progress.ts'

export interface PublishVerifyOptions {
  location?: string
  json?: boolean
}

export const publishVerifyCommand: CommandDefinition<PublishVerifyOptions> = {
  description:
    'Reads every file of a target of parley publish, and checks it: the rows and a digest of their values, for each part of each table. If the warehouse is there, parts are also compared with it, and the target may not have content of rows that it has purged, also not in files that no publication names. Changes nothing. Exit status: 0 without faults, 73 with damage, 75 when the next publication mends all faults: purged content and wrong version hints.',
  arguments: [new Argument('<target>', 'a folder or s3://bucket/prefix with publications')],
  settings: TARGET_SETTINGS,
  options: [
    new Option('--location <url>', 'where readers find the target, as given to parley publish').argParser(
      parsedAs(kinds.location),
    ),
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
    const { openTargetReader, parseTarget, TARGET_SECRETS } = await import('../publish/storage/open.ts')
    const target = parseTarget(input.args[0] ?? '', context.cwd)
    const { settings } = loadCommandSettings(context, input, {
      requireApi: false,
      secrets: TARGET_SECRETS[target.by],
    })
    const { location, json = false } = input.options
    if (target.by === 'folder' && !existsSync(target.path)) throw missingFolder(target.path)
    const [{ openDatabase }, { databaseError }, { verifyTarget }] = await Promise.all([
      import('../store/file/open.ts'),
      import('../store/database/sqlite-errors.ts'),
      import('../publish/verify/verify.ts'),
    ])
    const clock = systemClock()
    const { path } = settings.database
    const { signal } = context
    const began = clock.elapsed()
    const progress = createTableProgress(context, () => clock.elapsed())
    const db = existsSync(path) ? openDatabase({ path, readonly: true }) : undefined
    try {
      const storage = await openTargetReader(target, { settings, location, clock, signal })
      const verifying = { db, storage, clock, signal, onProgress: progress.show }
      const summary = await verifyTarget(verifying).finally(storage.close)
      progress.end()
      const place = { target: storage.name, database: path, durationMs: Math.round(clock.elapsed() - began) }
      context.stdout.write(
        json
          ? jsonLine({ target: storage.name, ...summary, duration_ms: place.durationMs })
          : `${safeMultilineText(verifiedText(summary, place))}\n`,
      )
      return statusOf(summary)
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

const COLUMNS: readonly TableColumn<VerifySummary['tables'][number]>[] = [
  { title: 'table', cell: row => shortTableName(row.folder) },
  { title: 'rows', align: 'right', cell: row => wholeNumber(row.rows) },
  { title: 'size', align: 'right', cell: row => sizeText(row.bytes) },
  { title: 'files', align: 'right', cell: row => wholeNumber(row.files) },
  { title: 'earlier', align: 'right', cell: row => wholeNumber(row.earlier_files) },
  { title: 'unnamed', align: 'right', cell: row => wholeNumber(row.unnamed_files) },
  { title: 'changed', align: 'right', cell: row => wholeNumber(row.parts_changed) },
]

interface VerifiedPlace {
  target: string
  database: string
  durationMs: number
}

function verifiedText(summary: VerifySummary, { target, database, durationMs }: VerifiedPlace): string {
  const { publication, published_at, tables, faults, compared } = summary
  const files = sumOf(tables, row => row.files + row.earlier_files)
  const found = faults.length === 0 ? 'no fault' : countText(faults.length, 'fault')
  const changed = sumOf(tables, row => row.parts_changed)
  const unnamed = sumOf(tables, row => row.unnamed_files)
  return [
    ...table(COLUMNS, tables),
    '',
    ...faults.flatMap(faultLines),
    `Checked publication ${publication} of ${published_at} in ${target}, and what earlier ones keep: ${countText(files, 'file')} in ${durationText(durationMs)}, ${found}.`,
    ...(unnamed === 0 ? [] : [unnamedText(unnamed)]),
    compared
      ? changedText(changed)
      : `The warehouse was not compared, and purged rows were not searched for: there is no ${database}.`,
  ].join('\n')
}

const sumOf = <Row>(rows: readonly Row[], of: (row: Row) => number): number =>
  rows.reduce((total, row) => total + of(row), 0)

const faultLines = ({ table: name, part, file, message, hint }: VerifyFault): string[] => [
  `${name}, ${part === null ? '' : `part ${shortTableName(part)}, `}${file}: ${message}.`,
  `  hint: ${hint}`,
]

const unnamedText = (files: number): string =>
  `No publication names ${countText(files, 'other file')}: a publication that was interrupted has left them, one is in progress, or another program wrote them. Later publications remove what was left.`

const changedText = (parts: number): string =>
  parts === 0
    ? 'No part has changed in the warehouse since.'
    : `${countText(parts, 'part')} changed in the warehouse since. The next publication that has these tables writes them.`
