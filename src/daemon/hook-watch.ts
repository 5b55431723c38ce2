import type { ReportSources } from '../app/report-sources.ts'
import type { Clock } from '../base/clock.ts'
import { StopError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Environment } from '../config/loaded-settings.ts'
import { databaseProblem, lastingProblems, problemsOf } from '../health/problems.ts'
import type { AnnouncedNote, ProblemLook } from '../hooks/announcements.ts'
import { type AnnouncedStorage, type HookWatch, watchProblems } from '../hooks/watch.ts'
import { resolvedPath } from '../store/disk/location.ts'
import { readDatabase } from '../store/file/open.ts'
import { noteWhileWaiting } from '../store/open-warehouse.ts'
import { META, NOTE_DAMAGED, readMeta, readNote } from '../store/sync/meta.ts'
import type { CurrentState } from './state.ts'

export interface HookWatchStartDeps {
  clock: Clock
  log: Log
  env: Environment
  current: CurrentState
  sources: Pick<ReportSources, 'status'>
}

/** Watches the report that `/status` answers. The daemon holds the database's lock until the watch is closed. */
export function startHookWatch({ clock, log, env, current, sources }: HookWatchStartDeps): HookWatch {
  return watchProblems({
    clock,
    log,
    env,
    hooks: () => current.settings.hooks,
    proxies: () => current.settings.proxies,
    workspaceId: () => current.settings.api.workspaceId,
    look: () => lookAt(current, sources, clock),
    storage: { read: () => readAnnounced(current), write: notes => storeAnnounced(current, notes) },
  })
}

async function lookAt(
  current: CurrentState,
  sources: HookWatchStartDeps['sources'],
  clock: Clock,
): Promise<ProblemLook | undefined> {
  try {
    const report = await sources.status()
    return {
      at: clock.now(),
      problems: problemsOf(report, clock.now()),
      lasting: lastingProblems(report),
      isPartial: false,
    }
  } catch (error) {
    if (!(error instanceof StopError)) throw error
    // A session that opens the database may be creating or upgrading it.
    if (current.state.state === 'running' && current.app === undefined) return undefined
    return {
      at: clock.now(),
      problems: [databaseProblem(error, { daemon: current.state, since: null })],
      isPartial: true,
    }
  }
}

function readAnnounced({ app, settings }: CurrentState): ReturnType<AnnouncedStorage['read']> {
  const { path } = settings.database
  try {
    const notes = app
      ? readNote<unknown>(app.store.state.meta, META.announcedProblems)
      : readDatabase({ path }, db => readNote<unknown>(key => readMeta(db, key), META.announcedProblems))
    return Array.isArray(notes) ? notes.filter(isAnnouncedNote) : []
  } catch (error) {
    if (!(error instanceof StopError)) throw error
    return error.code === NOTE_DAMAGED ? [] : undefined
  }
}

const isAnnouncedNote = (note: Partial<AnnouncedNote> | null): note is AnnouncedNote =>
  [note?.id, note?.what, note?.todo, note?.since].every(text => typeof text === 'string')

async function storeAnnounced(
  { app, state, settings }: CurrentState,
  notes: readonly AnnouncedNote[],
): Promise<boolean> {
  const text = JSON.stringify(notes)
  try {
    if (app) {
      await app.store.transaction(() => app.store.state.setMeta(META.announcedProblems, text))
      return true
    }
    if (state.state === 'running') return false
    const path = resolvedPath(settings.database.path)
    return noteWhileWaiting(path, settings.api.workspaceId, meta => meta.set(META.announcedProblems, text))
  } catch {
    // The disk may be full or the database missing. The watch remembers the problems and stores them later.
    return false
  }
}
