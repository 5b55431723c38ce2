import { resolve } from 'node:path'
import { RESOURCE_NAMES, type ResourceName } from '../../declare/resource-names.ts'
import type { ResourceStateName } from '../../dictionary/sync-tables.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { databaseSizes } from '../disk/disk-space.ts'
import { LARGE_WAL_BYTES, type LockHolder, longWriters, walReaders } from '../disk/lock-holders.ts'
import { readRequests } from '../file/handed-over.ts'
import type { Workspace } from '../file/workspace.ts'
import { type LagReport, readArrivals } from '../sync/arrivals.ts'
import { API_GATE, type ApiGateKind, apiGates, type Gate, ROUTE_GATE, readGates } from '../sync/gates.ts'
import { META, readNote } from '../sync/meta.ts'
import {
  type PublicationAttempt,
  type PublicationHistory,
  type PublishingNote,
  readPublications,
} from '../sync/publications.ts'
import { SIZE_DIFFERS } from '../sync/segments.ts'
import { readWriter } from '../sync/writer-note.ts'
import {
  type BackfillEnd,
  backfillOf,
  type DaemonReport,
  type DaemonState,
  daemonOf,
  type WriterState,
  writerOf,
} from './processes.ts'
import {
  type CountedColumn,
  type ReadSince,
  readReadSince,
  readStatus,
  readUncounted,
  readWarehouse,
  type StatusRow,
  type UncountedRow,
} from './status.ts'

/**
 * Whether a resource is not read because `sync.resources`, `--only` or `--skip` leave it out, and nothing else is
 * wrong.
 */
export const isLeftOut = (
  { resource, state }: Pick<UncountedRow, 'resource' | 'state'>,
  { chosen_resources: chosen }: Pick<StatusReport, 'chosen_resources'>,
): boolean => (state === 'backfilling' || state === 'ok') && !chosen.includes(resource)

