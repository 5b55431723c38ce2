import type { Clock } from '../clock.ts'
import type { Settings } from '../config/load-settings.ts'
import { EXIT_STATUS, StopError } from '../errors.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { type ClickHouseAddress, parseClickHouseAddress } from './clickhouse/address.ts'
import type { PublishProgress } from './publish.ts'
import {
  openTargetStorage,
  type PublishTarget,
  parseTarget,
  TARGET_SECRETS,
  targetName,
} from './storage/open.ts'
import type { TargetSummary } from './summary.ts'

/** Chooses how to publish by the target: Iceberg tables in a folder or a bucket, or tables of a ClickHouse database. */

export type PublicationTarget =
  | PublishTarget
  | { readonly by: 'clickhouse'; readonly address: ClickHouseAddress }

/** The secret settings that a target needs. */
export const SECRETS_OF_TARGETS = {
  ...TARGET_SECRETS,
  clickhouse: ['publish.clickhouse_password'],
} as const

/** @throws StopError 64 when the text is none of a folder, `s3://bucket/prefix` and `clickhouse://host/database` */
export function parsePublicationTarget(text: string, cwd: string): PublicationTarget {
  const address = parseClickHouseAddress(text)
  return address ? { by: 'clickhouse', address } : parseTarget(text, cwd)
}

/** @throws StopError 64 also for a ClickHouse database, which has no files to verify */
export function parseTargetOfFiles(text: string, cwd: string): PublishTarget {
  const target = parsePublicationTarget(text, cwd)
  if (target.by !== 'clickhouse') return target
  throw new StopError(`${target.address.name} is a ClickHouse database, which has no files to verify`, {
    code: 'publish-bad-target',
    hint: 'Name a folder or s3://bucket/prefix. Publications to ClickHouse compare the rows of the server themselves.',
    exitStatus: EXIT_STATUS.usage,
  })
}

/** The target as messages and `sync_publications` name it, without credentials. */
export const publicationTargetName = (target: PublicationTarget): string =>
  target.by === 'clickhouse' ? target.address.name : targetName(target)

export interface PublicationOptions {
  settings: Pick<Settings, 'publish' | 'database'>
  /** Opened read-only. */
  db: Sqlite
  /** Where readers find the files of the target; undefined: where it is. */
  location: string | undefined
  clock: Clock
  /** Of this program. */
  version: string
  keep: number
  /** Names of the tables to publish; undefined: all. */
  tables: readonly string[] | undefined
  /** Compares everything, also what is not noted as changed. */
  full: boolean
  signal: AbortSignal
  onProgress(progress: PublishProgress): void
}

export async function publishTo(
  target: PublicationTarget,
  options: PublicationOptions,
): Promise<TargetSummary> {
  if (target.by === 'clickhouse') return publishToDatabase(target.address, options)
  const { publishWarehouse } = await import('./publish.ts')
  const storage = await openTargetStorage(target, options)
  try {
    const { mode } = options.settings.database
    return await publishWarehouse({ ...options, storage, mode })
  } finally {
    storage.close()
  }
}

async function publishToDatabase(
  address: ClickHouseAddress,
  options: PublicationOptions,
): Promise<TargetSummary> {
  const { clickhouseUser: user, clickhousePassword: password } = options.settings.publish
  if (options.location !== undefined) throw locationError()
  const { publishToClickHouse } = await import('./clickhouse/publish.ts')
  return publishToClickHouse({ ...options, address, user, password })
}

function locationError(): StopError {
  return new StopError('A location is for targets of files, and a ClickHouse database has none', {
    code: 'publish-location',
    hint: 'Leave --location out, and publish.location in the settings.',
    exitStatus: EXIT_STATUS.usage,
  })
}
