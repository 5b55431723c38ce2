import { type Client, createClient } from './api/client.ts'
import { createGovernor, type Governor, type GovernorOptions } from './api/governor/governor.ts'
import type { LearnedRate } from './api/governor/pace.ts'
import { RESOURCE_NAMES, type ResourceName } from './catalog/resource-names.ts'
import { type Clock, isoInstant, utcDay } from './clock.ts'
import type { ApiSettings } from './config/load-settings.ts'
import { type Backfill, createBackfill } from './engine/backfill.ts'
import type { EngineOptions } from './engine/engine-options.ts'
import { createSession, type Session, type SessionDeps } from './engine/session.ts'
import type { Log, LogFields } from './log.ts'
import type { TypedTableChange } from './store/crm/table-changes.ts'
import { type Workspace, workspaceOf } from './store/database/workspace.ts'
import type { HeldLock } from './store/file/lock.ts'
import { type ModeChange, octalMode } from './store/file/writable.ts'
import { type OpenStore, openStoreInTurn } from './store/store.ts'
import { META, readNote } from './store/sync/meta.ts'
import { readRequestsToday } from './store/sync/requests-today.ts'

/** The parts of a process that reads the API into the warehouse. */
export interface App {
  clock: Clock
  store: OpenStore
  governor: Governor
  client: Client
  backfill(resources: readonly ResourceName[], since: string | null): Backfill
  session(resources: readonly ResourceName[], work: Pick<SessionDeps, 'observer' | 'access'>): Session
  /** Saves the learned rate and the day's request count, so that a restart starts from them. */
  saveLearned(): Promise<void>
  /** Closes the client and the governor, saves the learned rate and the day's request count, and closes the store. */
  close(): Promise<void>
}

export interface AppOptions {
  settings: ApiSettings
  clock: Clock
  log: Log
  /** `--workspace-renamed`: the workspace in the database has a new id, which the settings give. */
  isWorkspaceRenamed?: boolean
  /** The command and process id that another process sees when it finds the database locked. */
  command: string
  pid: number
  /** The lock of the database, when the caller holds it already and keeps it after `close`. */
  held?: HeldLock
  /** Once aborted, no new work starts. */
  stopNew: AbortSignal
  /** Once aborted, the work in flight is cancelled. */
  cancel: AbortSignal
  /** Called with the milliseconds for which each transaction blocked the event loop. */
  onTransaction?: (ms: number) => void
}

/** @throws StopError 73 when the database cannot be opened, 75 when another process holds it */
export async function openApp({
  settings,
  clock,
  log,
  command,
  pid,
  held,
  stopNew,
  cancel,
  onTransaction,
  isWorkspaceRenamed = false,
}: AppOptions): Promise<App> {
  const { api, database } = settings
  const store = await openStoreInTurn({
    path: database.path,
    mode: database.mode,
    crmTables: settings.crm.tables,
    workspace: { id: api.workspaceId, baseUrl: api.baseUrl, isRenamed: isWorkspaceRenamed },
    command,
    pid,
    clock,
    ...(held && { held }),
    onTransaction,
    onUpgrade: ({ copy }) =>
      log.info(
        copy
          ? 'Migrating the database from an older version; its copy from before the upgrade is at this path'
          : 'Migrating the database from an older version',
        { ...(copy && { path: copy.path, bytes: copy.bytes }) },
      ),
    onLeftOut: ({ type, name, table, reason }) =>
      log.warn(
        'Dropped a view, trigger or index that parley did not create: it does not fit the upgraded tables',
        {
          table,
          reason: `${type} ${name}: ${reason}`,
        },
      ),
    onTypedTable: change => logTypedTable(log, change),
    onMode: change => logModeChange(log, change),
  })
  warnOfOtherAddress(log, workspaceOf(store.db), api)
  const storedToday = () => readRequestsToday(store.state.meta, utcDay(clock.now()))
  const governor = createGovernor({
    clock,
    random: Math.random,
    ceilings: requestCeilings(settings),
    initial: readNote<LearnedRate>(store.state.meta, META.learnedRate),
    usedToday: storedToday(),
    reserve: (day, used) =>
      store.transaction(() => store.state.setMeta(META.requestsToday, JSON.stringify({ day, used }))),
  })
  const client = createApiClient(settings, clock)
  const options = (since: string | null): EngineOptions => ({
    since,
    intervalScale: settings.sync.intervalScale,
    accessLogEndParameter: settings.accessLog.endParameter,
    words: settings.transcripts.words,
  })
  const saveRate = () => {
    const noted = { ...governor.learned(), at: isoInstant(clock.now()) }
    store.state.setMeta(META.learnedRate, JSON.stringify(noted))
  }
  const parts = {
    store,
    client,
    governor,
    clock,
    log,
    random: Math.random,
    stopNew,
    cancel,
    saveLearned: throttle(clock, saveRate),
  }
  const save = (used: () => number) =>
    store.transaction(() => {
      saveRate()
      store.state.setMeta(META.requestsToday, JSON.stringify({ day: utcDay(clock.now()), used: used() }))
      store.state.setMeta(META.clock, isoInstant(clock.now()))
    })
  // A reservation that has just been committed may be larger than the governor's number.
  const saveLearned = () => save(() => Math.max(governor.state().reservedToday, storedToday()))
  return {
    clock,
    store,
    governor,
    client,
    backfill: (resources, since) =>
      createBackfill({
        ...parts,
        resources,
        giveUpMs: api.giveUpSeconds * 1000,
        pollMs: settings.sync.pollSeconds * 1000,
        options: options(since),
      }),
    session: (resources, work) =>
      createSession({
        ...parts,
        ...work,
        resources,
        pollMs: settings.sync.pollSeconds * 1000,
        options: options(settings.sync.since ?? null),
      }),
    saveLearned,
    async close() {
      await client.close()
      governor.close()
      try {
        // While the process runs, the database holds the reserved count, so that a kill cannot lead to more requests
        // than the day allows. A normal end stores the count of used requests.
        await save(() => governor.state().usedToday)
      } catch {
        // Losing the learned rate is harmless. When the database fails, an earlier write has usually failed too and
        // reported the error.
      } finally {
        store.close()
      }
    },
  }
}