/** What `parley status --json` prints and the daemon's `/status` answers, field by field. */
export interface StatusReport<Row = ResourceReport> {
  database: string
  /** Null until the first rows are stored. */
  workspace: Workspace | null
  database_bytes: number
  wal_bytes: number
  /** Programs whose transactions keep a `-wal` that is large, or has purged content, from shrinking. Else empty. */
  wal_readers: readonly OtherProgram[]
  /** Programs that have held the lock for writing for a second while parley should write. Else empty. */
  lock_holders: readonly OtherProgram[]
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

/** A program that is no writer of parley. */
export interface OtherProgram {
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

/** What the last runs of a resource could not do. */
interface ResourceTroubles {
  /** Null unless this resource itself fails. When the API is unreachable as a whole, `api` has the instant. */
  failing_since: string | null
  /** Failed runs since the last successful one; null unless this resource itself fails. */
  failed_in_a_row: number | null
  /** Since when the mass-deletion guard holds deletions back; null when it holds none. */
  deletions_held_since: string | null
  /** Since when the resource has items that could not be stored; null when there are none. */
  rejected_since: string | null
  /**
   * Since when a list shows another number of rows than it states, so that deletions are not recognised; null when all
   * lists agree.
   */
  size_differs_since: string | null
}

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
  /** For how long the running commit of the calling process has lasted. */
  blockedMs?: number | undefined
  /** The rows of `sync_status`, when the caller has them already. */
  rows?: readonly StatusRow[] | undefined
}

/** @throws StopError (73) when there is no warehouse at this path, or it cannot be read */
export function readStatusReport({ path, now, db, daemon, blockedMs, rows }: StatusQuestion): StatusReport {
  return readWarehouse(
    path,
    open => {
      const counted = (rows ?? readStatus(open)).map(({ by_state: counts, ...row }) => ({
        ...row,
        by_state: counts === null ? null : JSON.parse(counts),
      }))
      return reportOf(open, counted, { path, now, daemon, blockedMs })
    },
    db,
  )
}

/**
 * A report that counts no rows, so that its time does not depend on the size of the warehouse.
 * @throws StopError (73) when there is no warehouse at this path, or it cannot be read
 */
export function readUncountedReport({
  path,
  now,
}: Pick<StatusQuestion, 'path' | 'now'>): StatusReport<ResourceFacts> {
  return readWarehouse(path, open => reportOf(open, readUncounted(open), { path, now }))
}

/** Reads the report without writing. Call it in a transaction, so that all of it is of one instant. */
function reportOf<Row extends UncountedRow>(
  db: Sqlite,
  rows: readonly Row[],
  { path, now, daemon, blockedMs }: Pick<StatusQuestion, 'path' | 'now' | 'daemon' | 'blockedMs'>,
): StatusReport<Row & ResourceHistory> {
  const file = resolve(path)
  const meta = new Map(
    db.prepare<unknown[], [string, string]>('SELECT key, value FROM sync_meta').raw().all(),
  )
  const isOfCopy = isCopy(db)
  if (isOfCopy) for (const key of KEYS_OF_RUNNING_PROCESSES) meta.delete(key)
  const notes = (key: string) => meta.get(key)
  const writer = writerOf(db, file, notes)
  const state = daemon ?? daemonOf(file, notes, { writer, now })
  const gates = apiGates(isOfCopy ? [] : readGates(db))
  const api = gates.find(({ what }) => what === API_GATE)
  const sizes = databaseSizes(file)
  const remains = readNote<NotedRemains>(notes, META.purgeRemains) ?? {}
  const isWalHeld = sizes.walBytes >= LARGE_WAL_BYTES || remains.wal !== undefined
  // A daemon that waits says why.
  const isWriting = writer?.running === true && state?.state !== 'waiting'
  const [troubles, readSince, arrivals] = [readTroubles(db), readReadSince(db), readArrivals(db)]
  return {
    database: file,
    workspace: readNote<Workspace>(notes, META.workspace) ?? null,
    database_bytes: sizes.bytes,
    wal_bytes: sizes.walBytes,
    wal_readers: isWalHeld ? walReaders(file).map(programReport) : [],
    lock_holders: isWriting ? longWriters(file, blockedMs).map(programReport) : [],
    writer,
    chosen_resources: readNote<ResourceName[]>(notes, META.chosenResources) ?? RESOURCE_NAMES,
    daemon: state,
    backfill: backfillOf(notes, writer),
    api: api === undefined ? null : gateReport(api),
    closed_routes: gates.flatMap(closedRouteOf),
    learned_rate: rateOf(readNote<StoredRate>(notes, META.learnedRate)),
    snapshot: readNote<SnapshotReport>(notes, META.snapshots) ?? null,
    publication: readPublication(db, readNote<PublishingNote>(notes, META.publishing), { writer, now }),
    purge_remains: PLACES.flatMap(place => (remains[place] ?? []).map(one => ({ place, ...one }))),
    requests: readRequests(db).map(({ kind, resource, askedAt }) => ({ kind, resource, asked_at: askedAt })),
    resources: rows.map(row => ({
      ...row,
      state: state?.state === 'waiting' && STOPS.includes(row.state) ? 'on hold' : row.state,
      ...(troubles.get(row.resource) ?? NO_TROUBLES),
      arrival_lag: arrivals.get(row.resource) ?? null,
      read_since: readSince.get(row.resource) ?? null,
    })),
  }
}

/** Keys about the processes that update a warehouse. No process updates a copy, so its values are meaningless. */
const KEYS_OF_RUNNING_PROCESSES = [META.writer, META.daemonState, META.publishing]

/**
 * A snapshot is not in WAL mode; a warehouse is, from its first opening for writing. A database that was just restored
 * is not in WAL mode yet either, but the restore has updated its keys.
 */
function isCopy(db: Sqlite): boolean {
  const isWithoutWal = db.pragma('journal_mode', { simple: true }) === 'delete'
  return isWithoutWal && readWriter(db)?.command !== 'restore'
}

function readTroubles(db: Sqlite): ReadonlyMap<ResourceName, ResourceTroubles> {
  const rows = db
    .prepare<unknown[], ResourceTroubles & { resource: ResourceName }>(
      `SELECT resource, held_since AS deletions_held_since, rejected_since, failing_since,
         iif(failing_since IS NULL, NULL, (SELECT count(*) FROM sync_runs u
           WHERE u.resource = r.resource AND u.outcome = 'failed'
             AND u.started_at >= coalesce(r.last_success_at, ''))) AS failed_in_a_row,
         (SELECT min(value) FROM sync_meta
           WHERE key >= '${SIZE_DIFFERS}' || r.resource || '.' AND key < '${SIZE_DIFFERS}' || r.resource || '/') AS size_differs_since
       FROM sync_resources r LEFT JOIN (
         SELECT resource, min(first_seen_at) AS rejected_since FROM sync_rejects
         WHERE resolved_at IS NULL GROUP BY resource) USING (resource)`,
    )
    .all()
  return new Map(rows.map(({ resource, ...troubles }) => [resource, troubles]))
}

const NO_TROUBLES: ResourceTroubles = {
  deletions_held_since: null,
  rejected_since: null,
  size_differs_since: null,
  failing_since: null,
  failed_in_a_row: null,
}

/** Stored states that are wrong while the daemon waits: it reads nothing, and may be unable to store that. */
const STOPS: readonly ResourceStateName[] = ['ok', 'backfilling', 'waiting']

const programReport = ({ pid, program, state }: LockHolder): OtherProgram => ({
  pid,
  program: program ?? null,
  state,
})

const closedRouteOf = (gate: Gate<ApiGateKind>): ClosedRouteReport[] =>
  gate.what.startsWith(ROUTE_GATE)
    ? [{ route: gate.what.slice(ROUTE_GATE.length), ...gateReport(gate), resources: gate.resources }]
    : []

const gateReport = ({ kind, reason, since, until }: Gate<ApiGateKind>): UnreachableReport => ({
  kind,
  reason,
  since,
  next_try_at: until,
})

/** @param note undefined when the daemon does not publish */
function readPublication(
  db: Sqlite,
  note: PublishingNote | undefined,
  { writer, now }: { writer: WriterState | null; now: number },
): PublicationReport | null {
  if (note === undefined) return null
  const { last, failures } = readPublications(db, note.target)
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
