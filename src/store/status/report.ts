import { dirname } from 'node:path'
import { MINUTE_MS } from '../../base/clock.ts'
import { reasonWithHint } from '../../base/errors.ts'
import { RESOURCE_NAMES, type ResourceName } from '../../declare/resource-names.ts'
import type { ResourceStateName } from '../../dictionary/sync-tables.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { freeOnDisk } from '../disk/disk-space.ts'
import {
  holdersHint,
  idleWriter,
  LARGE_WAL_BYTES,
  type LockHolder,
  walReaders,
} from '../disk/lock-holders.ts'
import type { Workspace } from '../file/workspace.ts'
import type { LagReport } from '../sync/arrivals.ts'
import { API_GATE, type ApiGateKind, apiGates, type Gate, ROUTE_GATE } from '../sync/gates.ts'
import { META, readNote } from '../sync/meta.ts'
import type { PublicationAttempt, PublicationHistory, PublishingNote } from '../sync/publications.ts'
import {
  type CountedColumn,
  type ReadSince,
  type ResourceTroubles,
  readStatus,
  readUncounted,
  readWarehouse,
  type Status,
  type StatusRow,
  type UncountedRow,
  type WriterState,
  writerOf,
} from './status.ts'

/** Whether a resource was never read completely because `sync.resources`, `--only` or `--skip` leave it out. */
export const isLeftOut = (
  { resource, state }: Pick<UncountedRow, 'resource' | 'state'>,
  { chosen_resources: chosen }: Pick<StatusReport, 'chosen_resources'>,
): boolean => state === 'backfilling' && !chosen.includes(resource)

/** What `parley status --json` prints and the daemon's `/status` answers, field by field. */
export interface StatusReport<Row = ResourceReport> {
  database: string
  /** Null until the first rows are stored. */
  workspace: Workspace | null
  database_bytes: number
  wal_bytes: number
  /** Programs whose transactions keep a `-wal` that is large, or has purged content, from shrinking. Else empty. */
  wal_readers: readonly WalReader[]
  /** Null when no process ever wrote the warehouse. */
  writer: WriterState | null
  /** The resources that the writer reads: all of them unless `sync.resources`, `--only` or `--skip` leave some out. */
  chosen_resources: readonly ResourceName[]
  /** Null when no daemon ever ran. */
  daemon: DaemonReport | null
  /** How the last backfill ended; null when no backfill has ended, or the last backfill is running or was killed. */
  backfill: BackfillEnd | null
  /** Why the writer cannot reach the API; null when it can. */
  api: UnreachableReport | null
  /** The closed routes. The API limits these routes separately. */
  closed_routes: readonly ClosedRouteReport[]
  learned_rate: RateReport | null
  /** Null when the daemon never tried to make a snapshot, or snapshots are switched off. */
  snapshot: SnapshotReport | null
  /** Null when the daemon does not publish. */
  publication: PublicationReport | null
  /** Files that hold or may hold purged content, and snapshot folders that cannot be read. */
  purge_remains: readonly (PurgeRemains & { place: PlaceOfRemains })[]
  /** Pending requests of other processes to the writer, such as `parley resync`. */
  requests: readonly { kind: string; resource: string; asked_at: string }[]
  /** The rows of `sync_status`, each with further figures. */
  resources: readonly Row[]
}

/** The state that the daemon stores in `sync_meta`. */
export interface DaemonState {
  state: 'running' | 'waiting' | 'stopped'
  /** A sentence for people, or null. */
  reason: string | null
  /** What a person can do, as a sentence. */
  hint?: string
  since: string
  /** Why the daemon waits: `rebuilding`, `not-writing`, `not-opened`, `halted`, or the code of the error, such as `unauthorized`. */
  code?: string
  /** When the daemon continues, if known. */
  until: string | null
  /** Exit status of the process, once stopped. */
  exit_status?: number
  /** Why a running daemon keeps earlier settings than those in its file. Absent after a reload without an error. */
  invalid_settings?: { since: string; reason: string }
}

/** Why the daemon is in its state, with what a person can do, for places with room for one text. */
export function reasonOfState({ reason, hint }: Pick<DaemonState, 'reason' | 'hint'>): string | null {
  return reason === null ? null : reasonWithHint({ message: reason, hint })
}

