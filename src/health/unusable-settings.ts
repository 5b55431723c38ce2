import { errorCode, reasonOf, StopError } from '../base/errors.ts'
import { singleLine } from '../base/safe-text.ts'
import { refuseHeldWorkspace } from '../store/file/workspace.ts'
import type { ResourceFacts, StatusReport } from '../store/status/report.ts'
import type { HealthProblem } from './problems.ts'

/** Problems of settings that a running daemon does not have: a daemon that starts with them ends at once. Pure. */

export const unusableSettings = (error: unknown): HealthProblem => ({
  id: 'settings:unusable',
  kind: 'act',
  what: isForbidden(error)
    ? 'This user may not read the settings'
    : 'A daemon that starts with these settings ends at once',
  detail: singleLine(reasonOf(error)).replace(/\.$/, ''),
  todo: (error instanceof StopError && error.hint) || 'Correct them.',
  since: null,
})

const isForbidden = (error: unknown) => error instanceof StopError && errorCode(error.cause) === 'EACCES'

/** @param workspaceId the workspace that the settings name; undefined when they name none */
export function workspaceProblems(
  { workspace, database }: StatusReport<ResourceFacts>,
  workspaceId: string | undefined,
): HealthProblem[] {
  if (workspaceId === undefined) return []
  try {
    refuseHeldWorkspace(workspace, database, { id: workspaceId })
    return []
  } catch (error) {
    return [unusableSettings(error)]
  }
}
