import { DAY_MS } from '../../base/clock.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import type { BucketEndpoint, BucketPlace } from './s3-address.ts'
import {
  type BucketClient,
  type BucketClientOptions,
  createBucketClient,
  type ObjectContent,
} from './s3-client.ts'
import { createDownloads } from './s3-downloads.ts'
import {
  type BucketFailure,
  type BucketWords,
  bucketError,
  conditionError,
  noBucketError,
} from './s3-faults.ts'
import { createUploads, MAX_OBJECT_BYTES } from './s3-uploads.ts'
import type { Storage } from './storage.ts'
import type { TargetReader } from './target-reader.ts'
import { createTemporaryFolder } from './temporary-folder.ts'

export interface S3Options extends BucketPlace, Omit<BucketClientOptions, 'bucket' | 'name'> {
  /** Where readers find the target. Default: `s3://bucket/prefix`. */
  location: string | undefined
  /** The folder in which files wait for their upload, in a new folder that only this user can read. */
  temporary: string
}

/** The first object of a target. It marks the prefix as one that parley publishes to. */
const MARK = '.parley-publish'

/** How old an object is before no publication in progress counts on it. */
const SETTLED_MS = DAY_MS

/**
 * A prefix of a bucket as a target. There is no lock: `writeIfAbsent` decides between two processes that publish at the
 * same time.
 * @throws StopError 64 when the prefix has other objects, 73 when the bucket cannot be used
 */
export async function openS3(options: S3Options): Promise<Storage> {
  const { location, temporary, clock, signal } = options
  const closing = new AbortController()
  const name = nameOf(options)
  const stop = AbortSignal.any([signal, closing.signal])
  const bucket = createBucketClient({ ...options, name, signal: stop })
  const objects = objectsOf(options, bucket)
  const close = () => {
    closing.abort(new Error('The target is closed'))
    bucket.close()
  }
  try {
    await claimPrefix(objects, name)
    const folder = createTemporaryFolder(temporary, clock)
    const uploads = createUploads({ folder: folder.path, put: objects.put })
    return {
      name,
      location: location ?? name,
      isLocked: false,
      read: objects.read,
      write: objects.put,
      writeIfAbsent: objects.putOwn,
      replace: objects.put,
      beginFile: uploads.begin,
      uploaded: uploads.finished,
      list: async path => (await objects.list(path)).map(found => found.path),
      settled: async path =>
        (await objects.list(path)).filter(({ ageMs }) => ageMs >= SETTLED_MS).map(found => found.path),
      remove: objects.remove,
      // The errors of a bucket already say what to do.
      fault: error => error,
      close() {
        close()
        folder.remove()
      },
    }
  } catch (error) {
    close()
    throw error
  }
}

/** Opens a prefix without a request, so a bucket that cannot be used is an error of the first read. */
export function openS3Reader(options: S3Options): TargetReader {
  const name = nameOf(options)
  const bucket = createBucketClient({ ...options, name })
  const objects = objectsOf(options, bucket)
  const downloads = createDownloads({ ...options, readRange: objects.readRange })
  return {
    name,
    location: options.location ?? name,
    read: objects.read,
    open: downloads.open,
    list: async path => (await objects.list(path)).map(found => found.path),
    holds: () => contentOf(objects),
    close() {
      bucket.close()
      downloads.close()
    },
  }
}

const nameOf = ({ bucket, prefix }: BucketPlace): string =>
  prefix === '' ? `s3://${bucket}` : `s3://${bucket}/${prefix}`

interface FoundObject {
  path: string
  /** By the clock of the server. 0 when that is unknown. */
  ageMs: number
}

/** The objects below the prefix, by their paths in the target. Each verb throws a StopError of status 73. */
interface Objects {
  words(): BucketWords
  read(path: string): Promise<Buffer | undefined>
  /** The bytes from a place on, fewer than asked for at the end. Undefined where there is no such object. */
  readRange(path: string, from: number, bytes: number): Promise<Buffer | undefined>
  put(path: string, content: ObjectContent): Promise<void>
  putIfAbsent(path: string, bytes: Buffer): Promise<'written' | 'exists'>
  /** As `putIfAbsent`, for content that no other process writes. @returns whether the object is ours */
  putOwn(path: string, bytes: Buffer): Promise<boolean>
  /** @param atMost ends the listing early; without it, it has all objects */
  list(folder: string, atMost?: number): Promise<readonly FoundObject[]>
  remove(path: string): Promise<void>
}