/** The reason of a backfill that ended because of resources: each that fails still is a problem itself. */
export const SOME_RESOURCES_FAILED = 'Some resources failed'

/** What a backfill stores in `sync_meta` at its end. */
export interface BackfillEnd {
  ended_at: string
  exit_status: number
  /** A sentence for people; null when the backfill read everything. */
  reason: string | null
}

/** `since` is null when the daemon ended without storing its state: it was killed, or the machine went down. */
export type DaemonReport = Omit<DaemonState, 'since'> & { since: string | null }

/** Why the whole API cannot be read. */
export interface UnreachableReport extends Pick<Gate<ApiGateKind>, 'kind' | 'reason' | 'since'> {
  next_try_at: string
}

export interface ClosedRouteReport extends UnreachableReport {
  route: string
  /** The resources that are not read, or not completely, meanwhile. */
  resources: readonly ResourceName[]
}

export interface RateReport {
  requests_per_second: number
  concurrency: number
  was_refused: boolean
  /** What the API refused: too many requests per second, too many at once, or both; null when it refused nothing. */
  limited_by: 'rate' | 'concurrency' | 'both' | null
  /** When the rate was stored; null when unknown. */
  learned_at: string | null
}

/** The daemon's newest snapshot, and whether a later one failed. */
export interface SnapshotReport {
  made_at: string | null
  path: string | null
  bytes: number | null
  failed_at: string | null
  /** A sentence for people; null when the last snapshot succeeded. */
  reason: string | null
}

/** The daemon's publications at its target. */
export interface PublicationReport extends PublishingNote {
  is_late: boolean
  /** Age of what readers of the target see; null before the first publication. */
  lag_seconds: number | null
  /**
   * The newest complete publication, by the daemon or by `parley publish`. `error`: why files of earlier ones could not
   * be removed.
   */
  last: Omit<PublicationAttempt, 'target' | 'error_code'> | null
  /** The failed attempts since `last`; null when the last attempt succeeded. */
  failing: { since: string; times: number; at: string; code: string; reason: string } | null
}

const PLACES = ['wal', 'free space', 'copies'] as const
/** `wal` and `free space` are of the database itself, `copies` of other files. */
export type PlaceOfRemains = (typeof PLACES)[number]

/** The note of the places where a purge may have left content. */
export type NotedRemains = Partial<Record<PlaceOfRemains, readonly PurgeRemains[]>>

export interface PurgeRemains {
  path: string
  /** Why the content could not be removed. */
  reason: string
}

export interface WalReader {
  pid: number
  /** Such as `sqlite3`; null when this user may not see it. */
  program: string | null
  /** Ends the sentence `The process is …`. */
  state: string
}

export interface ResourceReport extends Omit<StatusRow, 'by_state'>, ResourceHistory {
  /** `message_bodies`: e-mails by `text_state`. `transcripts`: meetings by `transcript_state`. Else null. */
  by_state: Readonly<Record<string, number>> | null
}

/** A resource of a report, with or without counted rows. */
export type ResourceFacts = Omit<ResourceReport, CountedColumn> & Partial<Pick<ResourceReport, CountedColumn>>

interface ResourceHistory extends ResourceTroubles {
  /** Null when no row ever appeared in a span of time that had already been listed. */
  arrival_lag: LagReport | null
  /** Null unless `sync.since` leaves out the beginning of a list of activities or messages. */
  read_since: ReadSince | null
}

export interface StatusQuestion {
  path: string
  /** Ms since the epoch, by this machine's clock. */
  now: number
  /** An open connection. Default: a read-only connection that is closed afterwards. */
  db?: Sqlite | undefined
  /** State of the calling daemon. It replaces the stored state, which is outdated when a full disk prevents writes. */
  daemon?: DaemonState | undefined
  /** The rows of `sync_status`, when the caller has them already. */
  rows?: readonly StatusRow[] | undefined
}

/** @throws StopError (73) when there is no warehouse at this path, or it cannot be read */
export function readStatusReport({ path, now, db, daemon, rows }: StatusQuestion): StatusReport {
  const read = rows === undefined ? readStatus : () => rows
  const report = reportOf(readWarehouse(path, read, db), { now, daemon })
  const withStates = ({ by_state: counts, ...row }: (typeof report.resources)[number]): ResourceReport => ({
    ...row,
    by_state: counts === null ? null : JSON.parse(counts),
  })
  return { ...report, resources: report.resources.map(withStates) }
}

