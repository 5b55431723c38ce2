import type { App } from '../app.ts'
import { resourceNamed } from '../catalog.ts'
import { type Clock, isoInstant } from '../clock.ts'
import type { Backfill, ResourceProgress } from '../engine/backfill.ts'
import type { Log } from '../log.ts'
import type { ResourceName } from '../resource.ts'
import { createWorkload, type Workload } from '../store/workload.ts'
import { confirmingText, drawBars, type Overall, pauseReason, type ResourceBar, troubleText } from './bars.ts'
import {
  type ResourceOutlook,
  recentRate,
  requestsLeft,
  type Sample,
  timeLeft,
  withSample,
} from './forecast.ts'
import type { LiveArea } from './live-area.ts'

/** Shows how a backfill gets on: as bars on a terminal, else in the log now and then. */
export interface Progress {
  /** Until the signal is aborted. */
  show(until: AbortSignal): Promise<void>
}

export interface ProgressDeps {
  app: Pick<App, 'clock' | 'governor' | 'store'>
  backfill: Backfill
  log: Log
  /** Where there is one, bars are drawn on it. */
  area: LiveArea | undefined
  colour: boolean
  /** Aborted when the backfill is to end early. */
  stopping: AbortSignal
}

/** Between two pictures, and between two lines of the log. */
const PICTURE_MS = 200
const LOG_MS = 30_000
/** Counting is done at most so often, and takes at most this share of the time. */
const COUNT_MS = 1000
const COUNTING_SHARE = 0.02

export function createProgress(deps: ProgressDeps): Progress {
  const { app, area } = deps
  const { clock } = app
  const began = clock.elapsed()
  const survey = createSurvey(deps)
  const log = createProgressLog(deps)
  let samples: readonly Sample[] = []

  const overall = (): Overall => {
    const { progress, outlooks } = survey.latest()
    const requests = sumOf(progress, ({ counts }) => counts.requests)
    const throttled = sumOf(progress, ({ counts }) => counts.throttled)
    const run = deps.backfill.progress()
    samples = withSample(samples, { at: clock.elapsed(), answered: run.answered - run.throttled })
    const rate = recentRate(samples)
    const governor = app.governor.state()
    const pausedMs = Math.max(0, (governor.pausedUntil ?? 0) - clock.now())
    return {
      finished: progress.filter(({ finished }) => finished).length,
      resources: progress.length,
      requests,
      throttled,
      rate,
      governor,
      trouble: run.trouble(),
      confirmingUntil: run.confirmingUntil,
      now: clock.now(),
      elapsedMs: clock.elapsed() - began,
      leftMs: timeLeft(requestsLeft(outlooks), rate, pausedMs),
      stopping: deps.stopping.aborted,
    }
  }

  return {
    async show(until) {
      let loggedAt = began
      while (!until.aborted) {
        const { progress, outlooks } = survey.latest()
        if (area && progress.length > 0) {
          const picture = { ...area.size(), colour: deps.colour }
          area.draw(drawBars(barsOf(progress, outlooks), overall(), picture))
        } else if (!area) {
          log.finished(progress)
          // Sampled all along, or there would be no recent rate to tell.
          const state = overall()
          if (clock.elapsed() - loggedAt >= LOG_MS) {
            log.line(state, { progress, outlooks })
            loggedAt += LOG_MS
          }
        }
        await clock.sleep(area ? PICTURE_MS : COUNT_MS, until)
      }
      area?.clear()
      if (!area) log.finished(deps.backfill.progress().resources)
    },
  }
}

/** A resource is in work once something was asked for it. */
function barsOf(progress: readonly ResourceProgress[], outlooks: readonly ResourceOutlook[]): ResourceBar[] {
  return progress.flatMap(({ resource, counts, finished }, index) => {
    const workload = outlooks[index]?.workload
    if (finished || counts.requests === 0 || !workload) return []
    const { done, total, isGuess } = workload.items ?? workload.lists ?? UNCOUNTED
    return [{ resource, done, total, isGuess, rows: counts.rowsRead }]
  })
}

const UNCOUNTED = { done: 0, total: undefined, isGuess: false }

interface Survey {
  /** The counts of each resource are always the latest, the rest is as of the last counting. */
  latest(): Surveyed
}

