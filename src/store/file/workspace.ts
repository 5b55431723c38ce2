import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { META, readMeta, readNote } from '../sync/meta.ts'
import type { State } from '../sync/resource-state.ts'

/** The workspace whose rows a database holds, as `status --json` prints it. */
export interface Workspace {
  id: string
  /** Base URL of the API from which the workspace was last read. */
  base_url: string
}

/** The workspace that the settings name. */
export interface WantedWorkspace {
  id: string
  baseUrl: string
  /** True with `--workspace-renamed`: the workspace of the database now has this id. */
  isRenamed?: boolean
}

/** @returns the workspace that the database holds; undefined until the first rows are stored */
export function workspaceOf(db: Sqlite): Workspace | undefined {
  return readNote<Workspace>(key => readMeta(db, key), META.workspace)
}

/** @throws StopError (78) when the database holds rows of another workspace */
export function refuseOtherWorkspace(db: Sqlite, file: string, wanted: WantedWorkspace): void {
  refuseHeldWorkspace(workspaceOf(db), file, wanted)
}

/**
 * @param held what the database holds; null or undefined until the first rows are stored
 * @throws StopError (78) when that is another workspace
 */
export function refuseHeldWorkspace(
  held: Workspace | null | undefined,
  file: string,
  wanted: Pick<WantedWorkspace, 'id' | 'isRenamed'>,
): void {
  if (!held || held.id === wanted.id || wanted.isRenamed) return
  throw new StopError(`${file} holds workspace ${held.id}, but the settings name workspace ${wanted.id}`, {
    code: 'other-workspace',
    hint: 'Check api.workspace_id, or set database.path to another file: each workspace needs its own. If this workspace got a new id, stop the daemon and run parley backfill --workspace-renamed once.',
    exitStatus: EXIT_STATUS.settings,
  })
}

/** Returns a function that stores the workspace in `sync_meta`. Call it in each transaction that stores rows. */
export function createWorkspaceRecorder(
  state: Pick<State, 'meta' | 'setMeta'>,
  wanted: WantedWorkspace | undefined,
) {
  const record = wanted && JSON.stringify({ id: wanted.id, base_url: wanted.baseUrl } satisfies Workspace)
  let isRecorded = record === undefined
  return (): void => {
    if (isRecorded || record === undefined) return
    // A rollback can remove the record again. So it counts as stored only when a later transaction finds it.
    isRecorded = state.meta(META.workspace) === record
    if (!isRecorded) state.setMeta(META.workspace, record)
  }
}
