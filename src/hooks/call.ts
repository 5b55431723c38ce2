import { singleLine } from '../base/safe-text.ts'
import type { HOOK_VARIABLES } from '../config/settings.ts'
import { clockText, durationText } from '../terminal/wording.ts'
import type { HookEvent, WatchedProblem } from './announcements.ts'

/** Builds what a command or a webhook gets: names, counts and times only, never content. Pure. */

export interface HookCall {
  event: HookEvent
  problem: Pick<WatchedProblem, 'id' | 'what' | 'detail' | 'todo' | 'since'>
  workspaceId: string
  /** How long the problem has lasted. */
  lastedMs: number
}

/** The JSON document of a call. */
export interface HookPayload {
  event: HookEvent
  id: string
  what: string
  /** What the API or the system answered; empty for a recovery, and when `what` says all. */
  detail: string
  since: string
  lasted_seconds: number
  /** Empty for a recovery. */
  todo: string
  workspace: string
  /** A text with all other fields. Slack, Mattermost and similar services show it. */
  text: string
}

export function payloadOf({ event, problem, workspaceId, lastedMs }: HookCall): HookPayload {
  const { since } = problem
  const isOver = event === 'recovered'
  const what = singleLine(problem.what)
  const detail = isOver ? '' : singleLine(problem.detail ?? '')
  const todo = isOver ? '' : singleLine(problem.todo)
  const workspace = singleLine(workspaceId)
  const begun = `${what} (since ${clockText(since, Date.parse(since) + lastedMs)}).`
  const said = isOver
    ? `recovered after ${durationText(lastedMs)}: ${begun}`
    : `${begun}${detail === '' ? '' : ` ${detail}.`} ${todo}`
  return {
    event,
    id: singleLine(problem.id),
    what,
    detail,
    since,
    lasted_seconds: Math.floor(lastedMs / 1000),
    todo,
    workspace,
    text: `parley, workspace ${workspace}: ${said}`,
  }
}

/** The same fields as environment variables. */
export function hookVariables(
  payload: HookPayload,
): Readonly<Record<(typeof HOOK_VARIABLES)[number] | 'PARLEY_WORKSPACE_ID', string>> {
  return {
    PARLEY_EVENT: payload.event,
    PARLEY_PROBLEM_ID: payload.id,
    PARLEY_PROBLEM_WHAT: payload.what,
    PARLEY_PROBLEM_DETAIL: payload.detail,
    PARLEY_PROBLEM_SINCE: payload.since,
    PARLEY_PROBLEM_SECONDS: String(payload.lasted_seconds),
    PARLEY_PROBLEM_TODO: payload.todo,
    PARLEY_WORKSPACE_ID: payload.workspace,
    PARLEY_TEXT: payload.text,
  }
}
