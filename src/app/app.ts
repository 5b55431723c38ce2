import type { ResourceName } from '../declare/resource-names.ts'
import type { EngineOptions } from '../engine/context/engine-options.ts'
import { createBackfill } from '../engine/run/backfill.ts'
import { createSession, type SessionDeps } from '../engine/run/session.ts'
import { createApiClient, requestCeilings } from './api-client.ts'
import { type LoggedStoreOptions, openLoggedStore } from './logged-store.ts'
import { createStoredGovernor } from './stored-governor.ts'

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
