import { createClient, type Sent } from '../../src/api/client.ts'
import { type Clock, isoInstant } from '../../src/base/clock.ts'
import { ParleyError, ResourceError, RetryError } from '../../src/base/errors.ts'
import { createLog } from '../../src/base/log.ts'
import { CATALOG, resourceNamed } from '../../src/catalog/catalog.ts'
import { listsOf } from '../../src/catalog/feeds.ts'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { createContext, type EngineContext } from '../../src/engine/context/context.ts'
import { growingBackoff } from '../../src/engine/context/feed-waits.ts'
import type { Job, Source } from '../../src/engine/context/job.ts'
import { byTime } from '../../src/engine/due/by-time.ts'
import { isIdle, nextDueMs } from '../../src/engine/due/due.ts'
import { openSegments, wantSegment } from '../../src/engine/due/wants.ts'
import { settle } from '../../src/engine/run/round-end.ts'
import { createSources } from '../../src/engine/run/sources.ts'
import { createDueClock } from '../../src/store/sync/due-clock.ts'
import type { ScriptedApi } from '../support/scripted-api.ts'
import { API_KEY, type Trial } from './trial-backfill.ts'

/** The daemon's sources over a trial's warehouse. They are read one after the other, so that a test knows the order. */
export interface TimedSources {
  context: EngineContext
  /** Requests everything that is due, until nothing is due. */
  drain(): Promise<void>
  /** Applies this number of answers and sends one more request. Its answer waits until the test applies it. */
  askAfter(requests: number): Promise<{ apply(): Promise<void> } | undefined>
  /** Takes the next request of a feed and sends it. Its answer waits until the test applies it. */
  ask(feed: string): Promise<{ apply(): Promise<void> }>
  /** How long nothing is due, as an idle daemon computes it. */
  nextDueMs(): number
  /** Reports that the API would take more requests than there are. */
  share(): void
  /** Makes every list of the resource due. */
  readAgain(resource: ResourceName): void
  /** Applies confirmed deletions, as the daemon does for an idle resource. */
  settle(resource: ResourceName): Promise<void>
  /** Moves the wall clock of the trial; the server's stays. */
  moveClock(ms: number): void
  /** Advances the trial's clocks and the server's. */
  passTime(ms: number): void
}

/** The result of a request that is not retried. */
function responseError(sent: Exclude<Sent, { kind: 'answer' | 'refused' }>): ParleyError {
  if (sent.kind === 'retry') return new RetryError(sent.message, { code: sent.cause })
  return new ResourceError(sent.message, { code: sent.kind === 'fault' ? sent.code : sent.kind })
}

export interface TimedOptions {
  intervalScale?: number
  /** Default: never. Lists are due when a test says so. */
  pollMs?: number
  since?: string
  /** Default: this machine's clock, which only `moveClock` moves. */
  clock?: Clock
}

export async function startTimed(
  api: ScriptedApi,
  trial: Trial,
  resources: readonly ResourceName[],
  { intervalScale = 1, pollMs = Number.POSITIVE_INFINITY, since, clock: given }: TimedOptions = {},
): Promise<TimedSources> {
  let moved = 0
  const clock: Clock = given ? { ...given, now: () => given.now() + moved } : trial.clock
  const store = { ...trial.store, dueClock: createDueClock(clock, trial.store.state) }
  const log = await createLog({ level: 'trace', stream: { write: () => true } })
  const client = createClient({
    baseUrl: api.url,
    apiKey: () => API_KEY,
    workspaceId: 'workspace',
    keySource: { by: 'environment', text: 'environment PARLEY_API_KEY' },
    timeoutMs: 10_000,
    maxResponseBytes: 1 << 20,
    clock,
  })
  api.atEnd(() => client.close())
  const sources: Source[] = []
  const context: EngineContext = createContext({
    store,
    clock,
    log,
    options: { since: since ?? null, intervalScale, accessLogEndParameter: 'to', words: true },
    backoffs: growingBackoff({
      clock: { now: clock.now, elapsed: () => clock.elapsed() + moved },
      random: () => 0,
      unavailableMs: 86_400_000 * intervalScale,
      refusedMs: 60_000 * intervalScale,
    }),
    createSchedule: made => byTime(made, { pollMs }),
    isFinished: name =>
      context.rounds.wasComplete(name) ||
      sources.every(source => source.resource !== name || isIdle(context, source)),
  })
  await store.transaction(() => {
    for (const resource of CATALOG.filter(({ name }) => resources.includes(name))) {
      if (store.state.get(resource.name).roundOpen || store.state.get(resource.name).round === 0)
        context.rounds.begin(resource.name, 'timed')
      sources.push(...createSources(context, resource))
    }
  })

  const send = async (job: Job) => {
    const ticket = store.freshness.begin()
    const sent = await client.send(job.request, new AbortController().signal)
    if ((sent.kind === 'answer' || sent.kind === 'refused') && sent.serverTime !== undefined)
      context.server.observe(sent.serverTime, sent.durationMs)
    const reply = {
      ticket,
      sentAt: isoInstant(sent.startedAt),
      serverSentAt: isoInstant(context.server.from(sent.startedAt)),
    }
    return {
      async apply() {
        try {
          await store.transaction(() => {
            if (sent.kind === 'answer') context.parsing.answer(() => job.answer(sent.value, reply))
            else if (sent.kind === 'refused') job.refused(sent.status, sent.message)
            else throw responseError(sent)
          })
          if (sent.kind === 'answer') context.backoffs.answered(job.feed, job.scope)
          const batches = job.afterwards?.()
          while (batches && !(await store.transaction(() => batches.next().done)));
        } catch (error) {
          if (!(error instanceof ParleyError)) throw error
          await store.transaction(() => job.failed(error))
        }
        job.over(false)
        store.freshness.end(ticket)
      },
    }
  }
  const nextOf = (feed?: string): Job | undefined => {
    for (const source of sources) {
      const job = feed === undefined || source.feed === feed ? source.next() : undefined
      if (job) return job
    }
    return undefined
  }

  return {
    context,
    async drain() {
      for (let job = nextOf(); job; job = nextOf()) await (await send(job)).apply()
      for (const source of sources) source.replan?.()
    },
    async askAfter(requests) {
      for (let left = requests; ; left -= 1) {
        const job = nextOf()
        const sent = job && (await send(job))
        if (!sent || left === 0) return sent
        await sent.apply()
      }
    },
    ask(feed) {
      const job = nextOf(feed)
      if (!job) throw new Error(`nothing of ${feed} is due`)
      return send(job)
    },
    nextDueMs() {
      return nextDueMs(context, sources)
    },
    share() {
      for (const source of sources) source.share?.()
    },
    readAgain(resource) {
      for (const { id } of listsOf(resourceNamed(resource)))
        for (const segment of openSegments(context, id)) wantSegment(context, segment, 0)
    },
    settle: resource => store.transaction(() => settle(context, resourceNamed(resource), false)),
    moveClock(ms) {
      moved += ms
      trial.moveClock(ms)
    },
    passTime: trial.passTime,
  }
}