/**
 * A report that counts no rows, so that its time does not depend on the size of the warehouse.
 * @throws StopError (73) when there is no warehouse at this path, or it cannot be read
 */
export function readUncountedReport({
  path,
  now,
}: Pick<StatusQuestion, 'path' | 'now'>): StatusReport<ResourceFacts> {
  return reportOf(readWarehouse(path, readUncounted), { now })
}

function reportOf<Row extends UncountedRow>(
  status: Status<Row>,
  { now, daemon }: Pick<StatusQuestion, 'now' | 'daemon'>,
): StatusReport<Row & ResourceHistory> {
  const writer = writerOf(status) ?? null
  const { database, resources, troubles, readSince, arrivals, requests } = status
  const state = daemon ?? daemonOf(status, writer, now)
  const remains = storedNote<NotedRemains>(status, META.purgeRemains) ?? {}
  const isWalHeld = database.walBytes >= LARGE_WAL_BYTES || remains.wal !== undefined
  return {
    database: database.path,
    workspace: storedNote<Workspace>(status, META.workspace) ?? null,
    database_bytes: database.bytes,
    wal_bytes: database.walBytes,
    wal_readers: isWalHeld ? walReaders(database.path).map(readerOf) : [],
    writer,
    chosen_resources: storedNote<ResourceName[]>(status, META.chosenResources) ?? RESOURCE_NAMES,
    daemon: state,
    backfill: backfillOf(status, writer),
    api: unreachableOf(status.gates),
    closed_routes: closedRoutesOf(status.gates),
    learned_rate: rateOf(storedNote<StoredRate>(status, META.learnedRate)),
    snapshot: storedNote<SnapshotReport>(status, META.snapshots) ?? null,
    publication: publicationOf(status, writer, now),
    purge_remains: PLACES.flatMap(place =>
      (remains[place] ?? []).map(({ path, reason }) => ({ place, path, reason })),
    ),
    requests: requests.map(({ kind, resource, askedAt }) => ({ kind, resource, asked_at: askedAt })),
    resources: resources.map(row => ({
      ...row,
      state: state?.state === 'waiting' && STOPS.includes(row.state) ? 'on hold' : row.state,
      ...(troubles.get(row.resource) ?? NO_TROUBLES),
      arrival_lag: arrivals.get(row.resource) ?? null,
      read_since: readSince.get(row.resource) ?? null,
    })),
  }
}

const NO_TROUBLES: ResourceTroubles = {
  deletions_held_since: null,
  rejected_since: null,
  failing_since: null,
  failed_in_a_row: null,
}

/** Stored states that are wrong while the daemon waits: it reads nothing, and may be unable to store that. */
const STOPS: readonly ResourceStateName[] = ['ok', 'backfilling', 'waiting']

const readerOf = ({ pid, program, state }: LockHolder): WalReader => ({
  pid,
  program: program ?? null,
  state,
})

function storedNote<T>({ meta }: Pick<Status, 'meta'>, key: string): T | undefined {
  return readNote<T>(name => meta.get(name), key)
}

function unreachableOf(gates: readonly Gate[]): UnreachableReport | null {
  const gate = apiGates(gates).find(({ what }) => what === API_GATE)
  return gate === undefined ? null : gateReport(gate)
}

function closedRoutesOf(gates: readonly Gate[]): ClosedRouteReport[] {
  return apiGates(gates)
    .filter(({ what }) => what.startsWith(ROUTE_GATE))
    .map(gate => ({
      route: gate.what.slice(ROUTE_GATE.length),
      ...gateReport(gate),
      resources: gate.resources,
    }))
}

const gateReport = ({ kind, reason, since, until }: Gate<ApiGateKind>): UnreachableReport => ({
  kind,
  reason,
  since,
  next_try_at: until,
})

/** Null when the last writer is a backfill that began after the stored end: the end is that of an earlier backfill. */
function backfillOf(status: Pick<Status, 'meta'>, writer: WriterState | null): BackfillEnd | null {
  const end = storedNote<BackfillEnd>(status, META.backfillEnd)
  if (end === undefined) return null
  const isEarlier = writer?.command === 'backfill' && Date.parse(end.ended_at) < Date.parse(writer.since)
  return isEarlier ? null : end
}

