import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { createCachedReading } from '../base/cached-reading.ts'
import type { Clock } from '../base/clock.ts'
import { type Figures, GAUGES, type GaugeDefinition, type ReadFigures } from './gauges.ts'
import { NUDGE_KINDS, type NudgeKind } from './nudge.ts'

/** The daemon's metrics in the format of Prometheus. Only this file uses prom-client. */
export type Metrics = ReturnType<typeof createMetrics>

export interface SentRequest {
  /** The route's template, such as `/v2/messages/{id}`; never with an id in it. */
  route: string
  lane: string
  /** The HTTP status, or why there is none. */
  status: number | 'timeout' | 'transport'
  durationMs: number
}

export interface EndedRun {
  resource: string
  lane: string
  /** As in `sync_runs`, such as `complete`. */
  outcome: string
}

export type NudgeRefusal = (typeof NUDGE_REFUSALS)[number]

/**
 * The sources of the gauges, read at each scrape. When a source throws, `parley_scrape_missing_total` counts it and its
 * gauges have no value. Counting rows takes long, so the results of `resources` and `backlog` are kept for 15 s.
 */
export type MetricSources = {
  readonly [Part in keyof ReadFigures]: () => Awaitable<ReadFigures[Part] | undefined>
}

type Awaitable<T> = T | Promise<T>

export interface MetricsOptions {
  clock: Clock
  version: string
  sources: MetricSources
}

const NUDGE_REFUSALS = ['wrong-secret', 'too-many', 'bad-body'] as const

const COUNTS_CACHE_MS = 15_000

/** Upper bounds in seconds: from a quick response to the default of `api.timeout_seconds`. */
const DURATION_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** Upper bounds in seconds: from a single row to a noticeable pause. A page should take 0.05 s at most. */
const TRANSACTION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export function createMetrics({ clock, version, sources }: MetricsOptions) {
  const registry = new Registry()
  const counters = createCounters(registry)
  let answeredAt: number | undefined
  const gauges = GAUGES.map(definition => createGauge(definition, registry))
  const loopDelay = startLoopDelayMonitor()
  const attempt = async <T>(part: string, read: () => Awaitable<T>): Promise<T | undefined> => {
    try {
      return await read()
    } catch {
      // The error is logged where the database or the API is used. A scrape only counts that the part is missing.
      counters.missing.inc({ part })
      return undefined
    }
  }
  const counted = <T>(part: string, read: () => Awaitable<T>) => {
    const cached = createCachedReading(
      () => attempt(part, read),
      clock,
      () => COUNTS_CACHE_MS,
    )
    return () => cached('')
  }
  const reads = {
    ...sources,
    resources: counted('resources', sources.resources),
    backlog: counted('backlog', sources.backlog),
  }

  return {
    /** Records a request that got its response or failed. */
    recordRequest({ route, lane, status, durationMs }: SentRequest) {
      counters.requests.inc({ route, status })
      counters.laneRequests.inc({ lane })
      counters.durations.observe({ route }, durationMs / 1000)
      if (typeof status === 'number') answeredAt = clock.now()
      if (status === 429) counters.throttled.inc()
    },
    recordRun: ({ resource, lane, outcome }: EndedRun) => counters.passes.inc({ resource, lane, outcome }),
    /** Records how long a transaction, committed or rolled back, blocked the event loop. */
    recordTransaction: (durationMs: number) => counters.transactions.observe(durationMs / 1000),
    recordNudge: (kind: NudgeKind) => counters.nudges.inc({ kind }),
    recordRefusedNudge: (reason: NudgeRefusal) => counters.refusedNudges.inc({ reason }),
    /** All metrics in Prometheus' text format, of type `contentType`. */
    async text() {
      const parts = Object.entries(reads).map(
        async ([part, read]) => [part, await attempt<unknown>(part, read)] as const,
      )
      const read = Object.fromEntries(await Promise.all(parts)) as Pick<Figures, keyof ReadFigures>
      const loopDelayNow = await loopDelay.take()
      const figures = { ...read, version, now: clock.now(), answeredAt, loopDelay: loopDelayNow }
      for (const refresh of gauges) refresh(figures)
      return registry.metrics()
    },
    contentType: registry.contentType,
    close: () => loopDelay.stop(),
  }
}

function createCounters(registry: Registry) {
  const counter = <const Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Counter({ name, help, labelNames, registers: [registry] })
  const counters = {
    requests: counter('parley_requests_total', 'Requests to the API, by outcome.', ['route', 'status']),
    laneRequests: counter('parley_lane_requests_total', 'Requests to the API, by lane.', ['lane']),
    durations: new Histogram({
      name: 'parley_request_duration_seconds',
      help: 'Time from sending a request to the end of its response.',
      labelNames: ['route'],
      buckets: DURATION_BUCKETS,
      registers: [registry],
    }),
    transactions: new Histogram({
      name: 'parley_transaction_duration_seconds',
      help: 'Time for which one database transaction blocked the event loop.',
      buckets: TRANSACTION_BUCKETS,
      registers: [registry],
    }),
    throttled: counter('parley_throttled_total', 'Requests that the API refused as too many (429).', []),
    passes: counter('parley_passes_total', 'Ended runs, by outcome.', ['resource', 'lane', 'outcome']),
    nudges: counter('parley_nudges_total', 'Webhooks that were accepted.', ['kind']),
    refusedNudges: counter('parley_nudges_refused_total', 'Webhooks that were refused.', ['reason']),
    missing: counter('parley_scrape_missing_total', 'Values that a scrape could not read, by part.', [
      'part',
    ]),
  }
  // Start at 0, so that the first event shows as an increase.
  for (const kind of NUDGE_KINDS) counters.nudges.inc({ kind }, 0)
  for (const reason of NUDGE_REFUSALS) counters.refusedNudges.inc({ reason }, 0)
  return counters
}

/** Returns the function that sets the gauge. It also removes labels that no longer occur. */
function createGauge({ name, help, labels = [], values }: GaugeDefinition, registry: Registry) {
  const gauge = new Gauge({ name, help, labelNames: labels, registers: [registry] })
  // Prometheus reserves this label for summaries. A Summary of prom-client would compute the quantiles itself.
  if (labels.includes('quantile')) Object.assign(gauge, { type: 'summary' })
  return (figures: Figures): void => {
    gauge.reset()
    // A reset gauge without labels would report 0 where the value is not known.
    if (labels.length === 0) gauge.remove()
    const found = values(figures) ?? []
    const all = typeof found === 'object' ? found : [[Number(found), {}] as const]
    for (const [value, of] of all) gauge.set(of, value)
  }
}

/** Each run of the timer wakes the process. Runs every 20 ms took three quarters of an idle daemon's processor time. */
const RESOLUTION_MS = 100

/** Measures by how much timers are late. */
function startLoopDelayMonitor() {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  // The histogram records the time between two runs of its timer, which includes the resolution.
  const delay = (ns: number) => (histogram.count === 0 ? 0 : Math.max(0, ns / 1e6 - RESOLUTION_MS) / 1000)
  return {
    /** The delays since the last call, including the current turn of the event loop. */
    async take(): Promise<Figures['loopDelay']> {
      await letTimersRun()
      const taken = {
        p50: delay(histogram.percentile(50)),
        p99: delay(histogram.percentile(99)),
        max: delay(histogram.max),
      }
      histogram.reset()
      return taken
    },
    stop: () => void histogram.disable(),
  }
}

/** The histogram records a delay only when the overdue timer runs. A reset before that would lose the delay. */
async function letTimersRun(): Promise<void> {
  await new Promise(setImmediate)
  await new Promise(setImmediate)
}
