import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Clock } from '../clock.ts'
import {
  type DatabaseFigures,
  type Figures,
  GAUGES,
  type GaugeDefinition,
  type RateFigures,
  type ResourceFigures,
  type SnapshotFigures,
  type WorkspaceFigures,
} from './gauges.ts'
import { startLoopDelayMonitor } from './loop-delay.ts'
import { NUDGE_KINDS, type NudgeKind } from './nudge.ts'

/** What the daemon tells of itself to Prometheus: the only user of prom-client. */
export interface Metrics {
  /** A request got its answer, or none. */
  sent(request: SentRequest): void
  /** A pass ended. */
  passed(pass: EndedPass): void
  /** A transaction held the event loop for so long, be it committed or not. */
  transacted(durationMs: number): void
  nudged(kind: NudgeKind): void
  /** A nudge was not taken. */
  refused(reason: NudgeRefusal): void
  /** All of it in the text format, which is of this content type. */
  text(): Promise<string>
  readonly contentType: string
  close(): void
}

export interface SentRequest {
  /** The route's template, such as `/v2/messages/{id}`; never with an id in it. */
  route: string
  lane: string
  /** The HTTP status, or why there is none. */
  status: number | 'timeout' | 'transport'
  durationMs: number
}

export interface EndedPass {
  resource: string
  lane: string
  /** One of few words, such as `done`. */
  outcome: string
}

export type NudgeRefusal = (typeof NUDGE_REFUSALS)[number]

/**
 * Where the values of the moment come from, asked at each scrape. They may throw while there is nothing to be had:
 * the values are then left out of that scrape.
 */
export interface MetricSources {
  version: string
  workspace(): WorkspaceFigures | undefined
  /** The server's clock in ms since the epoch, as far as it is known: what freshness is measured by. */
  serverNow(): number
  /** Undefined while no request can be made. */
  rate(): RateFigures | undefined
  database(): DatabaseFigures | undefined
  snapshot(): SnapshotFigures | undefined
  /** These two count rows, and so are asked every 15 s at most. */
  resources(): Awaitable<readonly ResourceFigures[] | undefined>
  backlog(): Readonly<Record<string, number>> | undefined
}

type Awaitable<T> = T | Promise<T>

export interface MetricsOptions {
  clock: Clock
  sources: MetricSources
}

const NUDGE_REFUSALS = ['wrong-secret', 'too-many', 'bad-body'] as const

const COUNTED_MS = 15_000

/** From a quick answer on a good line to the longest that a request may take by default. */
const DURATION_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** From a row to what would be felt; a page is meant to take 0.05 at most. */
const TRANSACTION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export function createMetrics({ clock, sources }: MetricsOptions): Metrics {
  const registry = new Registry()
  const counters = createCounters(registry)
  const gauges = GAUGES.map(definition => createGauge(definition, registry))
  const loopDelay = startLoopDelayMonitor()
  const attempt =
    <T>(part: string, read: () => Awaitable<T | undefined>) =>
    async (): Promise<T | undefined> => {
      try {
        return await read()
      } catch {
        // Why is said where the database or the API is used; a scrape only tells that the part is missing.
        counters.missing.inc({ part })
        return undefined
      }
    }
  const serverNow = attempt('serverNow', sources.serverNow)
  const rate = attempt('rate', sources.rate)
  const database = attempt('database', sources.database)
  const snapshot = attempt('snapshot', sources.snapshot)
  const resources = keep(attempt('resources', sources.resources), COUNTED_MS, clock)
  const backlog = keep(attempt('backlog', sources.backlog), COUNTED_MS, clock)

  return {
    sent({ route, lane, status, durationMs }) {
      counters.requests.inc({ route, status })
      counters.laneRequests.inc({ lane })
      counters.durations.observe({ route }, durationMs / 1000)
      if (status === 429) counters.throttled.inc()
    },
    passed: ({ resource, lane, outcome }) => counters.passes.inc({ resource, lane, outcome }),
    transacted: durationMs => counters.transactions.observe(durationMs / 1000),
    nudged: kind => counters.nudges.inc({ kind }),
    refused: reason => counters.refusedNudges.inc({ reason }),
    async text() {
      const now = clock.now()
      const figures: Figures = {
        version: sources.version,
        workspace: sources.workspace(),
        now,
        serverNow: (await serverNow()) ?? now,
        rate: await rate(),
        database: await database(),
        snapshot: await snapshot(),
        resources: await resources(),
        backlog: await backlog(),
        loopDelay: await loopDelay.take(),
        residentBytes: process.memoryUsage.rss(),
      }
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
    requests: counter('parley_requests_total', 'Requests to the API, by what came of them.', [
      'route',
      'status',
    ]),
    laneRequests: counter('parley_lane_requests_total', 'Requests to the API, by lane.', ['lane']),
    durations: new Histogram({
      name: 'parley_request_duration_seconds',
      help: 'Time from sending a request to the end of its answer.',
      labelNames: ['route'],
      buckets: DURATION_BUCKETS,
      registers: [registry],
    }),
    transactions: new Histogram({
      name: 'parley_transaction_duration_seconds',
      help: 'Time for which one transaction of the database held up everything else.',
      buckets: TRANSACTION_BUCKETS,
      registers: [registry],
    }),
    throttled: counter('parley_throttled_total', 'Requests that the API refused as too many (429).', []),
    passes: counter('parley_passes_total', 'Passes, by how they ended.', ['resource', 'lane', 'outcome']),
    nudges: counter('parley_nudges_total', 'Webhooks that were taken.', ['kind']),
    refusedNudges: counter('parley_nudges_refused_total', 'Webhooks that were not taken.', ['reason']),
    missing: counter('parley_scrape_missing_total', 'Times that a part of these values could not be had.', [
      'part',
    ]),
  }
  // What never happened is 0 and not unknown, so that the first time is a change.
  for (const kind of NUDGE_KINDS) counters.nudges.inc({ kind }, 0)
  for (const reason of NUDGE_REFUSALS) counters.refusedNudges.inc({ reason }, 0)
  return counters
}

/** Gives what sets the gauge anew; labels that no longer occur are gone. */
function createGauge({ name, help, labels, values }: GaugeDefinition, registry: Registry) {
  const gauge = new Gauge({ name, help, labelNames: labels, registers: [registry] })
  return (figures: Figures): void => {
    gauge.reset()
    // Without labels, a reset gauge would say 0 where nothing is known.
    if (labels.length === 0) gauge.remove()
    for (const [value, of = {}] of values(figures)) gauge.set(of, value)
  }
}

/** Reads again only what was read longer ago than that, be it a value or nothing. */
function keep<T>(read: () => T, ms: number, clock: Clock): () => T {
  let kept: { value: T; at: number } | undefined
  return () => {
    const now = clock.elapsed()
    if (kept === undefined || now - kept.at >= ms) kept = { value: read(), at: now }
    return kept.value
  }
}
