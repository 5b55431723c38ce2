import { existsSync } from 'node:fs'
import { StopError } from '../../base/errors.ts'
import { openDatabase } from './open.ts'
import type { WantedWorkspace } from './workspace.ts'

/**
 * Checks the workspace of a database before it is opened for writing. A missing database passes. So does one that
 * cannot be read: opening it for writing reports the error.
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
