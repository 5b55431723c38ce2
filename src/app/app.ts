import { createGovernor, type GovernorOptions } from '../api/governor/governor.ts'
import type { LearnedRate } from '../api/governor/pace.ts'
import { type Clock, isoInstant, utcDay } from '../base/clock.ts'
import type { ResourceName } from '../declare/resource-names.ts'
import type { EngineOptions } from '../engine/context/engine-options.ts'
import { createBackfill } from '../engine/run/backfill.ts'
import { createSession, type SessionDeps } from '../engine/run/session.ts'
import type { OpenStore } from '../store/store.ts'
import { META, readNote } from '../store/sync/meta.ts'
import { readRequestsToday } from '../store/sync/requests-today.ts'
import { createApiClient, requestCeilings } from './api-client.ts'
import { type LoggedStoreOptions, openLoggedStore } from './logged-store.ts'

/** The parts of a process that reads the API into the warehouse. */
export type App = Awaited<ReturnType<typeof openApp>>

export interface AppOptions extends LoggedStoreOptions {
  /** Once aborted, no new work starts. */
  stopNew: AbortSignal
  /** Once aborted, the work in flight is cancelled. */
  cancel: AbortSignal
}

/** @throws StopError with exit status 73 when the database cannot be opened, 75 when another process holds its lock */
export async function openApp({ stopNew, cancel, ...opening }: AppOptions) {
  const { settings, clock, log } = opening
  const { api, sync } = settings
  const store = await openLoggedStore(opening)
  const { governor, ...limits } = createStoredGovernor(store, clock, requestCeilings(settings))
  const client = createApiClient(settings, clock)
  const options = (since: string | null): EngineOptions => ({
    since,
    intervalScale: sync.intervalScale,
    accessLogEndParameter: settings.accessLog.endParameter,
    words: settings.transcripts.words,
    requestsPerDay: api.maxRequestsPerDay,
  })
  const parts = {
    store,
    client,
    governor,
    clock,
    log,
    random: Math.random,
    stopNew,
    cancel,
    saveLearned: limits.saveAtTimes,
    pollMs: sync.pollSeconds * 1000,
  }
  return {
    clock,
    store,
    governor,
    client,
    backfill: (resources: readonly ResourceName[], since: string | null) =>
      createBackfill({
        ...parts,
        resources,
        giveUpMs: api.giveUpSeconds * 1000,
        options: options(since),
      }),
    session: (resources: readonly ResourceName[], work: Pick<SessionDeps, 'observer' | 'access'>) =>
      createSession({
        ...parts,
        ...work,
        resources,
        options: options(sync.since ?? null),
      }),
    /** Closes the client and the governor, saves the learned rate and the day's request count, and closes the store. */
    async close() {
      await client.close()
      governor.close()
      try {
        await limits.saveAtEnd()
      } catch {
        // Losing the learned rate is harmless. When the database fails, an earlier write has usually failed too and
        // reported the error.
      } finally {
        store.close()
      }
    },
  }
}

/**
 * A governor that starts from the learned rate and the day's request count that an earlier process stored in
 * `sync_meta`.
 */
function createStoredGovernor(
  { state, dueClock, transaction }: Pick<OpenStore, 'state' | 'dueClock' | 'transaction'>,
  clock: Clock,
  ceilings: GovernorOptions['ceilings'],
) {
  const today = () => utcDay(clock.now())
  const usedToday = () => readRequestsToday(state.meta, today())
  const noteUsed = (day: string, used: number) =>
    state.setMeta(META.requestsToday, JSON.stringify({ day, used }))

  // While the process runs, the database holds the reserved count, so that a kill cannot lead to more requests than the
  // day allows.
  const governor = createGovernor({
    clock,
    random: Math.random,
    ceilings,
    initial: readNote<LearnedRate>(state.meta, META.learnedRate),
    usedToday: usedToday(),
    reserve: (day, used) => transaction(() => noteUsed(day, used)),
  })
  const save = (used: number) => {
    const noted = { ...governor.learned(), at: isoInstant(clock.now()) }
    state.setMeta(META.learnedRate, JSON.stringify(noted))
    noteUsed(today(), used)
    dueClock.note()
  }
  return {
    governor,
    /**
     * Saves the learned rate, the requests that are reserved of the day, and the clock, unless they were saved a few
     * seconds ago. Call it inside a transaction. A reservation that has just been committed may be larger than the
     * governor's number.
     */
    saveAtTimes: throttle(clock, () => save(Math.max(governor.state().reservedToday, usedToday()))),
    /** Saves the same with the requests that were really sent. For a process that sends no more requests. */
    saveAtEnd: () => transaction.aside(() => save(governor.state().usedToday)),
  }
}

/** The least time between two saves. A killed process loses what it learned since the last. */
const SAVE_EVERY_MS = 5000

function throttle(clock: Clock, work: () => void): () => void {
  let doneAt = Number.NEGATIVE_INFINITY
  return () => {
    if (clock.elapsed() - doneAt < SAVE_EVERY_MS) return
    work()
    doneAt = clock.elapsed()
  }
}
