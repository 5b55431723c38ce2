import { tableNamed } from '../catalog.ts'
import { type Clock, isoInstant } from '../clock.ts'
import type { ParleyError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Cause, ResourceName } from '../resource.ts'
import type { Cell, ParsedItem } from '../row.ts'
import type { RunCounts } from '../store/runs.ts'
import type { Store, StoredItem, WriteOptions } from '../store/store.ts'
import { compileParser, type ItemParser, type ParseReport } from './parse.ts'

/** What the sync modes share during one run. */
export interface EngineContext {
  store: Store
  clock: Clock
  log: Log
  options: EngineOptions
  /** The number of the round that a resource is in; it does not change while the context lives. */
  round(resource: ResourceName): number
  /** The lane of a resource's lists: history until it was complete once. */
  listLane(resource: ResourceName): 'history' | 'audit'
  /** True when no feed of the resource has anything left to do in this run. */
  isFinished(resource: ResourceName): boolean
  counts(resource: ResourceName): RunCounts
  parser(table: string): ItemParser
  /** Where a parser tells of drift and rejects; `scope` is the list or record that was read. */
  report(feed: FeedName, scope: string): ParseReport
  /** Stores rows and writes the tasks that they cause; counts them. */
  write(
    feed: FeedName,
    table: string,
    items: readonly ParsedItem[],
    options: WriteOptions,
    causes?: readonly Cause[],
  ): StoredItem[]
  /** The feed cannot go on in this run. The first reason of a resource is the one that is shown. */
  fail(feed: FeedName, error: ParleyError): void
  failure(resource: ResourceName): ParleyError | undefined
  /** This workspace does not offer the resource, or a part of it. */
  unavailable(resource: ResourceName, reason: string): void
  unavailability(resource: ResourceName): string | undefined
  now(): string
  /** The server's clock in ms, as far as its answers have told it; else this machine's. */
  serverNow(): number
  /** False until an answer has told it. */
  knowsServerTime(): boolean
  /** What an instant of this machine's clock is by the server's. */
  toServerTime(ms: number): number
  /** Takes the server's clock from an answer's `Date`, which is cut to the second. */
  observeServerTime(serverMs: number, receivedMs: number): void
  /** An instant that lies so far ahead, with intervals scaled by the owner. */
  after(ms: number): string
}

export interface FeedName {
  resource: ResourceName
  /** `resource.feed` */
  feed: string
}

export interface EngineOptions {
  /** Only what happened since then is asked for. */
  since: string | null
  intervalScale: number
  accessLogEndParameter: string
  words: boolean
}

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR
/** No interval is longer: the bound within which the warehouse is true. */
export const WEEK = 7 * DAY

export interface ContextDeps {
  store: Store
  clock: Clock
  log: Log
  options: EngineOptions
  isFinished(resource: ResourceName): boolean
}

export function createContext({ store, clock, log, options, isFinished }: ContextDeps): EngineContext {
  const parsers = new Map<string, ItemParser>()
  const drifted = new Set<string>()
  const counts = new Map<ResourceName, RunCounts>()
  const rounds = new Map<ResourceName, number>()
  const failures = new Map<ResourceName, ParleyError>()
  const unavailable = new Map<ResourceName, string>()
  /** A `Date` is never ahead of the server's clock, so the largest difference seen is the nearest. */
  let serverAhead: number | undefined
  const now = () => isoInstant(clock.now())

  const context: EngineContext = {
    store,
    clock,
    log,
    options,
    isFinished,
    now,
    serverNow: () => clock.now() + (serverAhead ?? 0),
    knowsServerTime: () => serverAhead !== undefined,
    toServerTime: ms => ms + (serverAhead ?? 0),
    observeServerTime(serverMs, receivedMs) {
      serverAhead = Math.max(serverAhead ?? Number.NEGATIVE_INFINITY, serverMs - receivedMs)
    },
    round(resource) {
      const known = rounds.get(resource)
      if (known !== undefined) return known
      const { round } = store.state.get(resource)
      rounds.set(resource, round)
      return round
    },
    listLane: resource => (store.state.get(resource).firstCompleteAt === null ? 'history' : 'audit'),
    counts(resource) {
      const known = counts.get(resource)
      if (known) return known
      const fresh = { requests: 0, throttled: 0, rowsRead: 0, rowsChanged: 0, rowsDeleted: 0 }
      counts.set(resource, fresh)
      return fresh
    },
    parser(table) {
      const parser = parsers.get(table) ?? compileParser(tableNamed(table))
      parsers.set(table, parser)
      return parser
    },
    report: ({ resource, feed }, scope) => ({
      drift(table, field, reason) {
        const name = `${table}.${field} ${reason}`
        if (drifted.has(name)) return
        drifted.add(name)
        log.warn('The API sent a field that has no column; it is kept in _extra', {
          resource,
          table,
          field,
          reason,
        })
      },
      reject(_table, item, reason) {
        store.rejects.note({ resource, feed, scope, item, reason }, now())
      },
    }),
    write({ resource }, table, items, writeOptions, causes = []) {
      const stored = store.write(table, items, writeOptions)
      const tally = context.counts(resource)
      tally.rowsRead += items.length
      for (const entry of stored) {
        if (entry.written.status === 'unchanged') continue
        tally.rowsChanged += 1
        for (const cause of causes) followCause(store, cause, table, entry, now())
      }
      return stored
    },
    fail({ resource, feed }, error) {
      if (!failures.has(resource)) failures.set(resource, error)
      store.state.failing(resource, error.message, now())
      log.error('A resource cannot go on in this run', {
        resource,
        code: error.code,
        reason: `${feed}: ${error.message}`,
      })
    },
    failure: resource => failures.get(resource),
    unavailable(resource, reason) {
      if (!unavailable.has(resource)) {
        log.info('This workspace does not offer a resource', { resource, reason })
      }
      unavailable.set(resource, reason)
    },
    unavailability: resource => unavailable.get(resource),
    after: ms => isoInstant(clock.now() + Math.max(1000, ms * options.intervalScale)),
  }
  return context
}

function followCause(
  store: Store,
  cause: Cause,
  table: string,
  { item, written }: StoredItem,
  now: string,
): void {
  if (written.status === 'unchanged' || !cause.on.includes(written.status)) return
  const columns = Object.entries(tableNamed(table).columns)
  const cell = (name: string): Cell => {
    const index = columns.findIndex(([column]) => column === name)
    const ours = columns[index]?.[1].source.from === 'parley'
    return item.cells[index] ?? (ours ? written.before?.[index] : null) ?? null
  }
  const met = Object.entries(cause.when ?? {}).every(([name, values]) => values.includes(String(cell(name))))
  const key = cell(cause.key)
  if (!met || typeof key !== 'string' || key === '') return
  const sortAt = cause.sort === undefined ? null : (cell(cause.sort) as string | null)
  store.tasks[cause.how]({ feed: cause.feed, key, sortAt, dueAt: now })
}