/** Of the chosen resources, in the same order. */
interface Surveyed {
  progress: readonly ResourceProgress[]
  outlooks: readonly ResourceOutlook[]
}

/** Asks the database how much there is to do, and more rarely where that takes long. */
function createSurvey({ app, backfill }: ProgressDeps): Survey {
  const { clock, store } = app
  const workload = createWorkload(store.prepare)
  let taken: Surveyed = { progress: [], outlooks: [] }
  let nextAt = Number.NEGATIVE_INFINITY

  const outlookOf = (
    { resource: name, counts, finished }: ResourceProgress,
    ended: ReadonlySet<ResourceName>,
    chosen: ReadonlySet<ResourceName>,
  ): ResourceOutlook => {
    const resource = resourceNamed(name)
    const { round, firstCompleteAt } = store.state.get(name)
    const question = { resource, round, now: nowOf(clock), readBefore: firstCompleteAt !== null }
    const isOver = (parent: ResourceName) => ended.has(parent) || !chosen.has(parent)
    return {
      resource,
      finished,
      parentsFinished: resource.parents.every(isOver),
      get requests() {
        return counts.requests
      },
      workload: finished ? NOTHING_LEFT : workload(question),
    }
  }

  return {
    latest() {
      const began = clock.elapsed()
      if (began < nextAt) return taken
      const { begun, resources: progress } = backfill.progress()
      if (!begun) return taken
      const ended = new Set(progress.filter(({ finished }) => finished).map(({ resource }) => resource))
      const chosen = new Set(progress.map(({ resource }) => resource))
      taken = { progress, outlooks: progress.map(one => outlookOf(one, ended, chosen)) }
      nextAt = clock.elapsed() + Math.max(COUNT_MS, (clock.elapsed() - began) / COUNTING_SHARE)
      return taken
    },
  }
}

const NOTHING_LEFT: Workload = {}

const nowOf = (clock: Clock) => isoInstant(clock.now())

/** The lines of the log in place of bars. */
function createProgressLog({ log }: ProgressDeps) {
  const told = new Set<ResourceName>()
  return {
    /** One line for each resource that has ended since. */
    finished(progress: readonly ResourceProgress[]) {
      for (const { resource, counts, finished, isUnread } of progress) {
        // Why a resource cannot be read was logged when it was found out.
        if (!finished || isUnread || told.has(resource)) continue
        told.add(resource)
        const isUnchanged = counts.rowsChanged + counts.rowsDeleted === 0
        const say = isUnchanged ? log.debug : log.info
        say('A resource was read to its end', {
          resource,
          requests: counts.requests,
          throttled: counts.throttled,
          rows: counts.rowsRead,
          changed: counts.rowsChanged,
          deleted: counts.rowsDeleted,
        })
      }
    },
    line(overall: Overall, { progress, outlooks }: Surveyed) {
      const { governor, rate } = overall
      const left = requestsLeft(outlooks)
      const { now } = overall
      const wait = waitOf(overall)
      log.info('The backfill goes on', {
        done: overall.finished,
        total: overall.resources,
        requests: overall.requests,
        throttled: overall.throttled,
        rows: sumOf(progress, ({ counts }) => counts.rowsRead),
        changed: sumOf(progress, ({ counts }) => counts.rowsChanged),
        ...(rate !== undefined && { rate: Math.round(rate * 100) / 100 }),
        concurrency: governor.concurrency,
        duration_ms: Math.round(overall.elapsedMs),
        ...(left !== undefined && { pending: left }),
        ...(wait && { reason: wait.reason, wait_ms: Math.max(0, wait.until - now) }),
      })
    },
  }
}

/** Why nothing is asked at present, and until when in ms since the epoch. */
function waitOf({ trouble, confirmingUntil, governor, now }: Overall) {
  if (trouble) return { reason: troubleText(trouble, now), until: trouble.nextTryAt }
  if (confirmingUntil !== undefined) {
    return { reason: confirmingText(confirmingUntil, now), until: confirmingUntil }
  }
  const reason = pauseReason(governor, now)
  return reason === undefined ? undefined : { reason, until: governor.pausedUntil ?? 0 }
}

function sumOf(progress: readonly ResourceProgress[], value: (one: ResourceProgress) => number): number {
  return progress.reduce((sum, one) => sum + value(one), 0)
}
