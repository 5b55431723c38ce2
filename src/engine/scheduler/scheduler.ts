import type { HealthCheck } from '../../api/reach-events.ts'
import type { Query } from '../../api/request.ts'
import { feedsOf } from '../../catalog/feeds.ts'
import type { Feed, Resource } from '../../declare/resource.ts'
import { writeError } from '../../store/migrations/foreign-objects.ts'
import type { Gate } from '../../store/sync/gates.ts'
import type { EngineContext } from '../context/context.ts'
import type { EngineDeps } from '../context/engine-options.ts'
import type { EndlessWork, Source } from '../context/job.ts'
import { createRequestAttempts } from '../requests/attempts.ts'
import { createReachability } from '../requests/reachability.ts'
import { noProgress } from '../requests/request-counts.ts'
import { createRouteSlots } from '../requests/route-slots.ts'
import { createLanes } from './lanes.ts'
import { createSteps } from './steps.ts'
import { createWaiting } from './waiting.ts'

export type Scheduler = ReturnType<typeof createScheduler>

export interface SchedulerDeps
  extends Pick<EngineDeps, 'client' | 'governor' | 'random' | 'saveLearned' | 'stopNew' | 'cancel'> {
  context: EngineContext
  sources: readonly Source[]
  /** Undefined in the daemon. */
  giveUpMs?: number
  /** In catalogue order. */
  resources: readonly Resource[]
  access: AccessBefore
  /** What an earlier session of the daemon has closed. */
  closedBefore?: readonly Gate[]
  /** Set in the daemon, which continues when no work is left. */
  endless?: EndlessWork
}

/** The access to the API before the first request. */
export interface AccessBefore {
  /** Access counts as lost when all lists are refused again this long after access came into doubt. In ms. */
  againAfterMs: number
  /** Whether the API answered before. False if the first refusals are final, as in a backfill or after lost access. */
  wasAnswered: boolean
  /** Whether the last session ended because access was lost. */
  wasLost: boolean
  /**
   * Whether a 401 before the first answer shows by itself that the key is refused: the API has never answered, or the
   * last session ended because two routes refused the key.
   */
  isFirstRefusalFinal: boolean
}

/**
 * Chooses which job's request is sent next. It waits for a permit first and chooses the job then, so no job waits in a
 * queue ahead of a more urgent one. Lanes share the requests; what a lane does not use goes to the others.
 *
 * When no request is sent, the scheduler waits for one of these, in this order (steps.ts):
 * 1. the API, or answers in flight or not yet stored (next-step.ts);
 * 2. a permit of the governor (`nextPermit`);
 * 3. the end of another program's transaction (`store.waitUntilFree`);
 * 4. work (`waitForWork`, due/due.ts).
 * Waits outside a run are in the list in src/README.md.
 */
export function createScheduler(deps: SchedulerDeps) {
  const { context, governor, sources, endless, stopNew } = deps
  const { clock, store } = context
  const progress = noProgress()
  const { againAfterMs, wasAnswered, wasLost: accessWasLost } = deps.access
  const reachability = createReachability({
    context,
    access: deps.client.access,
    resources: deps.resources.map(({ name }) => name),
    resourcesOf: route => [
      ...new Set(sources.filter(source => source.route === route).map(({ resource }) => resource)),
    ],
    options: {
      healthChecks: healthChecksOf(deps.resources),
      againAfterMs,
      wasAnswered,
      accessWasLost,
      ...(deps.giveUpMs !== undefined && { giveUpMs: deps.giveUpMs }),
    },
    before: deps.closedBefore ?? [],
    random: deps.random,
  })
  progress.trouble = reachability.trouble
  let stopped: unknown
  const ending = new AbortController()
  const noMore = AbortSignal.any([stopNew, ending.signal])
  const waits = createWaiting(clock, noMore)

  const stop = (reason: unknown) => {
    stopped ??= reason
    ending.abort()
  }

  /** On an abandoned route, one request of each feed is still sent, at once: its failure closes the feed. */
  const restMs = (route: string) =>
    endless === undefined && reachability.isAbandoned(route) ? 0 : reachability.restMs(route)
  const slots = createRouteSlots({
    most: () => governor.state().concurrency,
    isResting: reachability.isResting,
    onEnd: waits.wake,
  })
  const untilMs = (route: string) => (slots.mayTake(route) ? restMs(route) : Number.POSITIVE_INFINITY)
  const lanes = createLanes(sources, {
    commits: store.transaction.commits,
    elapsed: clock.elapsed,
    untilMs,
  })
  const attempts = createRequestAttempts({
    context,
    client: deps.client,
    reachability,
    slots,
    progress,
    isFirstRefusalFinal: deps.access.isFirstRefusalFinal,
    random: deps.random,
    endless,
    cancel: AbortSignal.any([deps.cancel, ending.signal]),
    pause: governor.state,
    ...(deps.saveLearned && { saveLearned: deps.saveLearned }),
    stop,
    askAgain: lanes.askAgain,
  })

  const steps = createSteps({
    context,
    governor,
    sources,
    endless,
    progress,
    reachability,
    attempts,
    lanes,
    waits,
    noMore,
    restMs,
    stop,
  })

  return {
    progress,
    /** Ends the run with this error. */
    stop,
    /** Excludes a wait between two calls of `run` from the silence of the API. */
    excludeWait: reachability.excludeWait,
    /**
     * Runs until no source has work left or the scheduler is stopped. May be called again when there is more work.
     * @throws the StopError that ended it
     */
    async run() {
      lanes.askAll()
      reachability.begin()
      try {
        while (!stopNew.aborted && stopped === undefined && (await steps.next()));
      } catch (error) {
        // The answers in flight are still stored before the warehouse is closed.
        stop(writeError(error, store.path))
      }
      await steps.end()
      attempts.end()
      reachability.end()
      if (stopped !== undefined) throw stopped
      if (progress.accepted === 0 && progress.turnedAway > 0 && !stopNew.aborted)
        throw reachability.accessError()
    },
  }
}

/**
 * One cheap request for each chosen list that needs no ids. The access log is left out, since its request needs a period,
 * and so are lists that a workspace may not offer: a gateway refuses them even while the API behind it is away.
 */
function healthChecksOf(resources: readonly Resource[]): HealthCheck[] {
  return resources.flatMap(feedsOf).flatMap(({ resource, id, feed }) => {
    const list = requestOf(feed)
    if (list === undefined || mayBeUnavailable(feed)) return []
    const { path, query } = list
    return [{ resource, feed: id, request: { route: path, path, ...(query && { query }) } }]
  })
}

const mayBeUnavailable = ({ expected = {} }: Feed): boolean => Object.values(expected).includes('unavailable')

function requestOf(feed: Feed): { path: string; query?: Query } | undefined {
  if (feed.mode === 'singleton') return { path: feed.read.path }
  if (feed.mode !== 'timeline' && feed.mode !== 'snapshot') return undefined
  if (feed.mode === 'snapshot' && feed.scope) return undefined
  const { path, paging } = feed.list
  // A list of unknown paging is requested without a limit, since it may not accept one.
  return paging === 'any' ? { path } : { path, query: { limit: '1' } }
}