/** The daemon stores the time every minute. When the stored time is older than this, the daemon cannot write. */
const SILENT_MS = 3 * MINUTE_MS

/**
 * @returns the stored state, corrected when the daemon ended without storing its end, or when a process holds the lock
 *   and cannot write
 */
function daemonOf(
  status: Pick<Status, 'meta' | 'database'>,
  writer: WriterState | null,
  now: number,
): DaemonReport | null {
  const state = storedNote<DaemonState>(status, META.daemonState)
  const idle = state?.state === 'waiting' ? undefined : idleWriter(status.database.path)
  if (idle) return notWriting(status, idle)
  if (state === undefined || state.state === 'stopped') return state ?? null
  const isRunning = writer?.running === true && writer.command === 'daemon'
  if (!isRunning)
    return {
      state: 'stopped',
      reason: 'it was killed, or the machine or disk failed',
      since: null,
      until: null,
    }
  const lastNoted = status.meta.get(META.clock)
  const isSilent = lastNoted !== undefined && now - Date.parse(lastNoted) > SILENT_MS
  if (state.state !== 'running' || !isSilent) return state
  return notWriting(status, undefined)
}

/** Less space than SQLite needs to write. */
const FULL_BYTES = 1024 ** 2

/** The state of a process that holds the lock and cannot say itself why it does not write. */
function notWriting(
  { meta, database }: Pick<Status, 'meta' | 'database'>,
  idle: LockHolder | undefined,
): DaemonReport {
  const state = {
    state: 'waiting',
    code: 'not-writing',
    since: meta.get(META.clock) ?? null,
    until: null,
  } as const
  if (idle?.isHalted)
    return {
      ...state,
      code: 'halted',
      reason: `Process ${idle.pid} is ${idle.state}`,
      hint: holdersHint([idle], ''),
    }
  if (freeOnDisk(dirname(database.path)) < FULL_BYTES)
    return {
      ...state,
      reason: 'The disk of the database is full',
      hint: 'Free some space on the disk of the database.',
    }
  if (idle === undefined)
    return { ...state, reason: 'it has not written the database for some minutes; see its log or /status' }
  const reason = `Process ${idle.pid} holds the lock and does not have this file open; see its log or /status`
  return { ...state, code: 'not-opened', reason, hint: 'If the file was moved or replaced, put it back.' }
}

function publicationOf(
  { publishing }: Pick<Status, 'publishing'>,
  writer: WriterState | null,
  now: number,
): PublicationReport | null {
  if (publishing === undefined) return null
  const { note, last, failures } = publishing
  const isRunning = writer?.running === true && writer.command === 'daemon'
  return {
    ...note,
    running_since: isRunning ? note.running_since : null,
    is_late: now > Date.parse(note.late_at),
    lag_seconds: last?.published_at == null ? null : (now - Date.parse(last.published_at)) / 1000,
    last: last === undefined ? null : figuresOf(last),
    failing: failures === undefined ? null : failingOf(failures),
  }
}

function figuresOf({ target: _, error_code: __, ...figures }: PublicationAttempt) {
  return figures
}

function failingOf({ since, times, newest }: NonNullable<PublicationHistory['failures']>) {
  const { finished_at: at, error_code: code, error: reason } = newest
  return { since, times, at, code: code ?? '', reason: reason ?? '' }
}

/** The learned rate as the governor stores it. */
interface StoredRate {
  ratePerSecond: number
  concurrency: number
  limited: boolean
  crowded?: boolean
  at?: string
}

function limitedBy({ limited, crowded }: StoredRate): RateReport['limited_by'] {
  if (limited) return crowded ? 'both' : 'rate'
  return crowded ? 'concurrency' : null
}

function rateOf(rate: StoredRate | undefined): RateReport | null {
  if (rate === undefined) return null
  return {
    requests_per_second: rate.ratePerSecond,
    concurrency: rate.concurrency,
    was_refused: rate.limited || rate.crowded === true,
    limited_by: limitedBy(rate),
    learned_at: rate.at ?? null,
  }
}
