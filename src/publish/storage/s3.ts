import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import {
  type BucketClient,
  type BucketClientOptions,
  createBucketClient,
  type ObjectContent,
} from './s3-client.ts'
import { conditionError, tooLargeError } from './s3-faults.ts'
import { createUploads, download, MAX_OBJECT_BYTES } from './s3-files.ts'
import type { Storage } from './storage.ts'
import { TARGET_MARK, type TargetReader } from './target-reader.ts'

export interface S3Options extends BucketClientOptions {
  /** The folder for files that are uploaded or downloaded. */
  temporary: string
  /** Without slashes at its ends; empty for the whole bucket. */
  prefix: string
  /** Where readers find the target. Default: its name, `s3://bucket/prefix`. */
  location: string | undefined
}

/**
 * A prefix of a bucket as a target. There is no lock: `writeIfAbsent` decides between two processes that publish at the
 * same time.
 * @throws StopError (exit status 64) when the prefix has other objects, 73 when the bucket cannot be used
 */
export async function openS3(options: S3Options): Promise<Storage> {
  const closing = new AbortController()
  const { reader, objects } = connect({
    ...options,
    signal: AbortSignal.any([options.signal, closing.signal]),
  })
  const close = () => {
    closing.abort(new Error('The target is closed'))
    reader.close()
  }
  try {
    await claimPrefix(objects, options.name)
    return {
      ...reader,
      ...createUploads(options.temporary, objects.put),
      isLocked: false,
      write: objects.put,
      writeIfAbsent: objects.putOwn,
      replace: objects.put,
      remove: objects.remove,
      // The errors of a bucket already say what to do.
      fault: error => error,
      close,
    }
  } catch (error) {
    close()
    throw error
  }
}

/** Opens a prefix without a request, so a bucket that cannot be used is an error of the first read. */
export const openS3Reader = (options: S3Options): TargetReader => connect(options).reader

function connect(options: S3Options): { reader: TargetReader; objects: Objects } {
  const { name, location = name, temporary } = options
  const bucket = createBucketClient(options)
  const objects = objectsOf(options, bucket)
  const reader = {
    name,
    location,
    read: objects.read,
    open: (path: string) => download(path, temporary, objects.readRange),
    list: (folder: string) => objects.list(folder),
    holds: () => contentOf(objects),
    close: bucket.close,
  }
  return { reader, objects }
}

const MAX_PAGE = 1000

type Objects = ReturnType<typeof objectsOf>

/** The objects below the prefix, by their paths in the target. The verbs throw the errors of the client. */
function objectsOf(options: S3Options, bucket: BucketClient) {
  const prefix = options.prefix === '' ? '' : `${options.prefix}/`
  const read = (path: string) => bucket.get(prefix + path)
  const putIfAbsent = (path: string, bytes: Buffer) => bucket.putIfAbsent(prefix + path, bytes)
  return {
    url: bucket.url,
    read,
    readRange: (path: string, from: number, bytes: number) => bucket.get(prefix + path, { from, bytes }),
    putIfAbsent,
    async put(path: string, content: ObjectContent): Promise<void> {
      if (!Buffer.isBuffer(content) && content.bytes > MAX_OBJECT_BYTES)
        throw tooLargeError(options.name, path)
      await bucket.put(prefix + path, content)
    },
    /** As `putIfAbsent`, for content that no other process writes. @returns whether the object is ours */
    async putOwn(path: string, bytes: Buffer): Promise<boolean> {
      if (await putIfAbsent(path, bytes)) return true
      // The answer to an earlier try may have been lost after the object was stored.
      return (await read(path))?.equals(bytes) ?? false
    },
    /** @param enough ends the listing after this number of objects */
    async list(folder: string, enough = Number.POSITIVE_INFINITY): Promise<readonly string[]> {
      const below = folder === '' ? prefix : `${prefix}${folder}/`
      const found: string[] = []
      let token: string | undefined
      do {
        const page = await bucket.list(below, Math.min(enough, MAX_PAGE), token)
        token = page.token
        for (const key of page.keys)
          if (key.startsWith(below) && !key.endsWith('/')) found.push(key.slice(prefix.length))
      } while (token !== undefined && found.length < enough)
      return found
    },
    remove: (path: string) => bucket.remove(prefix + path),
  }
}

/**
 * Refuses a prefix with other objects, some of which a publication could remove, and marks a new prefix. The mark is the
 * first object, so it exists if parley wrote any. Writing it twice shows whether the server honours If-None-Match: a
 * server that ignores the header would let two publications mix.
 */
async function claimPrefix(objects: Objects, name: string): Promise<void> {
  if ((await contentOf(objects)) === 'others') throw foreignError(name)
  const { url, putIfAbsent } = objects
  const mark = Buffer.from('The objects next to this one are written by parley publish.\n')
  if ((await putIfAbsent(TARGET_MARK, mark)) && (await putIfAbsent(TARGET_MARK, mark)))
    throw conditionError(url())
}

async function contentOf({ list, read }: Objects): ReturnType<TargetReader['holds']> {
  const [[first], mark] = await Promise.all([list('', 1), read(TARGET_MARK)])
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
