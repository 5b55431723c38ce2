import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { formerTargetFault } from '../../config/kinds.ts'
import type { Settings } from '../../config/loaded-settings.ts'
import type { S3Options } from './s3.ts'
import type { BucketCredentials } from './s3-client.ts'
import type { Storage } from './storage.ts'
import { folderReader, type TargetReader } from './target-reader.ts'

/** Opens the target of a publication: a folder or a bucket. */

export type PublishTarget = { readonly by: 'folder'; readonly path: string } | BucketTarget

/** The prefix has no slashes at its ends, and is empty for the whole bucket. */
type BucketTarget = { readonly by: 's3' } & Readonly<Pick<S3Options, 'bucket' | 'prefix'>>

/** The secret settings that a target needs. */
export const TARGET_SECRETS = {
  folder: [],
  s3: ['publish.s3_secret_access_key', 'publish.s3_session_token', 'api.proxy'],
} as const

/** @throws StopError (exit status 64) when the text is neither a folder nor `s3://bucket/prefix` */
export function parseTarget(text: string, cwd: string): PublishTarget {
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z\d][a-z\d.-]{1,61}[a-z\d])(?:\/+(.*?))?\/*$/.exec(text) ?? []
  const isUsable = prefix === '' || prefix.split('/').every(isUsablePart)
  if (bucket !== undefined && !bucket.includes('..') && isUsable) return { by: 's3', bucket, prefix }
  if (text !== '' && !/^(s3[an]?:|[a-z][a-z\d+.-]*:\/\/)/i.test(text))
    return { by: 'folder', path: resolve(cwd, text) }
  const details = { code: 'publish-bad-target', exitStatus: EXIT_STATUS.usage }
  const former = formerTargetFault(text)
  if (former !== undefined) throw new StopError(`"${shown(text)}" is not a target: ${former}`, details)
  throw new StopError(`"${shown(text)}" is not a target: expected a folder or s3://bucket/prefix`, {
    ...details,
    hint: 'The name of a bucket has 3 to 63 lowercase letters, digits, dots and hyphens. A prefix has no empty part, no part of dots, and no ?, # or \\.',
  })
}

/** URLs drop path parts of dots, and readers of Iceberg take `?` and `#` for the end of a path. */
const isUsablePart = (part: string): boolean => !/^\.{0,2}$|[?#\\\p{C}]/u.test(part)

/** The target as messages and `sync_publications` name it, without credentials. */
export function targetName(target: PublishTarget): string {
  if (target.by === 'folder') return target.path
  return target.prefix === '' ? `s3://${target.bucket}` : `s3://${target.bucket}/${target.prefix}`
}

/** Cuts the text, and removes a password that a URL may contain. */
const shown = (text: string): string => text.replace(/\/\/[^/]*@/, '//…@').slice(0, 200)

/** The settings that a target needs. They are plain data and may contain secrets. */
export type TargetSettings = Pick<Settings, 'publish' | 'database' | 'proxies'>

export interface OpenTargetOptions {
  settings: TargetSettings
  /** Where readers find the target; undefined: at its path or `s3://` URL. */
  location: string | undefined
  clock: Clock
  signal: AbortSignal
  /** Returns a number from 0 to below 1, for the waits between two tries. Default: `Math.random` */
  random?: () => number
}

/**
 * @throws StopError (exit status 64) when the target has other content, 73 when it cannot be used, 75 when it is
 * locked, 78 without credentials
 */
export async function openTargetStorage(target: PublishTarget, options: OpenTargetOptions): Promise<Storage> {
  if (target.by === 'folder') {
    const { settings, location, clock } = options
    const { openFolder } = await import('./folder.ts')
    return openFolder({ path: target.path, location, mode: settings.database.mode, clock })
  }
  const { openS3 } = await import('./s3.ts')
  return openS3(bucketOptions(target, options))
}

/**
 * Refuses a new target in whose location readers see the end of a path too early. An earlier target stays: some readers
 * take its location as it is.
 * @throws StopError (exit status 64)
 */
export async function refuseUnusableLocation(
  reader: TargetReader,
  location: string | undefined,
): Promise<void> {
  const place = location ?? reader.name
  const [end] = /[?#]/.exec(place) ?? []
  if (end === undefined || (await reader.holds()) === 'ours') return
  throw new StopError(`Readers cannot find files below ${place}: they take ${end} for the end of a path`, {
    code: 'publish-bad-location',
    hint: `${
      location === undefined
        ? 'Publish to a folder without ? and # in its path, or name by --location or publish.location a URL without them at which readers find it.'
        : 'Name by --location or publish.location a URL without ? and #.'
    } Nothing was written.`,
    exitStatus: EXIT_STATUS.usage,
  })
}

/** Opens the target to read it while publications go on. @throws StopError (exit status 78) without credentials */
export async function openTargetReader(
  target: PublishTarget,
  options: OpenTargetOptions,
): Promise<TargetReader> {
  if (target.by === 'folder') return folderReader(target.path, options.location)
  const { openS3Reader } = await import('./s3.ts')
  return openS3Reader(bucketOptions(target, options))
}

function bucketOptions(
  target: BucketTarget,
  { settings: { publish, proxies }, location, clock, signal, random = Math.random }: OpenTargetOptions,
): S3Options {
  const { bucket, prefix } = target
  const { s3Endpoint: endpoint, s3Region: region, s3PathStyle: pathStyle } = publish
  const credentials = bucketCredentials(publish)
  const client = { name: targetName(target), bucket, endpoint, region, pathStyle, credentials, proxies }
  return { ...client, prefix, location, temporary: tmpdir(), clock, signal, random }
}

/**
 * @returns undefined when the settings have no credentials
 * @throws StopError (exit status 78) when they have only some of them
 */
function bucketCredentials({
  s3AccessKeyId: accessKeyId,
  s3SecretAccessKey: secretAccessKey,
  s3SessionToken: sessionToken,
}: Settings['publish']): BucketCredentials | undefined {
  if (accessKeyId !== undefined && secretAccessKey !== undefined)
    return { accessKeyId, secretAccessKey, sessionToken }
  if (accessKeyId === undefined && secretAccessKey === undefined && sessionToken === undefined)
    return undefined
  const missing = [
    ...(accessKeyId === undefined ? ['publish.s3_access_key_id'] : []),
    ...(secretAccessKey === undefined ? ['publish.s3_secret_access_key'] : []),
  ]
  const is = missing.length === 1 ? 'is' : 'are'
  throw new StopError(`${missing.join(' and ')} ${is} not set, but the rest of the credentials is`, {
    code: 'bad-settings',
    hint: 'Set publish.s3_access_key_id and name the file with its secret by publish.s3_secret_access_key_file, or set no credentials, so that those of the environment, the profile or the role apply.',
    exitStatus: EXIT_STATUS.settings,
  })
}
