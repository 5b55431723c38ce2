import type Database from 'better-sqlite3'
import { EXIT_STATUS, StopError } from '../../errors.ts'
import { META, type State } from '../state.ts'

/** The workspace whose rows a database holds, as `status --json` prints it. */
export interface Workspace {
  id: string
  /** Where it was read last. */
  base_url: string
}

/** The workspace of the settings. */
export interface WantedWorkspace {
  id: string
  baseUrl: string
  /** The owner says that the database's workspace has this id now. */
  isRenamed?: boolean
}

/** Undefined until the first rows are stored. */
export function workspaceOf(db: Database.Database): Workspace | undefined {
  if (!db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sync_meta'").get()) return undefined
  const noted = db.prepare('SELECT value FROM sync_meta WHERE key = ?').pluck().get(META.workspace)
  return typeof noted === 'string' ? (JSON.parse(noted) as Workspace) : undefined
}

/** @throws StopError (78) when the database holds rows of another workspace */
export function refuseOtherWorkspace(db: Database.Database, file: string, wanted: WantedWorkspace): void {
  const held = workspaceOf(db)
  if (held === undefined || held.id === wanted.id || wanted.isRenamed) return
  throw new StopError(`${file} holds workspace ${held.id}, and the settings say ${wanted.id}`, {
    code: 'other-workspace',
    hint: 'Each workspace needs a database of its own: set database.path. If the workspace has a new id, run parley backfill --workspace-renamed once.',
    exitStatus: EXIT_STATUS.settings,
  })
}

/** Notes the workspace with the first rows that this process stores; called inside their transaction. */
export function createClaim(state: Pick<State, 'meta' | 'setMeta'>, wanted: WantedWorkspace | undefined) {
  const note = wanted && JSON.stringify({ id: wanted.id, base_url: wanted.baseUrl } satisfies Workspace)
  let isNoted = note === undefined
  return (): void => {
    if (isNoted || note === undefined) return
    // A transaction that is rolled back takes the note with it: then the next rows find it missing.
    isNoted = state.meta(META.workspace) === note
    if (!isNoted) state.setMeta(META.workspace, note)
  }
}
