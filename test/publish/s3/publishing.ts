import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import { type PublishSummary, publishWarehouse } from '../../../src/publish/publish.ts'
import { targetName } from '../../../src/publish/storage/open.ts'
import { openS3, openS3Reader, type S3Options } from '../../../src/publish/storage/s3.ts'
import type { Storage } from '../../../src/publish/storage/storage.ts'
import type { TargetReader } from '../../../src/publish/storage/target-reader.ts'
import { openDatabase } from '../../../src/store/file/open.ts'
import { openAt, type TemporaryStore, withShortcuts } from '../../store/temporary-store.ts'
import { ACCESS, BUCKET, type FakeS3 } from './fake-s3.ts'

export const DAY_MS = 86_400_000

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

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-s3-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
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

/** Publishes a warehouse as the command does, over a separate connection, and closes the target. */
export async function publishTo(
  storage: Storage,
  database: string,
  {
    clock = systemClock(),
    keep = 5,
    tables,
  }: { clock?: Clock; keep?: number; tables?: readonly string[] | undefined } = {},
): Promise<PublishSummary> {
  const db = openDatabase({ path: database, readonly: true })
  try {
    return await publishWarehouse({
      db,
      storage,
      clock,
      mode: 0o600,
      version: '1.2.3',
      keep,
      full: false,
      tables,
      signal: new AbortController().signal,
      onProgress: () => undefined,
    })
  } finally {
    storage.close()
    db.close()
  }
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
