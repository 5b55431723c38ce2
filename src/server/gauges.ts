import type { GovernorState } from '../api/governor/governor.ts'
import { RESOURCE_STATES, type ResourceStateName } from '../dictionary/sync-tables.ts'
import type { PublicationReport, ResourceReport, SnapshotReport } from '../store/status/report.ts'

/** The gauges of `/metrics`. Their values are read at each scrape. */

export type ResourceFigures = Pick<
  ResourceReport,
  | 'resource'
  | 'state'
  | 'rows_live'
  | 'rejected'
  | 'fresh_as_of'
  | 'complete_as_of'
  | 'pending_tasks'
  | 'deletions_held_since'
>

/** The values that are read at each scrape. */
export interface ReadFigures {
  workspace: { id: string; baseUrl: string }
  /** The API server's clock in ms since the epoch: freshness is measured by it. Default: this machine's clock. */
  serverNow: number
  /** Undefined between two sessions, as is `isApiReachable`. */
  rate: Pick<GovernorState, 'ratePerSecond' | 'concurrency' | 'inFlight' | 'pausedUntil'>
  isReady: boolean
  hasInvalidSettings: boolean
  isApiReachable: boolean
  /** `freeBytes`: free on the disk of the database. */
  database: { bytes: number; walBytes: number; freeBytes: number }
  /** Undefined before the first snapshot, and while snapshots are off. */
  snapshot: Pick<SnapshotReport, 'made_at' | 'failed_at'>
  /** Undefined while the daemon does not publish. */
  publication: Pick<PublicationReport, 'is_late' | 'last' | 'failing'>
  resources: readonly ResourceFigures[]
  /** By lane: how many segments and single reads are due. */
  backlog: Readonly<Record<string, number>>
}

/** The values of one scrape. When a value is undefined, its gauges have no value. */
export type Figures = { readonly [Part in keyof ReadFigures]: ReadFigures[Part] | undefined } & {
  version: string
  /** By this machine's clock, in ms since the epoch, as is `answeredAt`. */
  now: number
  /** When the API last answered this process. */
  answeredAt: number | undefined
  /** Delay of timers past their due time since the last scrape, in seconds. */
  loopDelay: { p50: number; p99: number; max: number }
}

export interface GaugeDefinition {
  name: string
  help: string
  /** Default: none. */
  labels?: readonly string[]
  /** The value of a gauge without labels, or a value for each set of labels. True is 1. */
  values(figures: Figures): number | boolean | null | undefined | readonly LabelledValue[]
}

export type LabelledValue = readonly [value: number, labels: Readonly<Record<string, string>>]

const STATES = Object.keys(RESOURCE_STATES) as ResourceStateName[]

/** Never below 0. Undefined where there is no earlier instant. */
const secondsBetween = (earlier: string | number | null | undefined, later: number): number | undefined =>
  earlier == null ? undefined : Math.max(0, later - new Date(earlier).valueOf()) / 1000

/** No value for a resource where it is undefined. */
const perResource =
  (value: (row: ResourceFigures, figures: Figures) => number | undefined) =>
  (figures: Figures): readonly LabelledValue[] =>
    (figures.resources ?? []).flatMap(row => {
      const figure = value(row, figures)
      return figure === undefined ? [] : [[figure, { resource: row.resource }] as const]
    })

