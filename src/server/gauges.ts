import type { GovernorState } from '../api/governor.ts'
import type { StatusRow } from '../store/status.ts'
import type { SnapshotReport } from '../store/status-report.ts'
import type { LoopDelay } from './loop-delay.ts'

/** The values that are read when the metrics are asked for, as a table. */

export type RateFigures = Pick<GovernorState, 'ratePerSecond' | 'concurrency' | 'inFlight' | 'pausedUntil'>

export type ResourceFigures = Pick<StatusRow, 'resource' | 'state' | 'rows_live' | 'rejected' | 'fresh_as_of'>

export interface DatabaseFigures {
  bytes: number
  walBytes: number
}

export interface WorkspaceFigures {
  id: string
  baseUrl: string
}

export type SnapshotFigures = Pick<SnapshotReport, 'made_at' | 'failed_at'>

/** What a scrape knows. What cannot be had at the moment is undefined, and its gauges have no value. */
export interface Figures {
  version: string
  workspace: WorkspaceFigures | undefined
  /** By this machine's clock and by the server's, in ms since the epoch. */
  now: number
  serverNow: number
  rate: RateFigures | undefined
  /** What waits to be asked for, by lane. */
  backlog: Readonly<Record<string, number>> | undefined
  resources: readonly ResourceFigures[] | undefined
  database: DatabaseFigures | undefined
  /** Undefined as long as none was to be made. */
  snapshot: SnapshotFigures | undefined
  loopDelay: LoopDelay
  residentBytes: number
}

export interface GaugeDefinition {
  name: string
  help: string
  labels: readonly string[]
  values(figures: Figures): readonly GaugeValue[]
}

export type GaugeValue = readonly [value: number, labels?: Readonly<Record<string, string>>]

const STATES = [
  'ok',
  'backfilling',
  'waiting',
  'unavailable',
  'failing',
] as const satisfies readonly StatusRow['state'][]

const secondsUntil = (ms: number, now: number): number => Math.max(0, ms - now) / 1000

const ofRate = (value: (rate: RateFigures, figures: Figures) => number) => (figures: Figures) =>
  figures.rate === undefined ? [] : [[value(figures.rate, figures)] as const]

const ofDatabase = (value: (database: DatabaseFigures) => number) => (figures: Figures) =>
  figures.database === undefined ? [] : [[value(figures.database)] as const]

const perResource = (value: (row: ResourceFigures, figures: Figures) => number) => (figures: Figures) =>
  (figures.resources ?? []).map(row => [value(row, figures), { resource: row.resource }] as const)

export const GAUGES: readonly GaugeDefinition[] = [
  {
    name: 'parley_rate_requests_per_second',
    help: 'Requests per second that the API allows, as far as learned.',
    labels: [],
    values: ofRate(({ ratePerSecond }) => ratePerSecond),
  },
  {
    name: 'parley_concurrency',
    help: 'Requests at the same time that the API allows, as far as learned.',
    labels: [],
    values: ofRate(({ concurrency }) => concurrency),
  },
  {
    name: 'parley_in_flight_requests',
    help: 'Requests that wait for their answer.',
    labels: [],
    values: ofRate(({ inFlight }) => inFlight),
  },
  {
    name: 'parley_paused_seconds',
    help: 'Seconds until requests may go again; 0 when they may.',
    labels: [],
    values: ofRate(({ pausedUntil = 0 }, { now }) => secondsUntil(pausedUntil, now)),
  },
  {
    name: 'parley_lane_backlog',
    help: 'What waits to be asked for.',
    labels: ['lane'],
    values: ({ backlog = {} }) => Object.entries(backlog).map(([lane, waiting]) => [waiting, { lane }]),
  },
  {
    name: 'parley_rows',
    help: 'Live rows in the warehouse.',
    labels: ['resource'],
    values: perResource(row => row.rows_live),
  },
  {
    name: 'parley_fresh_seconds',
    help: 'Age of the newest end: seconds since its last complete read began. Without a value before the first.',
    labels: ['resource'],
    values: ({ resources = [], serverNow }) =>
      resources.flatMap(({ resource, fresh_as_of: at }) =>
        at === null ? [] : [[secondsUntil(serverNow, Date.parse(at)), { resource }] as const],
      ),
  },
  {
    name: 'parley_resource_state',
    help: '1 for the state that a resource is in, 0 for the others.',
    labels: ['resource', 'state'],
    values: ({ resources = [] }) =>
      resources.flatMap(row =>
        STATES.map(state => [row.state === state ? 1 : 0, { resource: row.resource, state }] as const),
      ),
  },
  {
    name: 'parley_rejects',
    help: 'Items of the API that could not be stored and wait in sync_rejects.',
    labels: ['resource'],
    values: perResource(row => row.rejected),
  },
  {
    name: 'parley_wal_bytes',
    help: "Size of the database's write-ahead log.",
    labels: [],
    values: ofDatabase(({ walBytes }) => walBytes),
  },
  {
    name: 'parley_database_bytes',
    help: 'Size of the database without its write-ahead log.',
    labels: [],
    values: ofDatabase(({ bytes }) => bytes),
  },
  {
    name: 'parley_snapshot_age_seconds',
    help: "Seconds since the daemon's newest snapshot was begun. Without a value before the first.",
    labels: [],
    values: ({ snapshot, now }) => {
      const at = snapshot?.made_at ?? null
      return at === null ? [] : [[Math.max(0, now - Date.parse(at)) / 1000]]
    },
  },
  {
    name: 'parley_snapshot_failed',
    help: '1 when the last snapshot could not be made, else 0. Without a value before the first.',
    labels: [],
    values: ({ snapshot }) => (snapshot === undefined ? [] : [[snapshot.failed_at === null ? 0 : 1]]),
  },
  {
    name: 'parley_event_loop_delay_seconds',
    help: 'How late the process got to its timers since the last scrape; quantile 1 is the longest.',
    labels: ['quantile'],
    values: ({ loopDelay: { p50, p99, max } }) => [
      [p50, { quantile: '0.5' }],
      [p99, { quantile: '0.99' }],
      [max, { quantile: '1' }],
    ],
  },
  {
    name: 'process_resident_memory_bytes',
    help: 'Resident memory size in bytes.',
    labels: [],
    values: ({ residentBytes }) => [[residentBytes]],
  },
  {
    name: 'parley_workspace_info',
    help: 'Always 1; the workspace that is read, and where, are in the labels.',
    labels: ['workspace_id', 'base_url'],
    values: ({ workspace }) =>
      workspace === undefined ? [] : [[1, { workspace_id: workspace.id, base_url: workspace.baseUrl }]],
  },
  {
    name: 'parley_build_info',
    help: 'Always 1; the version is in the label.',
    labels: ['version'],
    values: ({ version }) => [[1, { version }]],
  },
]
