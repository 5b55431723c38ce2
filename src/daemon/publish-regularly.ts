import { type Clock, isoInstant, MINUTE_MS } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Recurrence } from '../config/kinds.ts'
import type { Environment } from '../config/loaded-settings.ts'
import { attemptOf, removalFailure } from '../publish/attempt.ts'
import {
  type LastAttempts,
  lateAfter,
  latestLateAfter,
  nextPublication,
} from '../publish/publication-times.ts'
import type { PublishOutcome } from '../publish/publish-once.ts'
import { type PublishProcess, runPublishProcess } from '../publish/publish-process.ts'
import { type PublishTarget, parseTarget, type TargetSettings, targetName } from '../publish/storage/open.ts'
import type { OpenStore } from '../store/store.ts'
import { META, readNote } from '../store/sync/meta.ts'
import { type PublicationAttempt, type PublishingNote, readPublications } from '../store/sync/publications.ts'

export interface PublicationDuty {
  store: Pick<OpenStore, 'db' | 'path' | 'state' | 'publications' | 'transaction'>
  clock: Clock
  log: Log
  settings: TargetSettings
  /** The environment of this process. */
  env: Environment
  version: string
  signal: AbortSignal
  /** The program of the child process that publishes. */
  program?: PublishProcess['program']
}

/** The longest sleep between two checks of the clock, which may be set at any time. */
const LOOK_MS = MINUTE_MS

/**
 * Publishes to `publish.target` on the schedule of `publish.every` until the signal, each time in a child process. A
 * failure is logged, and the publication is tried again after a growing wait. Each session begins with a new try.
 */
export async function publishRegularly(duty: PublicationDuty): Promise<void> {
  const { clock, log, settings, signal, store } = duty
  const { target: text, every } = settings.publish
  if (text === undefined || every === 'never') return clearNote(store)
  const target = parseTarget(text, '/')
  const plan = createPlan(duty, every, targetName(target))
  let isNews = true
  for (;;) {
    await plan.note(null)
    await sleepUntil(clock, plan.dueAt, signal)
    if (signal.aborted) return plan.note(null)
    await plan.note(isoInstant(clock.now()))
    const published = await publish(duty, target)
    if (published === undefined) return plan.note(null)
    plan.end(published.attempt)
    logOutcome(log, published, isNews, isoInstant(plan.dueAt()))
    isNews = 'error' in published.outcome
    await write(store, () => store.publications.add(published.attempt))
  }
}

/** The due time may move to an earlier instant when the clock is set back. */
async function sleepUntil(clock: Clock, dueAt: () => number, signal: AbortSignal): Promise<void> {
  for (let waitMs = dueAt() - clock.now(); waitMs > 0 && !signal.aborted; waitMs = dueAt() - clock.now())
    await clock.sleep(Math.min(waitMs, LOOK_MS), signal)
}

/** The plan also knows attempts of this session that a full disk keeps out of the database. */
function createPlan({ store, clock }: PublicationDuty, every: Recurrence, target: string) {
  const { last: newest, failures } = readPublications(store.db, target)
  const earlier = readNote<PublishingNote>(store.state.meta, META.publishing)
  const now = clock.now()
  const known = earlier?.target === target ? earlier : undefined
  const since = known?.since ?? isoInstant(now)
  let last: LastAttempts = {
    completeFrom: newest && Date.parse(newest.started_at),
    failures: 0,
    failedAt: 0,
  }
  // While the target fails, a restart does not make the publication less late.
  let lateAt = known && failures ? Date.parse(known.late_at) : lateAfter(every, now)
  const dueAt = () => nextPublication(every, last, clock.now())
  return {
    dueAt,
    end({ publication, started_at: from, finished_at: at }: PublicationAttempt) {
      if (publication === null) {
        last = { ...last, failures: last.failures + 1, failedAt: Date.parse(at) }
        return
      }
      last = { completeFrom: Date.parse(from), failures: 0, failedAt: 0 }
      lateAt = lateAfter(every, Date.parse(from))
    },
    /** Stores what `parley status` shows. @param runningSince null while nothing is published */
    note: (runningSince: string | null) =>
      write(store, () => {
        lateAt = Math.min(lateAt, latestLateAfter(every, clock.now()))
        const due = runningSince === null ? isoInstant(dueAt()) : null
        const note: PublishingNote = {
          target,
          since,
          due_at: due,
          late_at: isoInstant(lateAt),
          running_since: runningSince,
        }
        store.state.setMeta(META.publishing, JSON.stringify(note))
      }),
  }
}

interface Published {
  attempt: PublicationAttempt
  outcome: PublishOutcome
}

/** @returns undefined after the signal */
async function publish(
  { store, clock, settings, env, version, signal, program }: PublicationDuty,
  target: PublishTarget,
): Promise<Published | undefined> {
  const startedAt = isoInstant(clock.now())
  const { database, publish, proxies } = settings
  const input = { database: store.path, target, settings: { database, publish, proxies }, version }
  const outcome = await runPublishProcess({ input, env, signal, program }).then(
    (summary): PublishOutcome => ({ summary }),
    (error: unknown): PublishOutcome => ({ error }),
  )
  if (signal.aborted) return undefined
  const times = { started_at: startedAt, finished_at: isoInstant(clock.now()) }
  return { outcome, attempt: attemptOf({ target: targetName(target), ...times }, outcome) }
}

/** A publication every few minutes is no news: only the first one, and one after a failure, is logged as such. */
function logOutcome(log: Log, { attempt, outcome }: Published, isNews: boolean, until: string): void {
  const { target, rows, bytes_written: bytes, started_at: from, finished_at: to } = attempt
  const fields = { target, duration_ms: Date.parse(to) - Date.parse(from) }
  if ('error' in outcome) {
    log.warn('A publication failed; it is tried again', { ...fields, error: outcome.error, until })
    return
  }
  const error = removalFailure(outcome.summary)
  if (error) log.warn('Files of earlier publications could not be removed', { ...fields, error, until })
  else log[isNews ? 'info' : 'debug']('The warehouse was published', { ...fields, rows, bytes })
}

/** Clears the note when publications are off. Otherwise the status would show that the last one is old or failed. */
async function clearNote(store: PublicationDuty['store']): Promise<void> {
  if (readNote(store.state.meta, META.publishing) === undefined) return
  await write(store, () => store.state.setMeta(META.publishing, 'null'))
}

/** The write fails on a full disk. The log has the same facts. */
const write = ({ transaction }: PublicationDuty['store'], work: () => void): Promise<void> =>
  transaction(work).catch(() => undefined)
