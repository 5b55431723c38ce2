import { type ParleyError, reasonWithHint } from '../../base/errors.ts'
import type { Log, LogFields } from '../../base/log.ts'
import type { FeedName } from '../../catalog/feeds.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Store } from '../../store/store.ts'
import type { RowsWritten, RunCounts, RunOutcome } from '../../store/sync/runs.ts'

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

export type RunRecords = ReturnType<typeof createRunRecords>

/** The counts and failures of each resource's run so far. */
export function createRunRecords({ store, log, now }: RunRecordsDeps) {
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

  /** The first failure of the resource's run, among those whose failed part is still unread. */
  const failure = (resource: ResourceName): ParleyError | undefined => {
    const record = recordOf(resource)
    record.failures = record.failures.filter(({ isUnread }) => isUnread())
    return record.failures[0]?.error
  }

  return {
    counts: (resource: ResourceName): RunCounts => recordOf(resource).counts,
    /** The rows that all runs of each resource have written so far. */
    written: (): ReadonlyMap<ResourceName, RowsWritten> =>
      new Map([...records].map(([resource, record]) => [resource, writtenOf(resource, record)])),
    /** Resets the counts and failures of a resource's run. */
    begin(resource: ResourceName): void {
      if (failure(resource) === undefined) failureLog.recovered(resource)
      writtenBefore.set(resource, writtenOf(resource, recordOf(resource)))
      records.set(resource, newRecord())
    },
    /** Reports that a part of the feed could not be read. `sync_status` shows the last reason. */
    fail(feed: FeedName, error: ParleyError, { lines, isUnread = () => true }: FailOptions = {}): void {
      const { resource } = feed
      const record = recordOf(resource)
      record.hasFailed = true
      record.failures.push({ error, isUnread })
      store.state.failing(resource, reasonWithHint(error), now())
      failureLog.failed(feed, error, lines)
    },
    failure,
    /** True when the resource's run had failures and has since read everything that failed. */
    hasRecovered: (resource: ResourceName): boolean =>
      recordOf(resource).hasFailed && failure(resource) === undefined,
    /** Stores the end of the run with this id, with the counts so far. */
    end(id: number, resource: ResourceName, outcome: RunOutcome, error: string | undefined): void {
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

/** Logs a lasting failure ever more rarely, since a line for each failed request would bury all others. */
export function createFailureLog(log: Pick<Log, 'error' | 'info'>) {
  /** Failures in a row, by feed and code. */
  const streaks = new Map<ResourceName, Map<string, Streak>>()
  return {
    failed(
      { resource, id }: FeedName,
      { code, message, hint }: ParleyError,
      { begins, ends, fields }: FailureLines = READING,
    ): void {
      const ofResource = streaks.get(resource) ?? new Map<string, Streak>()
      streaks.set(resource, ofResource)
      const kind = `${id} ${code}`
      const failures = (ofResource.get(kind)?.failures ?? 0) + 1
      ofResource.set(kind, { failures, ends })
      if (!isPowerOfTen(failures)) return
      log.error(begins, { resource, code, ...(fields ?? { reason: `${id}: ${message}`, hint }), failures })
    },
    /** A run of the resource ended without a failure. */
    recovered(resource: ResourceName): void {
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
