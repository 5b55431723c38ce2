import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { type PublishSummary, publishWarehouse } from '../../src/publish/publish.ts'
import { openFolder } from '../../src/publish/storage/folder.ts'
import type { Storage } from '../../src/publish/storage/storage.ts'
import { openDatabase } from '../../src/store/file/open.ts'

/** A folder with published tables, which readers find by HTTP. */
export interface Lake {
  folder: string
  url: string
}

export interface Publishing {
  keep?: number
  full?: boolean
  /** Default: all. */
  tables?: readonly string[] | undefined
  mode?: number
  clock?: Clock
  signal?: AbortSignal
  onRows?: () => void
  /** Wraps the storage, for example to make it fail. */
  through?: (storage: Storage) => Storage
}

/** Publishes a warehouse as the command does, over a separate connection. */
export async function publishTo(
  database: string,
  { folder, url }: Lake,
  { mode = 0o600, clock = systemClock(), ...options }: Publishing = {},
): Promise<PublishSummary> {
  const storage = openFolder({ path: folder, location: url, mode, clock })
  return publishInto(storage, database, { ...options, clock })
}

/** The same into an open target, which is closed at the end. */
export async function publishInto(
  storage: Storage,
  database: string,
  { onRows = () => undefined, through = opened => opened, ...options }: Publishing = {},
): Promise<PublishSummary> {
  const db = openDatabase({ path: database, readonly: true })
  try {
    return await publishWarehouse({
      db,
      storage: through(storage),
      clock: systemClock(),
      version: '1.2.3',
      keep: 5,
      full: false,
      signal: new AbortController().signal,
      onProgress: onRows,
      ...options,
    })
  } finally {
    storage.close()
    db.close()
  }
}

/** What a publication wrote: tables with their numbers of files. */
export const writtenBy = ({ tables }: PublishSummary): Record<string, number> =>
  Object.fromEntries(
    tables
      .filter(({ filesWritten }) => filesWritten > 0)
      .map(({ folder, filesWritten }) => [folder, filesWritten]),
  )

/** The same without the tables of parley's own state, whose rows change with those of others. */
export const dataWrittenBy = (summary: PublishSummary): Record<string, number> =>
  Object.fromEntries(Object.entries(writtenBy(summary)).filter(([table]) => !table.startsWith('sync_')))

export type Cleanup = (work: () => void | Promise<void>) => void

export async function newLake(cleanup: Cleanup = onTestFinished): Promise<Lake> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-lake-'))
  cleanup(() => rmSync(folder, { recursive: true, force: true }))
  return { folder, url: await serve(folder, cleanup) }
}

/** Serves the files of a folder on the loopback interface, with ranges. */
export async function serve(folder: string, cleanup: Cleanup = onTestFinished): Promise<string> {
  const server = createServer((request, response) => {
    const place = join(folder, decodeURIComponent(request.url ?? ''))
    if (!statSync(place, { throwIfNoEntry: false })?.isFile()) return void response.writeHead(404).end()
    const bytes = readFileSync(place)
    const [, from, to] = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? '') ?? []
    if (from === undefined || to === undefined) return void response.writeHead(200).end(bytes)
    const start = from === '' ? bytes.length - Number(to) : Number(from)
    const end = from === '' || to === '' ? bytes.length : Number(to) + 1
    response.writeHead(206, { 'content-range': `bytes ${start}-${end - 1}/${bytes.length}` })
    response.end(bytes.subarray(start, end))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  cleanup(
    () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  const address = server.address()
  return `http://127.0.0.1:${address !== null && typeof address === 'object' ? address.port : 0}`
}

/** Every file of a target except its lock, as paths relative to it. */
export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => statSync(join(folder, name)).isFile() && name !== '.parley-publish-lock')
    .toSorted()
}
