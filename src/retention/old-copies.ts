import { readdir, stat, utimes } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { errorCode, isMissingFile } from '../base/errors.ts'
import type { Log, LogFields } from '../base/log.ts'
import type { Settings } from '../config/loaded-settings.ts'
import {
  copiesBeforeUpgrades,
  keptByRestores,
  type Removal,
  removeFiles,
  removePartials,
  snapshotInstant,
} from '../store/copies/copy-files.ts'
import { unfinishedCopiesOf } from '../store/migrations/backup.ts'
import { ownersOf } from '../store/snapshot/copy-process.ts'
import { defaultSnapshotFolder, isOwnFolder, keptSnapshots } from '../store/snapshot/kept-snapshots.ts'
import type { PurgeRemains } from '../store/status/report.ts'
import type { OpenStore } from '../store/store.ts'
import { META, readNote } from '../store/sync/meta.ts'
import { noteRemains } from './remains-report.ts'
import { type Copy, type CopyRules, fatesOf, instantOf } from './what-to-remove.ts'

/** Removes old copies of the warehouse that parley made, since they may hold content that was purged later. */

export interface OldCopiesDeps {
  store: Pick<OpenStore, 'db' | 'state' | 'transaction'>
  log: Log
  settings: Pick<Settings, 'database' | 'snapshot'>
  signal: AbortSignal
  readOwners?: typeof ownersOf
}

/**
 * Removes copies of this warehouse that are older than `before`, even when snapshots are off now. The newest snapshot
 * stays unless it may hold purged content. Copies from before a purge go as soon as there is a snapshot from after it,
 * and so do unfinished copies that killed processes left. Call it only while this machine's clock is known to be right.
 * @returns the number of logged removals
 */
export async function removeOldCopies(
  deps: OldCopiesDeps,
  rules: Pick<CopyRules, 'now' | 'before'>,
): Promise<number> {
  const left: PurgeRemains[] = []
  const warn: Warn = (message, fields) => {
    deps.log.warn(message, fields)
    left.push({ path: fields.path, reason: fields.reason })
  }
  const count = await removeAndWarn({ ...deps, warn }, rules)
  if (!deps.signal.aborted) await noteRemains(deps.store, 'copies', left)
  return count
}

/** Logs a warning about a copy that stays, and collects it for `parley status`. */
type Warn = (message: string, fields: PurgeRemains & Pick<LogFields, 'hint' | 'error'>) => void

async function removeAndWarn(
  deps: OldCopiesDeps & { warn: Warn },
  { now, before }: Pick<CopyRules, 'now' | 'before'>,
): Promise<number> {
  const { store, log, warn, settings, signal, readOwners = ownersOf } = deps
  // Snapshots are named after the path in the settings, even where that is a link to the file.
  const database = resolve(settings.database.path)
  const folders = await noteSnapshotFolder(deps)
  let count = 0
  const logRemoved = (removed: readonly string[], what: string) => {
    for (const path of removed) log.info(what, { path })
    count += removed.length
  }
  if (before !== undefined) for (const folder of folders) await warnIfUnreadable(folder, warn)
  warnAboutStuck(await removeFiles(unfinishedCopiesOf(store.db.name)), warn)
  warnAboutStuck(await removePartials({ of: store.db.name }), warn)
  for (const folder of folders) {
    const isAlike = (name: string) => snapshotInstant(database, name) !== undefined
    const parts = await removePartials({ of: join(folder, basename(database)), isAlike, now })
    logRemoved(parts.removed, 'An unfinished snapshot was removed')
    warnAboutStuck(parts, warn)
  }
  const found = await findCopies(store.db.name, database, folders, warn)
  if (before === undefined || found.length === 0 || signal.aborted) return count
  const owners = await readOwners(
    found.map(({ path }) => path),
    signal,
  )
  const copies = found.map((copy, at): Copy => {
    const { identity, maintainedAt, purgedAt } = owners[at] ?? {}
    return {
      ...copy,
      identity,
      maintainedAt: instantOf(maintainedAt),
      purgedAt: instantOf(purgedAt),
    }
  })
  const { state } = store
  const fates = fatesOf(copies, {
    now,
    before,
    identity: state.meta(META.identity),
    purgedAt: instantOf(state.meta(META.purgedAt)),
    firstMaintainedAt: instantOf(state.meta(META.firstMaintainedAt)),
  })
  const pathsWith = (fate: string) => copies.flatMap(({ path }, at) => (fates[at] === fate ? [path] : []))
  const removal = await removeFiles(pathsWith('remove'))
  logRemoved(
    removal.removed,
    'An old copy of the warehouse was removed: it may hold content that has been purged',
  )
  warnAboutStuck(removal, warn)
  for (const path of pathsWith('ask'))
    warn('An old snapshot was not removed: parley cannot tell whether it belongs to this warehouse', {
      path,
      reason: 'its identity cannot be read',
      hint: 'If the snapshot belongs to this warehouse, remove it: it may hold content that has been purged.',
    })
  for (const path of pathsWith('recount')) await resetAge(path, now, warn)
  return count
}

