import { randomUUID } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { EXIT_STATUS, StopError } from '../base/errors.ts'
import { partitionSpec } from './iceberg/iceberg-schema.ts'
import { newTable, nextMetadata } from './iceberg/metadata.ts'
import { inParallel } from './in-parallel.ts'
import {
  hintPath,
  metadataAddress,
  metadataPath,
  overtaken,
  type TableVersion,
  writeHint,
  writeMetadata,
  writeMetadataIfAbsent,
} from './metadata-file.ts'
import { PUBLICATIONS, publicationsTable, rowsIn } from './publications.ts'
import { evolve } from './publish-table.ts'
import { PARTS_PROPERTY, type PublishedState, type PublishedTarget, readTarget } from './published-state.ts'
import type { Storage } from './storage/storage.ts'

/**
 * How publications to a target without a lock keep apart. A publication begins by writing a new version of the table
 * `publications`, with the same rows and its own number, and completes by writing another version. Of two publications
 * at the same time, the one that began last can complete. The other one stops before its next commit, because the
 * version that it would write exists.
 *
 * A publication that began and is not complete was interrupted, or still runs and may be about to commit. So the next
 * one first gives every table a new version. After that no earlier commit succeeds, and the tables stay as they were
 * read. A table that the target does not have yet cannot be protected: if an earlier publication creates it meanwhile,
 * the next one fails there and begins again.
 */
export interface BegunPublication {
  publication: number
  /** The target after the publication has begun. */
  target: PublishedTarget
  /** The storage for commits until this publication completes. The commits fail once another publication has begun. */
  storage: Storage
  /** Whether a publication that is stopped by now explains a failed commit: none has begun after this one. */
  mayBeginAgain(): Promise<boolean>
}

export interface Beginning {
  storage: Storage
  clock: Clock
  /** The properties of a new table. */
  properties: Readonly<Record<string, string>>
}

/** @throws StopError (exit status 75) when another publication begins at the same time, or a listing is incomplete */
export async function beginPublication(
  beginning: Beginning,
  target: PublishedTarget,
): Promise<BegunPublication> {
  const { storage } = beginning
  const publication = 1 + newestNumber(target)
  if (storage.isLocked) {
    await writeLostHint(storage, target)
    return { publication, target, storage, mayBeginAgain: async () => false }
  }
  if (!target.tables.has(PUBLICATIONS)) await refuseUnlisted(storage)
  const begun = beginOf(beginning, target, publication)
  await writeMetadata(storage, begun)
  // A new table gets no hint: readers would see an empty table.
  if (begun.isHinted) await writeHint(storage, begun)
  return {
    publication,
    target: isSettled(target)
      ? { ...target, tables: new Map([...target.tables, [begun.folder, begun]]) }
      : await withNewVersions(beginning, begun),
    storage: stoppedAfter(storage, begun),
    mayBeginAgain: () => isNewest(storage, begun),
  }
}

/**
 * Writes the hint of `publications` if a publication was interrupted before it. Readers that follow the hint do not see
 * that publication, but this one expires snapshots as if all readers saw it.
 */
async function writeLostHint(storage: Storage, { tables }: PublishedTarget): Promise<void> {
  const publications = tables.get(PUBLICATIONS)
  if (publications && !publications.isHinted) await writeHint(storage, publications)
}

/**
 * Refuses a listing without the table `publications` if its hint exists. With an incomplete listing the target looks
 * new, and a first publication would hide all earlier ones. The hint is reliable: a single object is read consistently.
 */
async function refuseUnlisted(storage: Storage): Promise<void> {
  if ((await storage.read(hintPath(PUBLICATIONS))) === undefined) return
  throw new StopError(`The listing of ${storage.name} lacks the table ${PUBLICATIONS}, whose hint is there`, {
    code: 'publish-listing',
    hint: `Run parley publish again later; nothing was changed. If the metadata of the table was removed by hand, also remove ${hintPath(PUBLICATIONS)}.`,
    exitStatus: EXIT_STATUS.unfinished,
  })
}

/** The greatest number that a publication of the target has had. */
const newestNumber = ({ tables }: PublishedTarget): number =>
  Math.max(0, ...[...tables.values()].map(({ metadata }) => metadata['last-sequence-number']))

/** Whether the newest publication that began is complete. */
const isSettled = (target: PublishedTarget): boolean =>
  newestNumber(target) === (rowsIn(target).at(-1)?.publication ?? 0)

/** The version of the table `publications` that begins a publication. */
function beginOf(
  { storage, clock, properties }: Beginning,
  { tables }: PublishedTarget,
  publication: number,
): PublishedState {
  const before = tables.get(PUBLICATIONS)
  if (before) {
    const isHinted = before.metadata.snapshots.length > 0
    return { ...before, ...newVersion(storage, clock, before, publication), isHinted }
  }
  const evolved = evolve(publicationsTable([], undefined).table, undefined)
  const created = newTable({
    uuid: randomUUID(),
    location: `${storage.location}/${PUBLICATIONS}`,
    evolved,
    spec: partitionSpec(evolved.schema, undefined),
    properties: { ...properties, [PARTS_PROPERTY]: '[]' },
  })
  const metadata = nextMetadata(created, { number: publication, at: clock.now(), replaces: undefined })
  return { folder: PUBLICATIONS, metadata, version: 1, isHinted: false, parts: [] }
}

/** The next version of a table, with the same rows. */
function newVersion(
  storage: Storage,
  clock: Clock,
  { folder, metadata, version }: TableVersion,
  number?: number,
): TableVersion {
  const replaces = metadataAddress(storage, folder, version)
  return {
    folder,
    metadata: nextMetadata(metadata, { number, at: clock.now(), replaces }),
    version: version + 1,
  }
}

/** How often the tables are read and given new versions while another publication is faster each time. */
const MOST_TRIES = 3
/** How many tables get a new version at a time. */
const MOST_WRITES = 8

async function withNewVersions(
  { storage, clock }: Beginning,
  begun: PublishedState,
): Promise<PublishedTarget> {
  const ours = new Map([[PUBLICATIONS, begun.version]])
  for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
    const target = await readTarget(storage)
    const states = await inParallel(target.tables.values(), MOST_WRITES, async state => {
      if (ours.get(state.folder) === state.version) return state
      const next = newVersion(storage, clock, state)
      if (!(await writeMetadataIfAbsent(storage, next))) return undefined
      ours.set(next.folder, next.version)
      await writeHint(storage, next)
      return { ...state, ...next, isHinted: true }
    })
    const written = states.flatMap(state => state ?? [])
    if (written.length === states.length)
      return { ...target, tables: new Map(written.map(state => [state.folder, state])) }
  }
  throw overtaken(storage)
}

/**
 * The same storage, but its commits fail, as if their version existed, once `publications` has a newer version than
 * `table`, since another publication has then begun.
 */
export function stoppedAfter(storage: Storage, table: TableVersion): Storage {
  if (storage.isLocked) return storage
  return {
    ...storage,
    writeIfAbsent: async (path, bytes) =>
      (await isNewest(storage, table)) && storage.writeIfAbsent(path, bytes),
  }
}

const isNewest = async (storage: Storage, { folder, version }: TableVersion): Promise<boolean> =>
  (await storage.read(metadataPath(folder, version + 1))) === undefined
