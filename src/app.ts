import { setFlagsFromString } from 'node:v8'
import { type Client, createClient } from './api/client.ts'
import { createGovernor, type Governor } from './api/governor.ts'
import type { LearnedRate } from './api/pace.ts'
import { type Clock, isoInstant, systemClock } from './clock.ts'
import type { ApiSettings } from './config.ts'
import { type Backfill, createBackfill } from './engine/backfill.ts'
import type { EngineOptions } from './engine/context.ts'
import { createShift, type Shift, type ShiftDeps } from './engine/shift.ts'
import type { Log, LogFields } from './log.ts'
import { RESOURCE_NAMES, type ResourceName } from './resource.ts'
import { type Workspace, workspaceOf } from './store/database/workspace.ts'
import type { ModeChange } from './store/database/writable-file.ts'
import type { HeldLock } from './store/lock.ts'
import { requestsNoted } from './store/requests-today.ts'
import { META } from './store/state.ts'
import { openStoreInTurn, type Store } from './store/store.ts'

/** Puts the parts together for a process that reads the API into the warehouse. */
export interface App {
  clock: Clock
  store: Store
  governor: Governor
  client: Client
  backfill(resources: readonly ResourceName[], since: string | null): Backfill
  shift(resources: readonly ResourceName[], work: Pick<ShiftDeps, 'observer' | 'access'>): Shift
  /** Notes what was learned of the API, so that a restart need not learn it again. */
  keepLearned(): Promise<void>
  /** Notes what was learned of the API and closes everything, the last opened first. */
  close(): Promise<void>
}

export interface AppOptions {
  settings: ApiSettings
  log: Log
  /** The owner says that the workspace in the database has another id now. */
  isWorkspaceRenamed?: boolean
  /** What this process says of itself to others that want the database. */
  command: string
  pid: number
  /** The lock of the database, where it is held for longer than this. */
  held?: HeldLock
  /** Ends the taking of new work, then the work under way. */
  soft: AbortSignal
  hard: AbortSignal
  /** Told for how many milliseconds each transaction has held the event loop. */
  onTransaction?: (ms: number) => void
}

/**
 * V8 lets the heap grow to several times of what is alive before it collects. A daemon shares its machine: a fifth
 * costs no time that could be measured and saves 20 MB.
 */
const HEAP_GROWTH = '--heap-growing-percent=20'

/** @throws StopError 73 or 75 when the database cannot be had */
export async function openApp({
  settings,
  log,
  command,
  pid,
  held,
  soft,
  hard,
  onTransaction,
  isWorkspaceRenamed = false,
}: AppOptions): Promise<App> {
  setFlagsFromString(HEAP_GROWTH)
  const clock = systemClock()
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
      log.info('The database is of an older version and is brought up to date', {
        ...(copy && { path: copy.path, bytes: copy.bytes }),
      }),
    onLeftOut: ({ type, name, table, reason }) =>
      log.warn('An object that parley did not make no longer fits its tables, and was left out', {
        table,
        reason: `${type} ${name}: ${reason}`,
      }),
    onMode: change => sayMode(log, change),
  })
  sayOtherAddress(log, workspaceOf(store.db), api)
  const governor = createGovernor({
    clock,
    random: Math.random,
    ceilings: {
      requestsPerSecond: api.maxRequestsPerSecond,
      concurrency: api.maxConcurrency,
      requestsPerDay: api.maxRequestsPerDay,
    },
    initial: readMeta<LearnedRate>(store, META.learnedRate),
    usedToday: requestsNoted(store.state.meta, today(clock)),
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
  const noteRate = () => {
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
    soft,
    hard,
    noteLearned: seldom(clock, noteRate),
  }
  const keep = (used: number) =>
    store.transaction(() => {
      noteRate()
      store.state.setMeta(META.requestsToday, JSON.stringify({ day: today(clock), used }))
      store.state.setMeta(META.clock, isoInstant(clock.now()))
    })
  const keepLearned = () => keep(governor.state().reservedToday)
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
    shift: (resources, work) =>
      createShift({
        ...parts,
        ...work,
        resources,
        pollMs: settings.sync.pollSeconds * 1000,
        options: options(settings.sync.since ?? null),
      }),
    keepLearned,
    async close() {
      await client.close()
      governor.close()
      try {
        // What was reserved and not used is given back.
        await keep(governor.state().usedToday)
      } catch {
        // What was learned is a convenience; why the database cannot be written was said where it was noticed.
      } finally {
        store.close()
      }
    },
  }
}

/** So often what was learned is noted along with an answer, so that a kill costs no more than that of it. */
const NOTED_EVERY_MS = 5000

function seldom(clock: Clock, work: () => void): () => void {
  let doneAt = Number.NEGATIVE_INFINITY
  return () => {
    if (clock.elapsed() - doneAt < NOTED_EVERY_MS) return
    work()
    doneAt = clock.elapsed()
  }
}

/** The client alone, for commands that ask the API without a warehouse. */
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

function sayOtherAddress(log: Log, held: Workspace | undefined, { baseUrl }: ApiSettings['api']): void {
  if (held === undefined || held.base_url === baseUrl) return
  log.warn('The database was last read from another address; make sure that it is the same workspace', {
    address: held.base_url,
    setting: 'api.base_url',
  })
}

function sayMode(log: Log, { path, found, wanted, isApplied }: ModeChange): void {
  const reason = `it was ${octal(found)}, database.mode says ${octal(wanted)}`
  const fields = { path, reason, setting: 'database.mode' }
  if (isApplied) log.info('The mode of a database file has been changed', fields)
  else log.warn('The mode of a database file differs from the setting; only its owner can change it', fields)
}

const octal = (mode: number): string => mode.toString(8).padStart(4, '0')

function readMeta<T>(store: Store, key: string): T | undefined {
  const text = store.state.meta(key)
  return text === undefined ? undefined : (JSON.parse(text) as T)
}

function today(clock: Clock): string {
  return isoInstant(clock.now()).slice(0, 10)
}

export interface WhatRuns {
  version: string
  pid: number
  settings: ApiSettings
  resources: readonly ResourceName[]
}

/** What runs where: the fields of the line with which a log begins. */
export function whatRuns({ version, pid, settings: { api, database }, resources }: WhatRuns): LogFields {
  return {
    version,
    pid,
    path: database.path,
    workspace: api.workspaceId,
    base_url: api.baseUrl,
    resources: resources.length === RESOURCE_NAMES.length ? 'all' : resources.join(', '),
  }
}
