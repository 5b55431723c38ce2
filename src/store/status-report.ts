import { resolve } from 'node:path'
import type { LagSummary } from './arrivals.ts'
import type { Workspace } from './database/workspace.ts'
import { databaseError, type Sqlite } from './open.ts'
import { META, type UnreachableNote } from './state.ts'
import { readOpenWarehouse, readWarehouse, type Status, type StatusRow } from './status.ts'
import { type WriterState, writerOf } from './writer.ts'

/** What `parley status --json` prints and the daemon's `/status` answers, field by field. */
export interface StatusReport {
  database: string
  /** Whose rows it holds; null until the first are stored. */
  workspace: Workspace | null
  database_bytes: number
  wal_bytes: number
  /** Null when no process ever wrote it. */
  writer: WriterState | null
  /** Null when no daemon ever ran on it. */
  daemon: DaemonReport | null
  /** How the last backfill ended; null when none has, or the last was cut off. */
  backfill: BackfillEnd | null
  /** Why the writer cannot ask the API at present; null when it can. */
  api: UnreachableReport | null
  learned_rate: RateReport | null
  /** Null when the daemon never made one, nor failed to, or is to make none any more. */
  snapshot: SnapshotReport | null
  /** What was asked of the writer and is not done yet. */
  requests: readonly { kind: string; resource: string; asked_at: string }[]
  /** Each a row of `sync_status` as it is, and its arrival lag. */
  resources: readonly ResourceReport[]
}

/** What the daemon notes of itself. */
export interface DaemonState {
  state: 'running' | 'waiting' | 'paused' | 'stopped'
  /** In words for people, where there is more to say. */
  reason: string | null
  since: string
  /** When it goes on, where that is known. */
  until: string | null
  /** Of its process, once it has stopped. */
  exit_status?: number
}

/** What a backfill notes of itself at its end. */
export interface BackfillEnd {
  ended_at: string
  exit_status: number
  /** In words for people; null when it read everything. */
  reason: string | null
}

/** Stopped since null: it ended without noting that, so it was killed or the machine went down. */
export type DaemonReport = Omit<DaemonState, 'since'> & { since: string | null }

export type UnreachableReport = Omit<UnreachableNote, 'resources'>

export interface RateReport {
  requests_per_second: number
  concurrency: number
  was_refused: boolean
  /** What it was refused for: asking too fast, too much at a time, or either; null where it was not. */
  limited_by: 'rate' | 'concurrency' | 'both' | null
  /** When it was noted; null when that is not known. */
  learned_at: string | null
}

/** The newest snapshot that the daemon has made, and whether it has failed to make another since. */
export interface SnapshotReport {
  made_at: string | null
  path: string | null
  bytes: number | null
  failed_at: string | null
  /** In words for people; null where the last one was made. */
  reason: string | null
}

export interface ResourceReport extends Omit<StatusRow, 'by_state'> {
  /** Null unless it fails by itself; where the API cannot be asked at all, `api` says since when. */
  failing_since: string | null
  /** Runs that have failed since the last one without a fault; null unless it fails by itself. */
  failed_in_a_row: number | null
  /** Of `message_bodies` e-mails by `text_state`, of `transcripts` meetings by `transcript_state`; null of others. */
  by_state: Readonly<Record<string, number>> | null
  /** Null when no row of it ever appeared in a span of time that had been listed before. */
  arrival_lag: LagReport | null
}

export interface LagReport {
  rows: number
  median_seconds: number
  p99_seconds: number
  longest_seconds: number
}

export interface StatusQuestion {
  path: string
  /** Of this machine's clock, in ms since the epoch. */
  now: number
  /** A connection that is open; else one is opened for reading, and closed. */
  db?: Sqlite
  /** What the daemon that asks knows of itself: on a full disk it cannot note it. */
  daemon?: DaemonState
  /** The rows of `sync_status`, where they are known already. */
  rows?: readonly StatusRow[]
}