function warnAboutStuck({ stuck }: Removal, warn: Warn): void {
  for (const { path, reason } of stuck)
    warn('A copy of the warehouse could not be removed', {
      path,
      reason,
      hint: 'Remove it, since it may hold content that has been purged. Check the owner and mode of its folder.',
    })
}

/** No warning when the folder is missing: it may never have been created, or its disk is not mounted. */
async function warnIfUnreadable(folder: string, warn: Warn): Promise<void> {
  try {
    await readdir(folder)
  } catch (error) {
    if (isMissingFile(error)) return
    warn('A folder of snapshots cannot be read, so no old copy in it is removed', {
      path: folder,
      reason: errorCode(error) ?? 'unknown',
      hint: 'Check its owner and mode. Its snapshots may hold content that has been purged.',
    })
  }
}

/** Records the current snapshot folders. Returns all folders recorded while the database had its current path. */
export async function noteSnapshotFolder({
  store: { state, transaction },
  settings: {
    database: { path },
    snapshot,
  },
}: Pick<OldCopiesDeps, 'store' | 'settings'>): Promise<string[]> {
  const database = resolve(path)
  const noted = readNote<SnapshotFolders>(state.meta, META.snapshotFolders)
  // When the database was moved or copied, snapshots in the earlier folders belong to the database at the earlier path.
  const earlier = noted?.database === database ? noted.folders : []
  const present = [
    defaultSnapshotFolder(database),
    ...(snapshot.folder === undefined ? [] : [snapshot.folder]),
  ]
  const folders = [...new Set([...earlier, ...present.map(folder => resolve(folder))])]
  if (folders.length > earlier.length) {
    await transaction(() => state.setMeta(META.snapshotFolders, JSON.stringify({ database, folders })))
  }
  return folders
}

/** Earlier folders stay recorded: a folder that is missing today may be on a disk that is not mounted. */
interface SnapshotFolders {
  database: string
  folders: string[]
}

type FoundCopy = Omit<Copy, 'identity' | 'maintainedAt' | 'purgedAt'>

async function findCopies(
  file: string,
  database: string,
  folders: readonly string[],
  warn: Warn,
): Promise<FoundCopy[]> {
  const kept = new Set(keptByRestores(file))
  const nextToDatabase = [...copiesBeforeUpgrades(file), ...kept].map(path => ({
    path,
    namedAt: undefined,
    isInOwnFolder: true,
    isKeptByRestore: kept.has(path),
    isSnapshot: false,
  }))
  const snapshots = await Promise.all(
    folders.map(async folder => {
      const kept = await keptSnapshots(database, folder, Number.POSITIVE_INFINITY)
      const isInOwnFolder = isOwnFolder(folder, database)
      return kept.map(({ path, at }) => ({
        path,
        namedAt: at,
        isInOwnFolder,
        isKeptByRestore: false,
        isSnapshot: true,
      }))
    }),
  )
  const all = [...nextToDatabase, ...snapshots.flat()]
  const dated = await Promise.all(
    all.map(async copy => {
      try {
        return [{ ...copy, modifiedAt: (await stat(copy.path)).mtimeMs }]
      } catch (error) {
        // The file may have been removed in the meantime.
        if (isMissingFile(error)) return []
        warn('An old copy of the warehouse cannot be examined, so it is not removed', {
          path: copy.path,
          reason: errorCode(error) ?? 'unknown',
          hint: 'Check the owner and mode of its folder. The copy may hold content that has been purged.',
        })
        return []
      }
    }),
  )
  return dated.flat()
}

async function resetAge(path: string, now: number, warn: Warn): Promise<void> {
  try {
    await utimes(path, now / 1000, now / 1000)
  } catch (error) {
    warn('A copy of the warehouse is never removed: its age is unknown, and its file time could not be set', {
      path,
      reason: errorCode(error) ?? 'unknown',
      hint: 'Remove it when it is no longer needed, or make this user its owner.',
      error,
    })
  }
}