export const GAUGES: readonly GaugeDefinition[] = [
  {
    name: 'parley_rate_requests_per_second',
    help: 'Current rate limit of requests to the API, as learned.',
    values: ({ rate }) => rate?.ratePerSecond,
  },
  {
    name: 'parley_concurrency',
    help: 'Current limit of requests in flight, as learned.',
    values: ({ rate }) => rate?.concurrency,
  },
  {
    name: 'parley_in_flight_requests',
    help: 'Requests in flight.',
    values: ({ rate }) => rate?.inFlight,
  },
  {
    name: 'parley_paused_seconds',
    help: 'Seconds until requests are sent again; 0 when they are not paused.',
    values: ({ rate, now }) => rate && secondsBetween(now, rate.pausedUntil ?? 0),
  },
  {
    name: 'parley_lane_backlog',
    help: 'Segments of lists and single reads that are due.',
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
    help: 'Seconds since the last complete read of the newest rows or of the list began. No value before the first.',
    labels: ['resource'],
    values: perResource((row, { serverNow, now }) => secondsBetween(row.fresh_as_of, serverNow ?? now)),
  },
  {
    name: 'parley_complete_seconds',
    help: 'Seconds since the instant before which everything published had been read. No value while history loads.',
    labels: ['resource'],
    values: perResource((row, { serverNow, now }) => secondsBetween(row.complete_as_of, serverNow ?? now)),
  },
  {
    name: 'parley_pending',
    help: 'Single reads that are outstanding or have to be repeated.',
    labels: ['resource'],
    values: perResource(row => row.pending_tasks),
  },
  {
    name: 'parley_deletions_held',
    help: '1 while the mass-deletion guard holds deletions of the resource back, else 0.',
    labels: ['resource'],
    values: perResource(row => (row.deletions_held_since === null ? 0 : 1)),
  },
  {
    name: 'parley_resource_state',
    help: '1 for the current state of the resource, 0 for the others.',
    labels: ['resource', 'state'],
    values: ({ resources = [] }) =>
      resources.flatMap(row =>
        STATES.map(state => [row.state === state ? 1 : 0, { resource: row.resource, state }] as const),
      ),
  },
  {
    name: 'parley_rejects',
    help: 'Items of the API that could not be stored; see sync_rejects.',
    labels: ['resource'],
    values: perResource(row => row.rejected),
  },
  {
    name: 'parley_ready',
    help: '1 while the warehouse follows the API, else 0; /readyz gives the reason.',
    values: ({ isReady }) => isReady,
  },
  {
    name: 'parley_settings_invalid',
    help: '1 while the daemon keeps earlier settings, since those of the last reload are invalid, else 0.',
    values: ({ hasInvalidSettings }) => hasInvalidSettings,
  },
  {
    name: 'parley_api_reachable',
    help: '0 while no request to the API succeeds, or access is refused, else 1. No value between two sessions.',
    values: ({ isApiReachable }) => isApiReachable,
  },
  {
    name: 'parley_last_answer_seconds',
    help: 'Seconds since the API last answered, whatever the status. No value before the first answer.',
    values: ({ answeredAt, now }) => secondsBetween(answeredAt, now),
  },
  {
    name: 'parley_disk_free_bytes',
    help: 'Free space on the disk of the database.',
    values: ({ database }) => database?.freeBytes,
  },
  {
    name: 'parley_wal_bytes',
    help: "Size of the database's write-ahead log.",
    values: ({ database }) => database?.walBytes,
  },
  {
    name: 'parley_database_bytes',
    help: 'Size of the database without its write-ahead log.',
    values: ({ database }) => database?.bytes,
  },
  {
    name: 'parley_snapshot_age_seconds',
    help: "Seconds since the daemon's newest snapshot was started. No value before the first.",
    values: ({ snapshot, now }) => secondsBetween(snapshot?.made_at, now),
  },
  {
    name: 'parley_snapshot_failed',
    help: '1 when the last snapshot failed, else 0. No value before the first.',
    values: ({ snapshot }) => snapshot && snapshot.failed_at !== null,
  },
  {
    name: 'parley_publication_late',
    help: '1 when a publication is overdue by more than a quarter of an hour to an hour, by its interval, else 0. No value while the daemon does not publish.',
    values: ({ publication }) => publication?.is_late,
  },
  {
    name: 'parley_publication_lag_seconds',
    help: 'Age of the warehouse that readers of the target see. No value before the first publication.',
    values: ({ publication, now }) => secondsBetween(publication?.last?.published_at, now),
  },
  {
    name: 'parley_publication_failures',
    help: 'Failed publications since the last complete one.',
    values: ({ publication }) => publication && (publication.failing?.times ?? 0),
  },
  {
    name: 'parley_publication_success_timestamp_seconds',
    help: 'When the last publication was complete, in seconds since the epoch.',
    values: ({ publication }) => publication?.last && Date.parse(publication.last.finished_at) / 1000,
  },
  {
    name: 'parley_publication_duration_seconds',
    help: 'How long the last publication took.',
    values: ({ publication }) =>
      publication?.last &&
      secondsBetween(publication.last.started_at, Date.parse(publication.last.finished_at)),
  },
  {
    name: 'parley_publication_files_written',
    help: 'Data files that the last publication wrote.',
    values: ({ publication }) => publication?.last?.files_written,
  },
  {
    name: 'parley_publication_bytes_written',
    help: 'Size of what the last publication wrote.',
    values: ({ publication }) => publication?.last?.bytes_written,
  },
  {
    name: 'parley_event_loop_delay_seconds',
    help: 'Delay of timers since the last scrape; quantile 1 is the maximum.',
    labels: ['quantile'],
    values: ({ loopDelay: { p50, p99, max } }) => [
      [p50, { quantile: '0.5' }],
      [p99, { quantile: '0.99' }],
      [max, { quantile: '1' }],
    ],
  },
  {
    name: 'process_start_time_seconds',
    help: 'Start time of the process in seconds since the epoch.',
    values: ({ now }) => now / 1000 - process.uptime(),
  },
  {
    name: 'process_resident_memory_bytes',
    help: 'Resident memory size in bytes.',
    values: () => process.memoryUsage.rss(),
  },
  {
    name: 'parley_workspace_info',
    help: 'Always 1; the labels name the workspace and the base URL of its API.',
    labels: ['workspace_id', 'base_url'],
    values: ({ workspace }) =>
      workspace === undefined ? [] : [[1, { workspace_id: workspace.id, base_url: workspace.baseUrl }]],
  },
  {
    name: 'parley_build_info',
    help: 'Always 1; the label has the version.',
    labels: ['version'],
    values: ({ version }) => [[1, { version }]],
  },
]