/** How long requests in flight may take to finish after a stop. */
const GRACE_MS = 10_000

/**
 * A signal that aborts `GRACE_MS` after the given one.
 * @param onStop called with `GRACE_MS` as soon as the given signal aborts
 */
export function afterGrace(
  clock: Clock,
  signal: AbortSignal,
  onStop: (graceMs: number) => void = () => undefined,
): AbortSignal {
  const cancel = new AbortController()
  const stop = () => {
    onStop(GRACE_MS)
    void clock.sleep(GRACE_MS).then(() => cancel.abort())
  }
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
  return cancel.signal
}

/** The least time between two saves of the learned rate. A killed process loses what it learned since the last save. */
const SAVE_RATE_EVERY_MS = 5000

function throttle(clock: Clock, work: () => void): () => void {
  let doneAt = Number.NEGATIVE_INFINITY
  return () => {
    if (clock.elapsed() - doneAt < SAVE_RATE_EVERY_MS) return
    work()
    doneAt = clock.elapsed()
  }
}

export function requestCeilings({ api }: ApiSettings): GovernorOptions['ceilings'] {
  return {
    requestsPerSecond: api.maxRequestsPerSecond,
    concurrency: api.maxConcurrency,
    requestsPerDay: api.maxRequestsPerDay,
  }
}

/** The API client alone, for commands that send requests without a warehouse. */
export function createApiClient({ api }: ApiSettings, clock: Clock): Client {
  return createClient({
    baseUrl: api.baseUrl,
    apiKey: () => api.key,
    workspaceId: api.workspaceId,
    keySource: api.keySource,
    timeoutMs: api.timeoutSeconds * 1000,
    maxResponseBytes: api.maxResponseBytes,
    clock,
  })
}

function warnOfOtherAddress(log: Log, held: Workspace | undefined, { baseUrl }: ApiSettings['api']): void {
  if (held === undefined || held.base_url === baseUrl) return
  log.warn(
    'The database was last filled from another address; check that api.base_url serves the same workspace',
    {
      address: held.base_url,
      setting: 'api.base_url',
    },
  )
}

function logTypedTable(log: Log, { kind, ...fields }: TypedTableChange): void {
  if (kind === 'replaced') log.info('A typed CRM table was replaced', fields)
  else if (kind === 'dropped') log.info('A typed CRM table was dropped', fields)
  else
    log.warn(
      'A typed CRM table was dropped; it is created again when its metadata changes or at the next start',
      fields,
    )
}

function logModeChange(log: Log, { path, found, wanted, isApplied }: ModeChange): void {
  const reason = `found ${octalMode(found)}, expected ${octalMode(wanted)} (database.mode)`
  const fields = { path, reason, setting: 'database.mode' }
  if (isApplied) log.info('Changed the mode of a database file', fields)
  else
    log.warn(
      'The mode of a database file differs from database.mode, and only the owner of the file can change it',
      fields,
    )
}

export interface ProcessStart {
  version: string
  pid: number
  settings: ApiSettings
  resources: readonly ResourceName[]
}

/** The fields of the first log line of a backfill or daemon. */
export function startFields({
  version,
  pid,
  settings: { api, database },
  resources,
}: ProcessStart): LogFields {
  return {
    version,
    pid,
    path: database.path,
    workspace: api.workspaceId,
    base_url: api.baseUrl,
    resources: resources.length === RESOURCE_NAMES.length ? 'all' : resources.join(', '),
  }
}
