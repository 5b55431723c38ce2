import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { Argument, Option } from 'commander'
import { systemClock } from '../clock.ts'
import type { Settings } from '../config/load-settings.ts'
import { EXIT_STATUS, type ExitStatus, StopError } from '../errors.ts'
import type { ClickHouseAddress } from '../publish/clickhouse/address.ts'
import type { DatabaseVerifySummary } from '../publish/clickhouse/verify/verify.ts'
import type { PublishTarget } from '../publish/storage/open.ts'
import { isMendedByPublishing } from '../publish/verify/fault.ts'
import type { VerifyOptions, VerifySummary } from '../publish/verify/verify.ts'
import { jsonLine, safeLines } from '../safe-text.ts'
import { type CommandDefinition, loadCommandSettings } from './command.ts'
import { TARGET_SETTINGS } from './publish.ts'
import { databaseText, filesText, type VerifiedPlace } from './publish-verify-text.ts'
import { createTableProgress } from './table-progress.ts'

export interface PublishVerifyOptions {
  location?: string
  json?: boolean
}

export const publishVerifyCommand: CommandDefinition<PublishVerifyOptions> = {
  description:
    'Reads every file of a target of parley publish, or every row of a ClickHouse database, and checks it: the rows and a digest of their values, for each part of each table. If the warehouse is there, parts are also compared with it, and the target may not have content of rows that it has purged. Changes nothing; a user of ClickHouse needs only SELECT. Exit status: 0 without faults, 73 with damage, 75 when the only faults are purged rows, which the next publication removes.',
  arguments: [
    new Argument(
      '<target>',
      'a folder, s3://bucket/prefix or clickhouse://host:8123/database with publications',
    ),
  ],
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
    [
      'parley publish verify clickhouse://db.example.com:8123/parley --clickhouse-user reader --clickhouse-password-file reader.password',
      'all rows of the server',
    ],
  ],
  async run(context, input) {
    const { parsePublicationTarget, refuseLocation, SECRETS_OF_TARGETS } = await import(
      '../publish/target.ts'
    )
    const named = input.args[0] ?? ''
    const target = parsePublicationTarget(named, context.cwd)
    const { settings } = loadCommandSettings(context, input, {
      requireApi: false,
      secrets: SECRETS_OF_TARGETS[target.by],
    })
    const { location, json = false } = input.options
    if (target.by === 'clickhouse') refuseLocation(location)
    if (target.by === 'folder' && !existsSync(target.path)) throw missingFolder(target.path)
    const [{ openDatabase }, { databaseError }] = await Promise.all([
      import('../store/database/open.ts'),
      import('../store/database/sqlite-errors.ts'),
    ])
    const clock = systemClock()
    const path = resolve(context.cwd, settings.database.path)
    const { signal } = context
    const began = clock.elapsed()
    const progress = createTableProgress(context, () => clock.elapsed())
    const db = existsSync(path) ? openDatabase({ path, readonly: true }) : undefined
    try {
      const work: VerifyWork = { db, settings, location, clock, signal, onProgress: progress.show }
      const verified = await (target.by === 'clickhouse'
        ? verifiedDatabase({ ...work, address: target.address, named })
        : verifiedFiles(target, work))
      progress.end()
      const durationMs = Math.round(clock.elapsed() - began)
      const { target: name, summary, status, textOf } = verified
      context.stdout.write(
        json
          ? jsonLine({ target: name, ...summary, duration_ms: durationMs })
          : `${safeLines(textOf({ target: name, database: path, durationMs }))}\n`,
      )
      return status
    } catch (error) {
      progress.end()
      throw databaseError(error, path)
    } finally {
      db?.close()
    }
  },
}

interface VerifyWork extends Omit<VerifyOptions, 'storage'> {
  settings: Pick<Settings, 'publish' | 'database'>
  location: string | undefined
}

interface Verified {
  /** As messages name it. */
  target: string
  summary: VerifySummary | DatabaseVerifySummary
  status: ExitStatus
  textOf(place: VerifiedPlace): string
}

async function verifiedFiles(target: PublishTarget, work: VerifyWork): Promise<Verified> {
  const [{ openTargetReader }, { verifyTarget }] = await Promise.all([
    import('../publish/storage/open.ts'),
    import('../publish/verify/verify.ts'),
  ])
  const storage = await openTargetReader(target, work)
  try {
    const summary = await verifyTarget({ ...work, storage })
    return {
      target: storage.name,
      summary,
      status: statusOf(summary),
      textOf: place => filesText(summary, place),
    }
  } finally {
    storage.close()
  }
}

async function verifiedDatabase({
  settings,
  address,
  named,
  ...work
}: VerifyWork & { address: ClickHouseAddress; named: string }): Promise<Verified> {
  const { verifyDatabase } = await import('../publish/clickhouse/verify/verify.ts')
  const { clickhouseUser: user, clickhousePassword: password } = settings.publish
  const summary = await verifyDatabase({ ...work, address, target: named, user, password })
  return {
    target: address.name,
    summary,
    status: statusOf(summary),
    textOf: place => databaseText(summary, place),
  }
}

function missingFolder(path: string): StopError {
  return new StopError(`There is no folder ${path}`, {
    code: 'publish-nothing',
    hint: 'Name the folder of a publication.',
    exitStatus: EXIT_STATUS.usage,
  })
}

function statusOf({ faults }: Verified['summary']): ExitStatus {
  if (faults.length === 0) return EXIT_STATUS.done
  return faults.every(isMendedByPublishing) ? EXIT_STATUS.unfinished : EXIT_STATUS.databaseUnavailable
}
