import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '../../src/api/client.ts'
import { createGovernor } from '../../src/api/governor/governor.ts'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import type { ResourceResult } from '../../src/engine/run/backfill.ts'
import { type BackfillResult, createBackfill } from '../../src/engine/run/backfill.ts'
import { type OpenStore, openStore } from '../../src/store/store.ts'
import { writeMigratedFile } from '../store/migrated-file.ts'
import type { ScriptedApi } from '../support/scripted-api.ts'

export const API_KEY = 'key-that-nobody-may-see'

/** A warehouse in a new file and a scripted API, connected as in the program. */
export interface Trial {
  store: OpenStore
  path: string
  /** All log lines so far. */
  logged(): string
  /** Moves the wall clock, which decides ages and intervals. Timers do not change. */
  moveClock(ms: number): void
  /** Advances the program's clocks and the server's. */
  passTime(ms: number): void
  clock: Clock
  run(resources: readonly ResourceName[], options?: RunOptions): Promise<BackfillResult>
  /** The requests of the last run that count for the ceiling of a day. */
  counted(): number
  /** The rows of a query as objects. */
  all(sql: string): Record<string, unknown>[]
  /** The first column of a query. */
  column(sql: string): unknown[]
}

export interface RunOptions {
  since?: string
  giveUpMs?: number
  timeoutMs?: number
  maxResponseBytes?: number
  concurrency?: number
  words?: boolean
  endParameter?: string
  /** For the jitter of retries; 0, so that every retry is made at once, unless it is given. */
  random?: () => number
  /** Stops new work and the work in progress. */
  signal?: AbortSignal
}

export async function startTrial(api: ScriptedApi): Promise<Trial> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-engine-'))
  const path = join(folder, 'parley.db')
  const system = systemClock()
  let moved = 0
  let counted = 0
  let passed = 0
  /** Stops the run. Only waits to confirm deletions sleep with this signal, and the clock jumps to their end. */
  let ended: AbortSignal | undefined
  const clock: Clock = {
    ...system,
    now: () => system.now() + moved + passed,
    elapsed: () => system.elapsed() + passed,
    async sleep(ms, stop) {
      if (stop === undefined || stop !== ended) return system.sleep(ms, stop)
      passTime(ms)
    },
  }
  const passTime = (ms: number) => {
    passed += ms
    api.aheadMs += ms
  }
  writeMigratedFile(path)
  const store = openStore({ path, mode: 0o600, command: 'test', pid: process.pid, clock })
  // No test loses power, and waits for the disk would take most of the time.
  store.db.pragma('synchronous = OFF')
  api.atEnd(() => {
    store.close()
    rmSync(folder, { recursive: true })
  })
  let lines = ''
  const log = await createLog({ level: 'trace', stream: { write: (text: string) => (lines += text) } })
  const all = (sql: string) => store.db.prepare(sql).all() as Record<string, unknown>[]
  return {
    store,
    path,
    clock,
    logged: () => lines,
    moveClock: ms => {
      moved += ms
    },
    passTime,
    counted: () => counted,
    all,
    column: sql => store.db.prepare(sql).pluck().all(),
    async run(resources, options = {}) {
      const { giveUpMs = 30_000, timeoutMs = 10_000, maxResponseBytes = 1 << 20, concurrency = 8 } = options
      // A learned rate without limits, so that no time is spent on learning one.
      const initial = { ratePerSecond: 1000, concurrency, limited: false }
      const governor = createGovernor({ clock, random: () => 0, ceilings: { concurrency }, initial })
      const client = createClient({
        baseUrl: api.url,
        apiKey: () => API_KEY,
        workspaceId: 'workspace',
        keySource: { by: 'environment', text: 'environment PARLEY_API_KEY' },
        timeoutMs,
        maxResponseBytes,
        clock,
      })
      ended = options.signal ?? new AbortController().signal
      try {
        return await createBackfill({
          store,
          client,
          governor,
          clock,
          log,
          random: options.random ?? (() => 0),
          options: {
            since: options.since ?? null,
            intervalScale: 1,
            accessLogEndParameter: options.endParameter ?? 'to',
            words: options.words ?? true,
          },
          resources,
          giveUpMs,
          pollMs: 60_000,
          stopNew: ended,
          cancel: ended,
        }).run()
      } finally {
        counted = governor.state().usedToday
        governor.close()
        await client.close()
      }
    },
  }
}

/** The outcome of a resource, with the reason if there is one. */
export function outcomeOf({ resources }: BackfillResult, name: ResourceName): string {
  const result = resources.find(({ resource }: ResourceResult) => resource === name)
  return result?.outcome ?? 'not run'
}

/** The state that `sync_status` shows. */
export function stateOf(trial: Trial, name: ResourceName): unknown {
  return trial.column(`SELECT state FROM sync_status WHERE resource = '${name}'`)[0]
}

const pad = (number: number) => String(number).padStart(12, '0')

/** A UUID that is easy to read. */
export const uuid = (number: number): string => `00000000-0000-4000-8000-${pad(number)}`

export interface MadeMessage {
  id: string
  received_at: string
  [field: string]: unknown
}

/** A message as the list shows it. `minute` counts back from a fixed instant. */
export function message(number: number, more: Readonly<Record<string, unknown>> = {}): MadeMessage {
  return {
    id: uuid(number),
    header_message_id: `<${number}@mail.example.com>`,
    thread_id: null,
    subject: `Subject ${number}`,
    received_at: minutesBack(number),
    is_internal: false,
    is_group_email: false,
    participants: [],
    ...more,
  }
}

export const NEWEST = Date.parse('2026-03-04T12:00:00.000Z')

export function minutesBack(minutes: number): string {
  return new Date(NEWEST - minutes * 60_000).toISOString()
}
