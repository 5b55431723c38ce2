import { existsSync } from 'node:fs'
import { StopError } from '../../errors.ts'
import { openDatabase } from '../open.ts'
import type { WantedWorkspace } from './workspace.ts'

/**
 * Looks at a database before anything is begun with it. Where there is none, or it cannot be read, its opening for
 * writing says so.
 * @throws StopError (78) when it holds rows of another workspace
 */
export function refuseOtherWorkspaceAt(path: string, workspace: WantedWorkspace): void {
  if (!existsSync(path)) return
  try {
    openDatabase({ path, readonly: true, workspace }).close()
  } catch (error) {
    if (error instanceof StopError && error.code === 'other-workspace') throw error
  }
}
