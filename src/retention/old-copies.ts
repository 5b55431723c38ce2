import { stat, utimes } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import type { Settings } from '../config.ts'
import type { Log } from '../log.ts'
import { copiesOf, removeUnfinishedCopies } from '../store/backup.ts'
import { ownersOf } from '../store/copy-owners.ts'
import { folderBeside, isNamed, isOwnFolder, keptSnapshots } from '../store/kept-snapshots.ts'
import { keptByRestores } from '../store/restore-swap.ts'
import { removeAbandoned, removeFiles, removeParts } from '../store/snapshot-target.ts'
import { META } from '../store/state.ts'
import type { Store } from '../store/store.ts'
import { type Copy, type CopyRules, fatesOf } from './decisions.ts'

/** Whole copies of the warehouse that parley made itself, which keep what is erased from it later. */

export interface OldCopiesDeps {
  store: Pick<Store, 'db' | 'state' | 'transaction'>
  log: Log
  settings: Pick<Settings, 'database' | 'snapshot'>
  signal: AbortSignal
  owners?: typeof ownersOf
}

/**
 * Removes what is too old of this warehouse's copies, whether any are made now or not, and what processes that were
 * killed have left unfinished. Call it only while this machine's clock is known to be right.
 * @returns how many files were removed
 */
export async function removeOldCopies(
  deps: OldCopiesDeps,
  { now, before }: Pick<CopyRules, 'now' | 'before'>,
): Promise<number> {
  const { store, log, settings, signal, owners = ownersOf } = deps
  // Snapshots are named after the path in the settings, also where that is a link to the file.
  const database = resolve(settings.database.path)
  const folders = await noteSnapshotFolder(deps)
  let count = 0
  const tell = (removed: readonly string[], what: string) => {
    for (const path of removed) log.info(what, { path })
    count += removed.length
  }
  removeUnfinishedCopies(store.db.name)
  removeParts(store.db.name)
  for (const folder of folders) {
    const name = basename(database)
    const parts = await removeAbandoned(join(folder, name), one => isNamed(database, one), now)
    tell(parts, 'An unfinished snapshot was removed')
  }
  const found = await copiesIn(store.db.name, database, folders)
  if (before === undefined || found.length === 0 || signal.aborted) return count
  const said = await owners(
    found.map(({ path }) => path),
    signal,
  )
  const copies = found.map((copy, at): Copy => {
    const { identity, maintainedAt } = said[at] ?? {}
    return { ...copy, identity, maintainedAt: instantOf(maintainedAt) }
  })
  const { state } = store
  const fates = fatesOf(copies, {
    now,
    before,
    identity: state.meta(META.identity),
    erasedAt: instantOf(state.meta(META.erasedAt)),
    firstMaintainedAt: instantOf(state.meta(META.firstMaintainedAt)),
  })
  const having = (fate: string) => copies.flatMap(({ path }, at) => (fates[at] === fate ? [path] : []))
  const { removed, stuck } = await removeFiles(having('remove'))
  tell(removed, 'A copy of the warehouse was removed, since it may hold what has been erased')
  for (const path of stuck) log.warn('An old copy of the warehouse could not be removed', { path })
  for (const path of having('ask'))
    log.warn('An old snapshot does not say of which warehouse it is; if it is of this one, remove it', {
      path,
    })
  for (const path of having('recount')) await countFromNow(path, now, log)
  return count
}

/** Notes the present folder of snapshots, and returns all that were noted since the database lies where it lies. */
export async function noteSnapshotFolder({
  store: { state, transaction },
  settings: {
    database: { path },
    snapshot,
  },
}: Pick<OldCopiesDeps, 'store' | 'settings'>): Promise<string[]> {
  const database = resolve(path)
  const noted = JSON.parse(state.meta(META.snapshotFolders) ?? 'null') as SnapshotFolders | null
  // A database that was moved or copied has left its snapshots to whoever is now at the earlier place.
  const earlier = noted?.database === database ? noted.folders : []
  const present = [folderBeside(database), ...(snapshot.folder === undefined ? [] : [snapshot.folder])]
  const folders = [...new Set([...earlier, ...present.map(folder => resolve(folder))])]
  if (folders.length > earlier.length) {
    await transaction(() => state.setMeta(META.snapshotFolders, JSON.stringify({ database, folders })))
  }
  return folders
}

/** Earlier folders stay noted: one that is missing today may be on a disk that is not mounted. */
interface SnapshotFolders {
  database: string
  folders: string[]
}

type FoundCopy = Omit<Copy, 'identity' | 'maintainedAt'>

async function copiesIn(file: string, database: string, folders: readonly string[]): Promise<FoundCopy[]> {
  const beside = [...copiesOf(file), ...keptByRestores(file)].map(path => ({
    path,
    namedAt: undefined,
    isInOwnFolder: true,
    isSnapshot: false,
  }))
  const snapshots = await Promise.all(
    folders.map(async folder => {
      const kept = await keptSnapshots(database, folder, Number.POSITIVE_INFINITY)
      const isInOwnFolder = isOwnFolder(folder, database)
      return kept.map(({ path, at }) => ({ path, namedAt: at, isInOwnFolder, isSnapshot: true }))
    }),
  )
  const all = [...beside, ...snapshots.flat()]
  const dated = await Promise.all(
    all.map(async copy => {
      try {
        return [{ ...copy, modifiedAt: (await stat(copy.path)).mtimeMs }]
      } catch {
        // It has gone meanwhile.
        return []
      }
    }),
  )
  return dated.flat()
}

async function countFromNow(path: string, now: number, log: Log): Promise<void> {
  try {
    await utimes(path, now / 1000, now / 1000)
  } catch (error) {
    log.warn('The age of a copy of the warehouse is not known and cannot be noted', { path, error })
  }
}

function instantOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text)
}
