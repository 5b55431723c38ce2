import { type Clock, DAY_MS } from '../../../clock.ts'
import { EXIT_STATUS, StopError } from '../../../errors.ts'
import type { Storage } from '../storage.ts'
import type { TargetReader } from '../target-reader.ts'
import { type BucketEndpoint, type BucketPlace, bucketUrl } from './address.ts'
import { type BucketAnswer, type LostAnswer, readListedPage } from './answers.ts'
import { createDownloads } from './downloads.ts'
import { type BucketWords, bucketError, conditionError, noBucketError } from './faults.ts'
import {
  type BucketCredentials,
  type BucketRequest,
  createBucketRequests,
  type RequestBody,
} from './requests.ts'
import { createTemporaryFolder } from './temporary-folder.ts'
import { bytesBody, createUploads, MAX_OBJECT_BYTES } from './uploads.ts'

export interface S3Options extends BucketPlace, BucketEndpoint {
  credentials: BucketCredentials
  /** Where readers find the target. Default: `s3://bucket/prefix`. */
  location: string | undefined
  /** The folder in which files wait for their upload, in a new folder that only this user can read. */
  temporary: string
  clock: Clock
  /** Stops every request. */
  signal: AbortSignal
  /** Returns a number from 0 to below 1, for the waits between two tries. */
  random: () => number
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
  const requests = createBucketRequests({ ...options, signal: AbortSignal.any([signal, closing.signal]) })
  const name = nameOf(options)
  const objects = objectsOf(options, requests.send)
  const close = () => {
    closing.abort(new Error('The target is closed'))
    requests.close()
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
      write: (path, bytes) => objects.put(path, bytesBody(bytes)),
      writeIfAbsent: objects.putOwn,
      replace: (path, bytes) => objects.put(path, bytesBody(bytes)),
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
  const requests = createBucketRequests(options)
  const objects = objectsOf(options, requests.send)
  const downloads = createDownloads({ ...options, readRange: objects.readRange })
  const name = nameOf(options)
  return {
    name,
    location: options.location ?? name,
    read: objects.read,
    open: downloads.open,
    list: async path => (await objects.list(path)).map(found => found.path),
    holds: () => contentOf(objects),
    close() {
      requests.close()
      downloads.close()
    },
  }
}

function objectsOf(options: BucketPlace & BucketEndpoint, send: Send): Objects {
  const { bucket, prefix, region, endpoint } = options
  return createObjects(send, {
    prefix: prefix === '' ? '' : `${prefix}/`,
    words: { name: nameOf(options), bucket, region, url: endpoint ?? bucketUrl(options, bucket) },
  })
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
  words: BucketWords
  read(path: string): Promise<Buffer | undefined>
  /** The bytes from a place on, fewer than asked for at the end. Undefined where there is no such object. */
  readRange(path: string, from: number, bytes: number): Promise<Buffer | undefined>
  put(path: string, body: RequestBody): Promise<void>
  putIfAbsent(path: string, bytes: Buffer): Promise<'written' | 'exists'>
  /** As `putIfAbsent`, for content that no other process writes. @returns whether the object is ours */
  putOwn(path: string, bytes: Buffer): Promise<boolean>
  /** @param atMost ends the listing early; without it, it has all objects */
  list(folder: string, atMost?: number): Promise<readonly FoundObject[]>
  remove(path: string): Promise<void>
}

type Send = (request: BucketRequest) => Promise<BucketAnswer | LostAnswer>

function createObjects(send: Send, { prefix, words }: { prefix: string; words: BucketWords }): Objects {
  /** The answer, if it has one of the statuses. */
  const sendFor = async (request: BucketRequest, ...wanted: number[]): Promise<BucketAnswer> => {
    const answer = await send(request)
    const isMissingBucket = 'code' in answer && answer.code === 'NoSuchBucket'
    if ('lost' in answer || isMissingBucket || !wanted.includes(answer.status))
      throw bucketError(words, answer)
    return answer
  }
  const read = async (path: string): Promise<Buffer | undefined> => {
    const { status, body } = await sendFor({ method: 'GET', key: prefix + path }, 200, 404)
    return status === 404 ? undefined : body
  }
  const putIfAbsent = async (path: string, bytes: Buffer): Promise<'written' | 'exists'> => {
    const headers = { 'if-none-match': '*' }
    const request = { method: 'PUT', key: prefix + path, headers, body: bytesBody(bytes) } as const
    const { status } = await sendFor(request, 200, 409, 412)
    return status === 200 ? 'written' : 'exists'
  }
  return {
    words,
    read,
    async readRange(path, from, bytes) {
      const headers = { range: `bytes=${from}-${from + bytes - 1}` }
      const request = { method: 'GET', key: prefix + path, headers } as const
      const { status, body } = await sendFor(request, 200, 206, 404, 416)
      if (status === 404) return undefined
      if (status === 416) return Buffer.alloc(0)
      // A server without ranges sends the whole object.
      return status === 206 ? body : body.subarray(from, from + bytes)
    },
    putIfAbsent,
    async put(path, body) {
      if (body.bytes > MAX_OBJECT_BYTES) throw tooLargeError(path, words)
      await sendFor({ method: 'PUT', key: prefix + path, body }, 200)
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
        const page = await listPage(sendFor, below, { token, atMost, words })
        token = page.token
        const inside = page.objects.filter(({ key }) => key.startsWith(below) && !key.endsWith('/'))
        found.push(...inside.map(({ key, ageMs }) => ({ path: key.slice(prefix.length), ageMs })))
      } while (token !== undefined && found.length < atMost)
      return found
    },
    async remove(path) {
      await sendFor({ method: 'DELETE', key: prefix + path }, 200, 204, 404)
    },
  }
}

const MAX_PAGE = 1000

async function listPage(
  sendFor: (request: BucketRequest, wanted: number) => Promise<BucketAnswer>,
  below: string,
  { token, atMost, words }: { token: string | undefined; atMost: number; words: BucketWords },
): Promise<{ objects: readonly { key: string; ageMs: number }[]; token: string | undefined }> {
  const query = {
    'list-type': '2',
    'encoding-type': 'url',
    prefix: below,
    'max-keys': String(Math.min(atMost, MAX_PAGE)),
    ...(token !== undefined && { 'continuation-token': token }),
  }
  const { body, date } = await sendFor({ method: 'GET', query }, 200)
  const page = readListedPage(body)
  if (page === undefined || page.token === (token ?? '')) throw noBucketError(words)
  const age = (modifiedAt: number) => (date === undefined || Number.isNaN(modifiedAt) ? 0 : date - modifiedAt)
  return {
    objects: page.objects.map(({ key, modifiedAt }) => ({ key, ageMs: age(modifiedAt) })),
    token: page.token,
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
  if ((await putIfAbsent(MARK, mark)) === 'written') throw conditionError(words)
}

async function contentOf({ list, read }: Objects): ReturnType<TargetReader['holds']> {
  const [[first], mark] = await Promise.all([list('', 1), read(MARK)])
  if (first === undefined) return 'nothing'
  return mark === undefined ? 'others' : 'ours'
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
