import { type ApiAccess, accessGone, noAnswer } from '../../api/access-errors.ts'
import type { Sent } from '../../api/client.ts'
import type { GovernorState } from '../../api/governor/governor.ts'
import { failureCause, failureText } from '../../api/outcome-texts.ts'
import {
  isAbandoned,
  isAccessInDoubt,
  isAnotherSite,
  type NextStep,
  nextStep,
  patienceLeftMs,
  type Reach,
  type ReachEvent,
  type ReachOptions,
  reachAfter,
  restMs,
  startReach,
  type Trouble,
  troubleOf,
  whileSending,
  withoutWait,
} from '../../api/reach.ts'
import type { ApiRequest } from '../../api/request.ts'
import type { ResourceName } from '../../catalog/resource-names.ts'
import { isoInstant } from '../../clock.ts'
import type { StopError } from '../../errors.ts'
import { META } from '../../store/sync/meta.ts'
import type { EngineContext } from '../context.ts'

/** Holds the state of `api/reach.ts`: feeds it every outcome and records changes in the log and the database. */
export interface Reachability {
  /** Clears the trouble that an earlier process stored, unless access was lost. */
  begin(): void
  noteSending(request: ApiRequest): void
  observe(asked: Asked, sent: Sent): void
  next(): NextStep
  /** Time until a request on this route may be sent, in ms. */
  restMs(route: string): number
  /** Why a backfill has abandoned this route; undefined when it has not. */
  abandonedReason(route: string): string | undefined
  /** Whether the whole API is silent, so that a failure is not the fault of the request. */
  isAway(): boolean
  isAccessInDoubt(): boolean
  /** Unexpected 403 and 404 since the last answer. */
  refusedInARow(): number
  /** Stores the governor's current pause, or that it is over, so that `parley status` can show it. */
  notePause(pause: GovernorPause): void
  /** Does not count a wait of parley itself, such as a pause after a 429, as silence of the API. */
  excludeWait(ms: number): void
  /** Time until the run gives up, in ms; infinite in the daemon. */
  patienceLeftMs(): number
  /** The error that ends the run when the API has been silent for too long. */
  silenceError(): StopError | undefined
  /** The error that ends the run when access is lost. */
  accessError(): StopError
  trouble(): Unreachable | undefined
  /** Clears the stored trouble when this process stops reading. */
  end(): void
}

export interface Asked {
  feed: string
  request: ApiRequest
  isDeclared: boolean
}

export type GovernorPause = Pick<GovernorState, 'pausedUntil' | 'pauseReason'>

type PauseKind = 'asked-to-wait' | 'day-used-up'

/** Why the API cannot be read, for status and progress displays. */
export interface Unreachable {
  kind: Trouble['kind'] | PauseKind
  /** Both in ms since the epoch, by this machine's clock. */
  since: number
  nextTryAt: number
  reason: string
  /** When the run gives up; undefined in the daemon. */
  givesUpAt: number | undefined
}

export interface ReachabilityDeps {
  context: Pick<EngineContext, 'clock' | 'log' | 'store'>
  /** For error messages. */
  access: ApiAccess
  resources: readonly ResourceName[]
  options: ReachOptions
  /** Infinite in the daemon. */
  giveUpMs: number
  random: () => number
}

/** Shorter pauses are not stored. */
const NOTED_PAUSE_MS = 30_000

const PAUSE_REASONS: Readonly<Record<PauseKind, string>> = {
  'asked-to-wait': 'HTTP 429: Too Many Requests',
  'day-used-up': 'api.max_requests_per_day is reached',
}

