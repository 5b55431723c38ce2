import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import { targetName } from '../../../src/publish/storage/open.ts'
import { openS3, openS3Reader, type S3Options } from '../../../src/publish/storage/s3.ts'
import type { Storage } from '../../../src/publish/storage/storage.ts'
import type { TargetReader } from '../../../src/publish/storage/target-reader.ts'
import { newFolder, openAt, type TemporaryStore, withShortcuts } from '../../store/temporary-store.ts'
import { ACCESS, BUCKET, type FakeS3 } from './fake-s3.ts'

export interface DatedClock extends Clock {
  advance(ms: number): void
}

/** A clock whose date a test sets. Waits take as long as they do; those between two tries take none. */
export function datedClock(start = Date.parse('2026-03-04T12:00:00.000Z')): DatedClock {
  const { elapsed, sleep } = systemClock()
  let now = start
  return {
    now: () => now,
    elapsed,
    sleep,
    advance: ms => {
      now += ms
    },
  }
}

type Server = Pick<FakeS3, 'url'> & Partial<FakeS3>

const optionsFor = (
  { url, now = Date.now }: Server,
  { bucket = BUCKET, prefix = 'lake', ...options }: Partial<S3Options>,
): S3Options => ({
  name: targetName({ by: 's3', bucket, prefix }),
  bucket,
  prefix,
  endpoint: url,
  region: ACCESS.region,
  pathStyle: undefined,
  credentials: { accessKeyId: ACCESS.id, secretAccessKey: ACCESS.secret, sessionToken: undefined },
  location: undefined,
  temporary: newFolder(),
  clock: { ...systemClock(), now },
  signal: new AbortController().signal,
  random: () => 0,
  ...options,
})

/** A target in the fake S3. It is closed when the test ends, unless the test has closed it. */
export async function bucketOf(server: Server, options: Partial<S3Options> = {}): Promise<Storage> {
  const storage = await openS3(optionsFor(server, options))
  let isOpen = true
  const close = () => {
    if (isOpen) storage.close()
    isOpen = false
  }
  onTestFinished(close)
  return { ...storage, close }
}

/** The same target, which is only read. */
export function readerOf(server: Server, options: Partial<S3Options> = {}): TargetReader {
  const reader = openS3Reader(optionsFor(server, options))
  onTestFinished(() => reader.close())
  return reader
}

/** A warehouse with the same identity and rows, as another machine may have it. */
export function twinOf(store: TemporaryStore): TemporaryStore {
  const folder = newFolder()
  const path = join(folder, 'twin.db')
  store.db.prepare('VACUUM INTO ?').run(path)
  const twin = openAt(path)
  onTestFinished(() => twin.close())
  return withShortcuts(twin, folder, path)
}
