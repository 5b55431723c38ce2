import { type ApiAccess, accessGone, noAnswer } from '../../api/access.ts'
import type { Sent } from '../../api/client.ts'
import {
  type Heard,
  isAccessInDoubt,
  isAnotherSite,
  isGivenUp,
  type NextStep,
  nextStep,
  patienceLeftMs,
  type Reach,
  type ReachOptions,
  reachAfter,
  restMs,
  startReach,
  type Trouble,
  troubleOf,
  whileSending,
  withExcusedWait,
} from '../../api/reach.ts'
import type { ApiRequest } from '../../api/request.ts'
import { failureCause, failureText } from '../../api/verdict.ts'
import type { ResourceName } from '../../catalog/resource.ts'
import { isoInstant } from '../../clock.ts'
import type { StopError } from '../../errors.ts'
import { META } from '../../store/sync/meta.ts'
import type { EngineContext } from '../context.ts'

/** Keeps what `api/reach.ts` decides: hears every outcome, and says in the log and the database when it matters. */
export interface Reachability {
  /** Takes back what an earlier process noted, unless access is still lost by what is known. */
  begin(): void
  sending(request: ApiRequest): void
  heard(asked: Asked, sent: Sent): void
  next(): NextStep
  /** Until a request on this route may be sent, in ms. */
  restMs(route: string): number
  /** Why requests on this route are no longer worth sending in a run that ends; undefined while they are. */
  abandonReason(route: string): string | undefined
  /** Whether no answer at all is to be had at present, so that a failure is not the request's. */
  isAway(): boolean
  isAccessInDoubt(): boolean
  /** Unexpected 403 and 404 since the last answer. */
  refusedInARow(): number
  /** Until this instant the API, or the owner, wants no request: it is noted for others to see. */
  waiting(untilMs: number | undefined): void
  /** Waiting for a permit is no silence. */
  excuse(ms: number): void
  /** Until the run gives up, in ms; infinite in the daemon. */
  patienceLeftMs(): number
  /** What the run ends with when nothing has answered for too long. */
  tooLong(): StopError | undefined
  /** What the run ends with when access is lost. */
  accessGone(): StopError
  trouble(): Unreachable | undefined
  /** Takes what was noted for others back: this process asks no longer. */
  end(): void
}

export interface Asked {
  feed: string
  request: ApiRequest
  isDeclared: boolean
}

/** Why the API cannot be asked, for people. */
export interface Unreachable {
  kind: Trouble['kind'] | 'asked-to-wait'
  /** Both in ms since the epoch, by this machine's clock. */
  since: number
  nextTryAt: number
  reason: string
  /** When the run gives up; undefined in the daemon. */
  givesUpAt: number | undefined
}

export interface ReachabilityDeps {
  context: EngineContext
  /** For error messages. */
  access: ApiAccess
  resources: readonly ResourceName[]
  options: ReachOptions
  /** Infinite in the daemon. */
  giveUpMs: number
  random: () => number
}

/** A wait that the API asks for is shown to others from this length on. */
const NOTED_WAIT_MS = 30_000

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
  /** Whether all that came since the last answer was in a form that is not the API's. */
  let onlyForeign: boolean | undefined
  let waiting: { since: number; until: number } | undefined
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
    if (!waiting) return undefined
    const { since, until } = waiting
    return { kind: 'asked-to-wait', since, nextTryAt: until, reason: 'it asks to wait', givesUpAt: undefined }
  }

  const patienceLeft = () => patienceLeftMs(reach, giveUpMs, clock.elapsed())

  /** Written only when it differs, and not waited for: on a full disk the run ends for a reason of its own. */
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

  const change = (next: Reach) => {
    const before = troubleOf(reach)
    tellOfRoutes(reach, next)
    reach = next
    const after = troubleOf(reach)
    if (after && !before) {
      const { baseUrl, workspaceId } = access
      log.warn(BEGINS[after.kind], { reason: after.reason, base_url: baseUrl, workspace: workspaceId })
    }
    if (before && !after)
      log.info(ENDS[before.kind], { duration_ms: Math.round(clock.elapsed() - before.since) })
    if (before !== after || waiting) note()
  }

  const tellOfRoutes = (before: Reach, after: Reach) => {
    if (before.routes === after.routes) return
    for (const [route, { rests, reason, restUntil }] of after.routes) {
      if (rests !== 1 || (before.routes.get(route)?.rests ?? 0) > 0) continue
      log.warn('A route does not answer and is asked less often', {
        route,
        reason,
        wait_ms: Math.round(restUntil - clock.elapsed()),
      })
    }
    for (const [route, { rests }] of before.routes) {
      if (rests > 0 && !after.routes.has(route)) log.info('A route answers again', { route })
    }
  }

  return {
    begin() {
      if (!options.accessWasLost && store.state.meta(META.unreachable) !== 'null') note(true)
    },
    sending: ({ route }) => change(whileSending(reach, route)),
    heard(asked, sent) {
      if (sent.kind === 'retry' && sent.cause !== 'throttled') lastFailure = failureText(sent)
      if (sent.kind !== 'retry') waiting = undefined
      onlyForeign = sent.kind === 'answer' ? undefined : isForeign(sent, onlyForeign)
      change(reachAfter(reach, eventOf(asked, sent, clock.elapsed(), random)))
    },
    next: () => nextStep(reach, clock.elapsed()),
    restMs: route => restMs(reach, route, clock.elapsed()),
    abandonReason: route => (isGivenUp(reach, route) ? reach.routes.get(route)?.reason : undefined),
    isAway: () => reach.silence?.isAway === true,
    isAccessInDoubt: () => isAccessInDoubt(reach),
    refusedInARow: () => reach.refusal?.undeclared ?? 0,
    waiting(untilMs) {
      if (untilMs === undefined || untilMs - clock.now() < NOTED_WAIT_MS) return
      waiting = { since: waiting?.since ?? clock.now(), until: untilMs }
      note()
    },
    excuse(ms) {
      reach = withExcusedWait(reach, ms)
    },
    patienceLeftMs: patienceLeft,
    tooLong() {
      if (patienceLeft() > 0) return undefined
      return noAnswer(access, lastFailure, onlyForeign === true || isAnotherSite(reach))
    },
    accessGone: () => accessGone(access, onlyForeign === true),
    trouble,
    end() {
      if (noted !== undefined)
        void store.transaction(() => store.state.noteUnreachable(undefined)).catch(() => undefined)
      noted = undefined
    },
  }
}

const BEGINS: Readonly<Record<Trouble['kind'], string>> = {
  silent: 'The API does not answer',
  refused: 'The API refuses every list with 403 or 404; nothing is marked as deleted meanwhile',
}

const ENDS: Readonly<Record<Trouble['kind'], string>> = {
  silent: 'The API answers again',
  refused: 'The API grants access again',
}

/** What fails without an answer tells nothing of its form. */
function isForeign(sent: Sent, before: boolean | undefined): boolean | undefined {
  if (sent.kind === 'retry' && sent.status === undefined) return before
  const isForeignNow = (sent.kind === 'refused' || sent.kind === 'retry') && sent.isForeign === true
  return isForeignNow && before !== false
}

function eventOf({ feed, request, isDeclared }: Asked, sent: Sent, at: number, random: () => number): Heard {
  const { route } = request
  if (sent.kind === 'refused' && (sent.status === 403 || sent.status === 404)) {
    return { kind: 'refused', at, route, feed, isDeclared, isForeign: sent.isForeign, random }
  }
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