export function createReachability({
  context,
  access,
  resources,
  options,
  giveUpMs,
  random,
}: ReachabilityDeps): Reachability {
  const { clock, store, log } = context
  let reach = startReach(options, clock.elapsed())
  let lastFailure = ''
  /** Whether all responses since the last answer had a form that is not the API's. */
  let onlyForeign: boolean | undefined
  let paused: { kind: PauseKind; since: number; until: number } | undefined
  let noted: string | undefined

  const trouble = (): Unreachable | undefined => {
    const found = troubleOf(reach)
    const instant = (elapsed: number) => Math.round(clock.now() + elapsed - clock.elapsed())
    if (found) {
      return {
        kind: found.kind,
        since: instant(found.since),
        nextTryAt: Math.max(instant(found.nextTrialAt), clock.now()),
        reason: found.reason,
        givesUpAt: giveUpMs === Number.POSITIVE_INFINITY ? undefined : clock.now() + patienceLeft(),
      }
    }
    if (!paused) return undefined
    const { kind, since, until } = paused
    return { kind, since, nextTryAt: until, reason: PAUSE_REASONS[kind], givesUpAt: undefined }
  }

  const patienceLeft = () => patienceLeftMs(reach, giveUpMs, clock.elapsed())

  /** Writes only changes. An error is ignored: on a full disk another transaction ends the run. */
  const note = (always = false) => {
    const found = trouble()
    const value = found && {
      kind: found.kind,
      reason: found.reason,
      since: isoInstant(found.since),
      next_try_at: isoInstant(found.nextTryAt),
      resources,
    }
    const text = value && JSON.stringify(value)
    if (text === noted && !always) return
    noted = text
    void store.transaction(() => store.state.noteUnreachable(value)).catch(() => undefined)
  }

  /** While access is in doubt, the note of an earlier process or session may still be true. */
  const noteChange = () => {
    const isNoted = noted !== undefined && !isAccessInDoubt(reach)
    if (isNoted || trouble() !== undefined) note()
  }

  const change = (next: Reach) => {
    const before = troubleOf(reach)
    logRoutes(reach, next)
    reach = next
    const after = troubleOf(reach)
    if (after && !before) {
      const { baseUrl, workspaceId } = access
      log.warn(BEGINS[after.kind], { reason: after.reason, base_url: baseUrl, workspace: workspaceId })
    }
    if (before && !after)
      log.info(ENDS[before.kind], { duration_ms: Math.round(clock.elapsed() - before.since) })
    noteChange()
  }

  const logRoutes = (before: Reach, after: Reach) => {
    if (before.routes === after.routes) return
    for (const [route, { rests, reason, restUntil }] of after.routes) {
      if (rests !== 1 || (before.routes.get(route)?.rests ?? 0) > 0) continue
      log.warn('Requests on a route fail repeatedly; the route is tried less often', {
        route,
        reason,
        wait_ms: Math.round(restUntil - clock.elapsed()),
      })
    }
    for (const [route, { rests }] of before.routes) {
      if (rests > 0 && !after.routes.has(route)) log.info('Route is no longer tried less often', { route })
    }
  }

  return {
    begin() {
      const stored = store.state.meta(META.unreachable)
      if (options.accessWasLost) noted = stored
      else if (stored !== 'null') note(true)
    },
    noteSending: ({ route }) => change(whileSending(reach, route)),
    observe(asked, sent) {
      if (sent.kind === 'retry' && sent.cause !== 'throttled') lastFailure = failureText(sent)
      onlyForeign = sent.kind === 'answer' ? undefined : isForeign(sent, onlyForeign)
      change(reachAfter(reach, eventOf(asked, sent, clock.elapsed(), random)))
    },
    next: () => nextStep(reach, clock.elapsed()),
    restMs: route => restMs(reach, route, clock.elapsed()),
    abandonedReason: route => (isAbandoned(reach, route) ? reach.routes.get(route)?.reason : undefined),
    isAway: () => reach.silence?.isAway === true,
    isAccessInDoubt: () => isAccessInDoubt(reach),
    refusedInARow: () => reach.refusal?.undeclared ?? 0,
    notePause({ pausedUntil: until, pauseReason }) {
      const kind = pauseReason === 'requests-per-day' ? 'day-used-up' : 'asked-to-wait'
      if (until === undefined) paused = undefined
      else if (paused || until - clock.now() >= NOTED_PAUSE_MS)
        paused = { kind, since: paused?.kind === kind ? paused.since : clock.now(), until }
      noteChange()
    },
    excludeWait(ms) {
      reach = withoutWait(reach, ms)
    },
    patienceLeftMs: patienceLeft,
    silenceError() {
      if (patienceLeft() > 0) return undefined
      return noAnswer(access, lastFailure, onlyForeign === true || isAnotherSite(reach))
    },
    accessError: () => accessGone(access, onlyForeign === true),
    trouble,
    end() {
      if (noted !== undefined)
        void store.transaction(() => store.state.noteUnreachable(undefined)).catch(() => undefined)
      noted = undefined
    },
  }
}

const BEGINS: Readonly<Record<Trouble['kind'], string>> = {
  silent: 'No request to the API succeeds; parley tries again with growing waits',
  refused: 'The API refuses every list with 403 or 404; nothing is marked as deleted meanwhile',
}

const ENDS: Readonly<Record<Trouble['kind'], string>> = {
  silent: 'The API answers again',
  refused: 'The API grants access again',
}

/** A failure without a response says nothing about the form of responses. */
function isForeign(sent: Sent, before: boolean | undefined): boolean | undefined {
  if (sent.kind === 'retry' && sent.status === undefined) return before
  const isForeignNow = (sent.kind === 'refused' || sent.kind === 'retry') && sent.isForeign === true
  return isForeignNow && before !== false
}

function eventOf(
  { feed, request, isDeclared }: Asked,
  sent: Sent,
  at: number,
  random: () => number,
): ReachEvent {
  const { route } = request
  if (sent.kind === 'refused' && (sent.status === 403 || sent.status === 404)) {
    return { kind: 'refused', at, route, feed, isDeclared, isForeign: sent.isForeign, random }
  }
  if (sent.kind === 'fault' && sent.code === 'redirect')
    return { kind: 'redirected', at, route, feed, random }
  if (sent.kind !== 'retry') return { kind: 'answered', at, route }
  const { cause, status } = sent
  if (cause === 'throttled') return { kind: 'throttled', at, route }
  const sentAt = at - sent.durationMs
  return {
    kind: 'failed',
    at,
    sentAt,
    route,
    feed,
    path: request.path,
    cause,
    status,
    isForeign: sent.isForeign === true,
    message: failureCause(sent),
    random,
  }
}
