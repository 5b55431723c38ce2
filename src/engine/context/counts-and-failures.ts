import { type ParleyError, reasonWithHint } from '../../base/errors.ts'
import type { Log, LogFields } from '../../base/log.ts'
import type { FeedName } from '../../catalog/feeds.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Store } from '../../store/store.ts'
import type { RowsWritten, RunCounts, RunOutcome } from '../../store/sync/runs.ts'

/** The counts and failures of each resource's run so far. */
export interface RunRecords {
  counts(resource: ResourceName): RunCounts
  /** The rows that all runs of each resource have written so far. */
  written(): ReadonlyMap<ResourceName, RowsWritten>
  /** Resets the counts and failures of a resource's run. */
  begin(resource: ResourceName): void
  /** Reports that a part of the feed could not be read. `sync_status` shows the last reason. */
  fail(feed: FeedName, error: ParleyError, options?: FailOptions): void
  /** The first failure of the resource's run, among those whose failed part is still unread. */
  failure(resource: ResourceName): ParleyError | undefined
  /** True when the resource's run had failures and has since read everything that failed. */
  hasRecovered(resource: ResourceName): boolean
  /** Stores the end of the run with this id, with the counts so far. */
  end(id: number, resource: ResourceName, outcome: RunOutcome, error: string | undefined): void
}

export interface FailOptions {
  lines?: FailureLines
  /** Whether the failed part is still unread. By default it stays unread until the run ends. */
  isUnread?: () => boolean
}

interface RunRecord {
  counts: RunCounts
  /** In the order in which they happened. */
  failures: Failure[]
  hasFailed: boolean
}

interface Failure extends Pick<Required<FailOptions>, 'isUnread'> {
  error: ParleyError
}

export interface RunRecordsDeps {
  store: Pick<Store, 'state' | 'runs'>
  log: Log
  now(): string
}

export function createRunRecords({ store, log, now }: RunRecordsDeps): RunRecords {
  const records = new Map<ResourceName, RunRecord>()
  const failureLog = createFailureLog(log)
  /** The rows that were written before the counts of a run were reset. */
  const writtenBefore = new Map<ResourceName, RowsWritten>()
  const writtenOf = (resource: ResourceName, { counts }: RunRecord): RowsWritten =>
    sumOf(writtenBefore.get(resource) ?? NOTHING_WRITTEN, counts)

  const recordOf = (resource: ResourceName): RunRecord => {
    const known = records.get(resource)
    if (known) return known
    const fresh = newRecord()
    records.set(resource, fresh)
    return fresh
  }

  const failure = (resource: ResourceName): ParleyError | undefined => {
    const record = recordOf(resource)
    record.failures = record.failures.filter(({ isUnread }) => isUnread())
    return record.failures[0]?.error
  }

  return {
    counts: resource => recordOf(resource).counts,
    written: () => new Map([...records].map(([resource, record]) => [resource, writtenOf(resource, record)])),
    begin(resource) {
      if (failure(resource) === undefined) failureLog.recovered(resource)
      writtenBefore.set(resource, writtenOf(resource, recordOf(resource)))
      records.set(resource, newRecord())
    },
    fail(feed, error, { lines, isUnread = () => true } = {}) {
      const { resource } = feed
      const record = recordOf(resource)
      record.hasFailed = true
      record.failures.push({ error, isUnread })
      store.state.failing(resource, reasonWithHint(error), now())
      failureLog.failed(feed, error, lines)
    },
    failure,
    hasRecovered: resource => recordOf(resource).hasFailed && failure(resource) === undefined,
    end(id, resource, outcome, error) {
      const { counts } = recordOf(resource)
      store.runs.end(id, { resource, outcome, counts, error, now: now() })
    },
  }
}

const NOTHING_WRITTEN: RowsWritten = { rowsChanged: 0, rowsNew: 0, rowsDeleted: 0 }

function newRecord(): RunRecord {
  const counts = { requests: 0, throttled: 0, rowsRead: 0, ...NOTHING_WRITTEN }
  return { counts, failures: [], hasFailed: false }
}

function sumOf(one: RowsWritten, other: RowsWritten): RowsWritten {
  return {
    rowsChanged: one.rowsChanged + other.rowsChanged,
    rowsNew: one.rowsNew + other.rowsNew,
    rowsDeleted: one.rowsDeleted + other.rowsDeleted,
  }
}

/** Logs a lasting failure ever more rarely, since a line for each failed request would bury all others. */
export interface FailureLog {
  failed(feed: FeedName, error: ParleyError, lines?: FailureLines): void
  /** A run of the resource ended without a failure. */
  recovered(resource: ResourceName): void
}

/** The log lines of one kind of failure. */
export interface FailureLines {
  begins: string
  /** Absent when the end is logged elsewhere. */
  ends?: string
  /** Logged instead of the error's message and hint. */
  fields?: LogFields
}

/** `noteHealthy` logs the end, since the resource may become readable only in another session. */
const READING: FailureLines = { begins: 'Failed to read resource' }

export function createFailureLog(log: Pick<Log, 'error' | 'info'>): FailureLog {
  /** Failures in a row, by feed and code. */
  const streaks = new Map<ResourceName, Map<string, Streak>>()
  return {
    failed({ resource, id }, { code, message, hint }, { begins, ends, fields } = READING) {
      const ofResource = streaks.get(resource) ?? new Map<string, Streak>()
      streaks.set(resource, ofResource)
      const kind = `${id} ${code}`
      const failures = (ofResource.get(kind)?.failures ?? 0) + 1
      ofResource.set(kind, { failures, ends })
      if (!isPowerOfTen(failures)) return
      log.error(begins, { resource, code, ...(fields ?? { reason: `${id}: ${message}`, hint }), failures })
    },
    recovered(resource) {
      const ended = [...(streaks.get(resource)?.values() ?? [])]
      for (const ends of new Set(ended.map(streak => streak.ends))) {
        if (ends === undefined) continue
        const failures = ended.reduce((sum, streak) => sum + (streak.ends === ends ? streak.failures : 0), 0)
        log.info(ends, { resource, failures })
      }
      streaks.delete(resource)
    },
  }
}

interface Streak {
  failures: number
  ends: string | undefined
}

/** True for the first, tenth, hundredth failure and so on: a long failure is logged again, ever more rarely. */
const isPowerOfTen = (count: number): boolean => Number.isInteger(Math.log10(count))
