import type { ApiAccess } from '../../api/access-errors.ts'
import type { RouteLimits } from '../../api/governor/route-limits.ts'
import { type Reach, type Trouble, troubleOf } from '../../api/reach.ts'
import { isoInstant } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { GATE_KINDS, type Gate } from '../../store/sync/gates.ts'

export interface ReachChange {
  before: Reach
  after: Reach
  access: ApiAccess
  /** Monotonic, in ms. */
  now: number
}

/** Logs when the API or one of its routes begins to fail, and when it works again. */
export function logReachChange(log: Pick<Log, 'info' | 'warn'>, change: ReachChange): void {
  logRoutes(log, change)
  const [before, after] = [troubleOf(change.before), troubleOf(change.after)]
  if (after && !before) {
    const { baseUrl, workspaceId } = change.access
    log.warn(BEGINS[after.kind], { reason: after.reason, base_url: baseUrl, workspace: workspaceId })
  }
  if (before && !after) log.info(ENDS[before.kind], { duration_ms: Math.round(change.now - before.since) })
}

const BEGINS: Readonly<Record<Trouble['kind'], string>> = {
  silent: 'No request to the API succeeds; parley tries again with growing waits',
  refused: 'The API refuses every list with 403 or 404; nothing is marked as deleted meanwhile',
}

const ENDS: Readonly<Record<Trouble['kind'], string>> = {
  silent: 'The API answers again',
  refused: 'The API grants access again',
}

/** A pause of the governor, which is not the fault of the API. */
export type PauseKind = Extract<Gate['kind'], 'asked-to-wait' | 'day-used-up'>

/** `since` and `until` are in ms since the epoch. */
export interface NotedPause {
  kind: PauseKind
  since: number
  until: number
}

/** Logs when requests begin to wait, and when they are sent again. */
export function logPauseChange(
  log: Pick<Log, 'info' | 'warn'>,
  { before, after, now }: { before: NotedPause | undefined; after: NotedPause | undefined; now: number },
): void {
  if (before?.kind === after?.kind) return
  if (after)
    log.warn(GATE_KINDS[after.kind].is, { wait_ms: after.until - now, until: isoInstant(after.until) })
  else if (before) log.info('Requests are sent again', { duration_ms: now - before.since })
}

/** Logs once of each route that it has its own limit. */
export function logOwnLimits(
  log: Pick<Log, 'warn'>,
  { before, after, now }: { before: RouteLimits; after: RouteLimits; now: number },
): void {
  if (before.routes === after.routes) return
  for (const [route, { isOwn, closedUntil }] of after.routes) {
    if (!isOwn || before.routes.get(route)?.isOwn) continue
    const wait_ms = Math.round(closedUntil - now)
    log.warn('The API limits the requests on one route; the others go on', { route, wait_ms })
  }
}

function logRoutes(log: Pick<Log, 'info' | 'warn'>, { before, after, now }: ReachChange): void {
  if (before.routes === after.routes) return
  for (const [route, { rests, reason, restUntil }] of after.routes) {
    if (rests !== 1 || (before.routes.get(route)?.rests ?? 0) > 0) continue
    log.warn('Requests on a route fail repeatedly; the route is tried less often', {
      route,
      reason,
      wait_ms: Math.round(restUntil - now),
    })
  }
  for (const [route, { rests }] of before.routes) {
    if (rests > 0 && !after.routes.has(route))
      log.info('The route answers again; its requests have their usual intervals', { route })
  }
}