const MAX_PAGE = 1000

function objectsOf(options: BucketPlace & BucketEndpoint, bucket: BucketClient): Objects {
  const prefix = options.prefix === '' ? '' : `${options.prefix}/`
  const words = (): BucketWords => ({
    name: nameOf(options),
    bucket: options.bucket,
    region: options.region,
    url: bucket.url(),
  })
  /** Returns the status, if it is an expected one. */
  const refuse = (failure: BucketFailure, ...expected: number[]): number => {
    if ('lost' in failure || failure.code === 'NoSuchBucket' || !expected.includes(failure.status))
      throw bucketError(words(), failure)
    return failure.status
  }
  const read = async (path: string): Promise<Buffer | undefined> => {
    const answer = await bucket.get(prefix + path)
    if ('output' in answer) return answer.output
    refuse(answer, 404)
    return undefined
  }
  const putIfAbsent = async (path: string, bytes: Buffer): Promise<'written' | 'exists'> => {
    const answer = await bucket.put(prefix + path, bytes, true)
    if ('output' in answer) return 'written'
    refuse(answer, 409, 412)
    return 'exists'
  }
  return {
    words,
    read,
    async readRange(path, from, bytes) {
      const answer = await bucket.get(prefix + path, { from, bytes })
      if ('output' in answer) return answer.output
      return refuse(answer, 404, 416) === 404 ? undefined : Buffer.alloc(0)
    },
    putIfAbsent,
    async put(path, content) {
      if (!Buffer.isBuffer(content) && content.bytes > MAX_OBJECT_BYTES) throw tooLargeError(path, words())
      const answer = await bucket.put(prefix + path, content)
      if (!('output' in answer)) refuse(answer)
    },
    async putOwn(path, bytes) {
      if ((await putIfAbsent(path, bytes)) === 'written') return true
      // The answer to an earlier try may have been lost after the object was stored.
      return (await read(path))?.equals(bytes) ?? false
    },
    async list(folder, atMost = Number.POSITIVE_INFINITY) {
      const below = folder === '' ? prefix : `${prefix}${folder}/`
      const found: FoundObject[] = []
      let token: string | undefined
      do {
        const answer = await bucket.list(below, Math.min(atMost, MAX_PAGE), token)
        if (!('output' in answer)) throw bucketError(words(), answer)
        const page = answer.output
        if (page === undefined || (page.token !== undefined && page.token === token))
          throw noBucketError(words())
        token = page.token
        const inside = page.objects.filter(({ key }) => key.startsWith(below) && !key.endsWith('/'))
        found.push(...inside.map(({ key, ageMs }) => ({ path: key.slice(prefix.length), ageMs })))
      } while (token !== undefined && found.length < atMost)
      return found
    },
    async remove(path) {
      const answer = await bucket.remove(prefix + path)
      if (!('output' in answer)) refuse(answer, 404)
    },
  }
}

/**
 * Refuses a prefix with other objects, of which a sweep could remove some, and marks a new one. The mark is the first
 * object, so it exists when others of parley do. Writing it also shows whether the server honours If-None-Match: a
 * server that ignores it would let two publications mix.
 */
async function claimPrefix(objects: Objects, name: string): Promise<void> {
  if ((await contentOf(objects)) === 'others') throw foreignError(name)
  const { words, putIfAbsent } = objects
  const mark = Buffer.from('The objects next to this one are written by parley publish.\n')
  if ((await putIfAbsent(MARK, mark)) === 'exists') return
  if ((await putIfAbsent(MARK, mark)) === 'written') throw conditionError(words())
}

async function contentOf({ list, read }: Objects): ReturnType<TargetReader['holds']> {
  const [[first], mark] = await Promise.all([list('', 1), read(MARK)])
  if (mark !== undefined) return 'ours'
  return first === undefined ? 'nothing' : 'others'
}

function foreignError(name: string): StopError {
  return new StopError(`${name} has objects that parley publish did not write`, {
    code: 'publish-foreign',
    hint: 'Name a prefix that is empty or a target of parley publish; this one was not changed.',
    exitStatus: EXIT_STATUS.usage,
  })
}

function tooLargeError(path: string, { name }: BucketWords): StopError {
  return new StopError(`A file for ${name} is larger than 5 GB, the limit of S3 for one PUT: ${path}`, {
    code: 'publish-too-large',
    hint: 'Publish to a folder instead, and copy that with a program that uploads in parts.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
