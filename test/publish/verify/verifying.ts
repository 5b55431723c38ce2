import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { type PublishedState, readTarget } from '../../../src/publish/published-state.ts'
import { folderReader } from '../../../src/publish/storage/target-reader.ts'
import { type VerifySummary, verifyTarget } from '../../../src/publish/verify/verify.ts'
import { type FileFault, fileFaults, type NamedFile } from '../../../src/publish/verify/verify-file.ts'
import { openDatabase } from '../../../src/store/file/open.ts'
import { openAt, type TemporaryStore, withShortcuts } from '../../store/temporary-store.ts'
import { markedWorld } from '../../store/unique-texts.ts'
import { type Cleanup, type Lake, publishTo } from '../publishing.ts'

export const NOW = '2026-06-30T12:00:00.000Z'

export function emptyLake(cleanup: Cleanup = onTestFinished): Lake {
  const folder = mkdtempSync(join(tmpdir(), 'parley-lake-'))
  cleanup(() => rmSync(folder, { recursive: true, force: true }))
  return { folder, url: `file://${folder}` }
}

/** The same target in another folder, to be damaged. Its tables still name the first folder. */
export function copyOf({ folder, url }: Lake): Lake {
  const { folder: copy } = emptyLake()
  cpSync(folder, copy, { recursive: true })
  return { folder: copy, url }
}

export function changeActivity(store: TemporaryStore, id: string, type: string, month = '01'): void {
  const put = store.db.prepare(
    `INSERT INTO activities (id, occurred_at, type, _first_seen_at, _synced_at) VALUES (?, ?, ?, '${NOW}', '${NOW}')
     ON CONFLICT DO UPDATE SET type = excluded.type`,
  )
  store.atomically(() => put.run(id, `2026-${month}-02T00:00:00.000Z`, type))
}

export function eraseMember(store: TemporaryStore, id: string): void {
  store.atomically(() => {
    store.tombstone('members', [[id]], NOW)
    store.purger.purge({ before: '9999', limit: 1000, now: new Date().toISOString() })
  })
}

export interface World {
  store: TemporaryStore
  lake: Lake
}

/** Rows of every table, published three times with changes and an erasure between them. */
export async function publishedWorld(cleanup: Cleanup = onTestFinished): Promise<World> {
  const lake = emptyLake(cleanup)
  const { folder } = emptyLake(cleanup)
  const path = join(folder, 'parley.db')
  const store = withShortcuts(openAt(path), folder, path)
  cleanup(() => store.close())
  markedWorld(store, value => value).write('2026-03-04T05:06:07.123Z')
  store.put('members', [{ id: 'gone', name: 'Rumpelstilzchen', email: 'r@x.example' }], { now: NOW })
  for (const month of ['01', '02', '03']) changeActivity(store, `a${month}`, 'call', month)
  await publishTo(store.path, lake)
  changeActivity(store, 'a02', 'meeting', '02')
  eraseMember(store, 'gone')
  await publishTo(store.path, lake)
  changeActivity(store, 'a01', 'meeting', '01')
  await publishTo(store.path, lake)
  return { store, lake }
}

/** @param database undefined: the target alone */
export async function verify({ folder, url }: Lake, database: string | undefined): Promise<VerifySummary> {
  const clock = systemClock()
  const db = database === undefined ? undefined : openDatabase({ path: database, readonly: true })
  const storage = folderReader(folder, url)
  try {
    const signal = new AbortController().signal
    return await verifyTarget({ db, storage, clock, signal, onProgress: () => undefined })
  } finally {
    db?.close()
  }
}

/** The data files of a table, in the order of the publications. */
export function dataFiles({ folder }: Lake, table: string): string[] {
  return readdirSync(join(folder, table, 'data'))
    .toSorted()
    .map(name => `${table}/data/${name}`)
}

/** The lists of manifests of a table's snapshots, earliest first. */
export async function manifestLists(lake: Lake, table: string): Promise<string[]> {
  const { metadata } = await stateOf(lake, table)
  return metadata.snapshots.map(snapshot => snapshot['manifest-list'].slice(lake.url.length + 1))
}

/** The file of the last part of a table. */
export async function newestFile(lake: Lake, table: string): Promise<{ named: NamedFile; bytes: Buffer }> {
  const { metadata, parts } = await stateOf(lake, table)
  const [part] = parts.slice(-1)
  const schema = metadata.schemas.at(-1)
  if (!part || !schema) throw new Error(`${table} has no part`)
  const { file, digest, checksum } = part
  const bytes = readFileSync(join(lake.folder, file.path.slice(lake.url.length)))
  return { named: { file, schema, note: [part.part, digest, file.path, checksum] }, bytes }
}

/** What is wrong with a file that has these bytes. */
export function faultsOf(named: NamedFile, bytes: Buffer): Promise<FileFault[]> {
  const location = named.file.path.slice(0, named.file.path.lastIndexOf('/'))
  const stored = { bytes: bytes.length, read: async (from: number, to: number) => bytes.subarray(from, to) }
  const storage = { location, open: async () => ({ ...stored, close: async () => undefined }) }
  const signal = new AbortController().signal
  return fileFaults({ storage, signal, purgedContent: undefined, onRows: () => undefined }, named)
}

export function withChanged(bytes: Buffer, at: number): Buffer {
  const changed = Buffer.from(bytes)
  const place = Math.floor(at)
  changed.writeUInt8((changed.readUInt8(place) + 1) % 256, place)
  return changed
}

async function stateOf({ folder, url }: Lake, table: string): Promise<PublishedState> {
  const state = (await readTarget(folderReader(folder, url))).tables.get(table)
  if (!state) throw new Error(`${table} is not published`)
  return state
}
