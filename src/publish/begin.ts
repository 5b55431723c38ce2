import { randomUUID } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { EXIT_STATUS, StopError } from '../base/errors.ts'
import { partitionSpec } from './iceberg/iceberg-schema.ts'
import { newTable, renewed } from './iceberg/metadata.ts'
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
 * How publications to a target without a lock keep apart. A publication begins with a new version of the table
 * `publications`, which has the same rows and takes the number, and completes with another. Of two at the same time, the
 * one that began last can complete, since the version that the other one needs exists. The other one stops before its
 * next commit.
 *
 * A publication that began and is not complete was interrupted, or is still running, and its commit to any table may be
 * on its way. So the next one gives every table a new version first. Then no such commit succeeds any more, and it
 * starts from tables that stay as it has read them. Only a table that the target does not have yet cannot be protected:
 * if such a commit creates it meanwhile, the publication fails there although it began last, and begins again.
 */
export interface BegunPublication {
  publication: number
  /** As it is when the publication has begun. */
  target: PublishedTarget
  /** For the commits to tables before the publication completes. They fail once another one has begun. */
  storage: Storage
  /** Whether another publication that is stopped by now explains a failed commit, since none has begun after this one. */
  mayBeginAgain(): Promise<boolean>
}

export interface Beginning {
  storage: Storage
  clock: Clock
  /** Of a new table. */
  properties: Readonly<Record<string, string>>
}

/** @throws StopError 75 when another publication begins at the same time, or a listing is incomplete */
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
  // Readers would see an empty table instead of none.
  if (begun.isHinted) await writeHint(storage, begun)
  return {
    publication,
    target: isSettled(target) ? withTable(target, begun) : await withNewVersions(beginning, begun),
    storage: stoppedAfter(storage, begun),
    mayBeginAgain: () => isNewest(storage, begun),
  }
}

/**
 * A publication that was interrupted after its last commit is complete, but a reader that goes by the hint of
 * `publications` does not see it. This publication expires snapshots as if all readers did.
 */
async function writeLostHint(storage: Storage, { tables }: PublishedTarget): Promise<void> {
  const publications = tables.get(PUBLICATIONS)
  if (publications && !publications.isHinted) await writeHint(storage, publications)
}

/**
 * A listing decides what the target has. If it lacks objects, the target looks new, and a first publication would hide
 * all earlier ones. A single object is read consistently everywhere.
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

/** The table `publications` when a publication has begun. */
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
  const metadata = renewed(created, { number: publication, at: clock.now(), replaces: undefined })
  return { folder: PUBLICATIONS, metadata, version: 1, isHinted: false, parts: [] }
}

/** The same rows in a new version. */
function newVersion(
  storage: Storage,
  clock: Clock,
  { folder, metadata, version }: TableVersion,
  number = metadata['last-sequence-number'],
): TableVersion {
  const replaces = metadataAddress(storage, folder, version)
  return { folder, metadata: renewed(metadata, { number, at: clock.now(), replaces }), version: version + 1 }
}

/** How often a table is given a new version when the other publication is each time faster. */
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
    const renewedStates = states.flatMap(state => state ?? [])
    if (renewedStates.length === states.length)
      return { ...target, tables: new Map(renewedStates.map(state => [state.folder, state])) }
  }
  throw overtaken(storage)
}

const withTable = ({ paths, tables }: PublishedTarget, table: PublishedState): PublishedTarget => ({
  paths,
  tables: new Map([...tables, [table.folder, table]]),
})

/**
 * The storage, whose commits fail as if their version existed once the table `publications` has a newer version than
 * this one, since then another publication has begun.
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