/** @throws StopError (73) when there is no warehouse at this path, or it cannot be read */
export function readStatusReport({ path, now, db, daemon, rows }: StatusQuestion): StatusReport {
  const file = resolve(path)
  const status = db === undefined ? readWarehouse(file, rows) : readThrough(db, file, rows)
  const writer = writerOf(status) ?? null
  const { database, resources, failing, arrivals, requests } = status
  return {
    database: database.path,
    workspace: noted<Workspace>(status, META.workspace) ?? null,
    database_bytes: database.bytes,
    wal_bytes: database.walBytes,
    writer,
    daemon: daemon ?? daemonOf(status, writer, now),
    backfill: backfillOf(status, writer),
    api: unreachableOf(noted<UnreachableNote | null>(status, META.unreachable)),
    learned_rate: rateOf(noted<LearnedRate>(status, META.learnedRate)),
    snapshot: noted<SnapshotReport | null>(status, META.snapshots) ?? null,
    requests: requests.map(({ kind, resource, askedAt }) => ({ kind, resource, asked_at: askedAt })),
    resources: resources.map(row => ({
      ...row,
      by_state: row.by_state === null ? null : JSON.parse(row.by_state),
      failing_since: failing.get(row.resource)?.since ?? null,
      failed_in_a_row: failing.get(row.resource)?.inARow ?? null,
      arrival_lag: lagOf(arrivals.get(row.resource)),
    })),
  }
}

function readThrough(db: Sqlite, file: string, rows: readonly StatusRow[] | undefined): Status {
  try {
    return readOpenWarehouse(db, file, rows)
  } catch (error) {
    throw databaseError(error, file)
  }
}

function noted<T>({ meta }: Status, key: string): T | undefined {
  const text = meta.get(key)
  return text === undefined ? undefined : (JSON.parse(text) as T)
}

function unreachableOf(note: UnreachableNote | null | undefined): UnreachableReport | null {
  if (!note) return null
  const { resources: _, ...report } = note
  return report
}

/** What was noted before the last backfill began is an earlier one's end. */
function backfillOf(status: Status, writer: WriterState | null): BackfillEnd | null {
  const end = noted<BackfillEnd>(status, META.backfillEnd)
  if (end === undefined) return null
  const isEarlier = writer?.command === 'backfill' && Date.parse(end.ended_at) < Date.parse(writer.since)
  return isEarlier ? null : end
}

/** It notes the time each minute: one that has not for so long cannot write. */
const SILENT_MS = 3 * 60_000

/** What it noted last, unless it is gone, or holds the file, without a word. */
function daemonOf(status: Status, writer: WriterState | null, now: number): DaemonReport | null {
  const state = noted<DaemonState>(status, META.daemonState)
  if (state === undefined || state.state === 'stopped') return state ?? null
  const isThere = writer?.running === true && writer.command === 'daemon'
  if (!isThere) return { state: 'stopped', reason: 'it was cut off', since: null, until: null }
  const lastNoted = status.meta.get(META.clock)
  const isSilent = lastNoted !== undefined && now - Date.parse(lastNoted) > SILENT_MS
  if (state.state !== 'running' || !isSilent) return state
  const reason = 'it cannot write the database; its log and /status say why'
  return { state: 'waiting', reason, since: lastNoted, until: null }
}

/** As the process that learned it noted it. */
interface LearnedRate {
  ratePerSecond: number
  concurrency: number
  limited: boolean
  crowded?: boolean
  at?: string
}

function limitedBy({ limited, crowded }: LearnedRate): RateReport['limited_by'] {
  if (limited) return crowded ? 'both' : 'rate'
  return crowded ? 'concurrency' : null
}

function rateOf(rate: LearnedRate | undefined): RateReport | null {
  if (rate === undefined) return null
  return {
    requests_per_second: rate.ratePerSecond,
    concurrency: rate.concurrency,
    was_refused: rate.limited || rate.crowded === true,
    limited_by: limitedBy(rate),
    learned_at: rate.at ?? null,
  }
}

function lagOf(lag: LagSummary | undefined): LagReport | null {
  if (lag === undefined) return null
  return {
    rows: lag.rows,
    median_seconds: lag.medianMs / 1000,
    p99_seconds: lag.p99Ms / 1000,
    longest_seconds: lag.longestMs / 1000,
  }
}
