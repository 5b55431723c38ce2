import type { App } from '../../app/app.ts'
import { isoInstant } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import { resourceNamed } from '../../catalog/catalog.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Backfill, ResourceProgress } from '../../engine/run/backfill.ts'
import type { RunCounts } from '../../store/sync/runs.ts'
import { createWorkload, type Workload } from '../../store/sync/workload.ts'
import type { LiveArea } from '../../terminal/live-area.ts'
import { currentWait, drawBars, type Overall, type ResourceBar } from './bars.ts'
import {
  type AnswerSample,
  type ResourceOutlook,
  recentRate,
  requestsLeft,
  timeLeft,
  withSample,
} from './forecast.ts'

export interface ProgressDeps {
  app: Pick<App, 'clock' | 'governor' | 'store'>
  backfill: Backfill
  since: string | null
  log: Log
  /** Where bars are drawn; undefined when standard error is not a terminal. */
  area: LiveArea | undefined
  colour: boolean
  /** Aborted when the backfill is asked to stop. */
  stopping: AbortSignal
}

/** Time between two updates of the bars, and between two log lines, in ms. */
const REDRAW_MS = 200
const LOG_MS = 30_000
/**
 * The shown rate is that of the last 10 s. The time left follows from the rate of the last minute, which changes less.
 */
const SHOWN_RATE_MS = 10_000
/** The remaining work is counted at most once a second, and counting takes at most this share of the time. */
const COUNT_MS = 1000
const COUNT_TIME_SHARE = 0.02

/** Shows the progress of a backfill until the signal: as bars on a terminal, otherwise as log lines. */
export async function showProgress(deps: ProgressDeps, until: AbortSignal): Promise<void> {
  const { app, area } = deps
  const { clock } = app
  const began = clock.elapsed()
  const outlooksNow = createForecastReader(deps)
  const log = createProgressLog(deps)
  let samples: readonly AnswerSample[] = []

  const overall = (outlooks: readonly ResourceOutlook[]): Overall => {
    const run = deps.backfill.progress()
    samples = withSample(samples, { at: clock.elapsed(), answered: run.answered - run.throttled })
    const rate = recentRate(samples, SHOWN_RATE_MS)
    const governor = app.governor.state()
    const pausedMs = Math.max(0, (governor.pausedUntil ?? 0) - clock.now())
    return {
      finished: outlooks.filter(({ finished }) => finished).length,
      resources: outlooks.length,
      requests: run.requests,
      throttled: run.throttled,
      rate,
      governor,
      trouble: run.trouble(),
      confirmingUntil: run.confirmingUntil,
      now: clock.now(),
      elapsedMs: clock.elapsed() - began,
      leftMs: timeLeft(requestsLeft(outlooks), recentRate(samples), pausedMs),
      isStopping: deps.stopping.aborted,
    }
  }

  let loggedAt = began
  while (!until.aborted) {
    const outlooks = outlooksNow()
    if (area && outlooks.length > 0) {
      const picture = { ...area.size(), colour: deps.colour }
      area.draw(drawBars(barsOf(outlooks), overall(outlooks), picture))
    } else if (!area) {
      log.finished(outlooks)
      // `overall` is called at every step, since it also samples the rate.
      const state = overall(outlooks)
      if (clock.elapsed() - loggedAt >= LOG_MS) {
        log.line(state, outlooks)
        loggedAt += LOG_MS
      }
    }
    await clock.sleep(area ? REDRAW_MS : COUNT_MS, until)
  }
  area?.clear()
  if (!area) log.finished(deps.backfill.progress().resources)
}

/** A bar for each unfinished resource for which a request was sent. */
function barsOf(outlooks: readonly ResourceOutlook[]): ResourceBar[] {
  return outlooks.flatMap(({ resource, counts, finished, workload }) => {
    if (finished || counts.requests === 0) return []
    const { done, total, isGuess } = workload.items ?? workload.lists ?? UNCOUNTED
    return [{ resource, done, total, isGuess, rows: counts.rowsRead }]
  })
}

const UNCOUNTED = { done: 0, total: undefined, isGuess: false }

/**
 * Returns a function that counts the remaining work in the database, less often when counting is slow. In its result,
 * request and row counts are current; the remaining work is as of the latest count.
 */
function createForecastReader({ app, backfill, since }: ProgressDeps): () => readonly ResourceOutlook[] {
  const { clock, store } = app
  const workload = createWorkload(store.prepare)
  let last: readonly ResourceOutlook[] = []
  let nextAt = Number.NEGATIVE_INFINITY

  const workloadOf = (name: ResourceName): Workload => {
    const { round, firstCompleteAt } = store.state.get(name)
    const question = { resource: resourceNamed(name), round, now: isoInstant(clock.now()), since }
    return workload({ ...question, readBefore: firstCompleteAt !== null })
  }

  return () => {
    const began = clock.elapsed()
    if (began < nextAt) return last
    const { begun, resources } = backfill.progress()
    if (!begun) return last
    const unfinished = new Set(resources.flatMap(one => (one.finished ? [] : one.resource)))
    last = resources.map(one => ({
      ...one,
      areParentsFinished: resourceNamed(one.resource).parents.every(parent => !unfinished.has(parent)),
      workload: one.finished ? NOTHING_LEFT : workloadOf(one.resource),
    }))
    nextAt = clock.elapsed() + Math.max(COUNT_MS, (clock.elapsed() - began) / COUNT_TIME_SHARE)
    return last
  }
}

const NOTHING_LEFT: Workload = {}

/** Writes log lines in place of bars. */
function createProgressLog({ log }: ProgressDeps) {
  const loggedResources = new Set<ResourceName>()
  return {
    /** Logs each newly finished resource once. */
    finished(progress: readonly ResourceProgress[]) {
      for (const { resource, counts, finished, isUnread } of progress) {
        // For a resource that could not be read, the reason was logged earlier.
        if (!finished || isUnread || loggedResources.has(resource)) continue
        loggedResources.add(resource)
        const isUnchanged = counts.rowsChanged + counts.rowsDeleted === 0
        const say = isUnchanged ? log.debug : log.info
        say('Finished a resource', {
          resource,
          requests: counts.requests,
          throttled: counts.throttled,
          rows: counts.rowsRead,
          changed: counts.rowsChanged,
          deleted: counts.rowsDeleted,
        })
      }
    },
    line(overall: Overall, outlooks: readonly ResourceOutlook[]) {
      const { governor, rate } = overall
      const left = requestsLeft(outlooks)
      const { now } = overall
      const wait = currentWait(overall)
      log.info('Backfill in progress', {
        done: overall.finished,
        total: overall.resources,
        requests: overall.requests,
        throttled: overall.throttled,
        rows: sumOf(outlooks, 'rowsRead'),
        changed: sumOf(outlooks, 'rowsChanged'),
        ...(rate !== undefined && { rate: Math.round(rate * 100) / 100 }),
        concurrency: governor.concurrency,
        duration_ms: Math.round(overall.elapsedMs),
        ...(left !== undefined && { pending: left }),
        ...(wait && { reason: wait.reason, wait_ms: Math.max(0, wait.until - now) }),
      })
    },
  }
}

export const sumOf = (progress: readonly ResourceProgress[], count: keyof RunCounts): number =>
  progress.reduce((sum, { counts }) => sum + counts[count], 0)
