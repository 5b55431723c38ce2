import { resourceNamed } from '../catalog.ts'
import { sizeText } from '../size-text.ts'
import type {
  DaemonReport,
  LagReport,
  RateReport,
  ResourceReport,
  StatusReport,
  UnreachableReport,
} from '../store/status-report.ts'
import type { WriterState } from '../store/writer.ts'
import { remark, type TableColumn, table } from './table.ts'
import { textWidth } from './text-width.ts'
import { ago, duration, perSecond, wholeNumber, wrap } from './wording.ts'

/** What `parley status` prints for people. Pure. */

export interface Paper {
  /** In ms since the epoch. */
  now: number
  /** Of the terminal; undefined for a file or a pipe, where lines may be of any length. */
  columns: number | undefined
}

export function statusPage(report: StatusReport, { now, columns }: Paper): string {
  const width = columns ?? Number.POSITIVE_INFINITY
  const resources = failingFirst(report.resources)
  const { lines, left } = fitted(resourceColumns(now), resources, width)
  // What is still being read for the first time is the rule, and its state says so already.
  const reasons = resources.flatMap(row =>
    row.reason === null || row.state === 'backfilling' || isSharedReason(report, row.reason)
      ? []
      : remark(row.resource, reasonText(row, row.reason, now), width),
  )
  const files = `${report.database}: ${sizeText(report.database_bytes)}, and ${sizeText(report.wal_bytes)} in its -wal`
  const sentences = [
    ...whose(report),
    ...resources.flatMap(byState),
    ...asked(report, now),
    ...daemonSays(report, now),
    ...backfillEnded(report, now),
    writing(report.writer, now),
    ...snapshots(report, now),
    allowed(report.learned_rate, now),
  ].flatMap(sentence => wrap(sentence, width))
  const trouble = unreachable(report, now).flatMap(sentence => wrap(sentence, width))
  return `${[...trouble, ...lines, ...wrap(leftOut(left), width), ...reasons, ...lags(report.resources), files, ...sentences].join('\n')}\n`
}

/** What needs a person comes first; else in the order of the catalogue. */
function failingFirst(resources: readonly ResourceReport[]): ResourceReport[] {
  const isFailing = ({ state }: ResourceReport) => state === 'failing'
  return [...resources.filter(isFailing), ...resources.filter(one => !isFailing(one))]
}

/** `failing for 4 min (since …), 3 times in a row, next try in 30 s: the API answers 500` */
function reasonText(row: ResourceReport, reason: string, now: number): string {
  const { failing_since: since, failed_in_a_row: failures, next_run_at: next } = row
  if (since === null) return reason
  const often = failures === null || failures < 2 ? '' : `, ${wholeNumber(failures)} times in a row`
  const again = next === null ? '' : `, next try due ${dueText(next, now)}`
  return `failing for ${lasting(since, now)}${often}${again}: ${reason}`
}

/** `4 min (since 2026-05-01T11:56:00.000Z)` */
function lasting(since: string, now: number): string {
  return `${duration(Math.max(now - Date.parse(since), 1000))} (since ${since})`
}

const UNREACHABLE: Readonly<Record<UnreachableReport['kind'], string>> = {
  silent: 'The API has not answered for',
  refused: 'The API has granted no access for',
  'asked-to-wait': 'The API has asked to wait for',
}

function unreachable({ api }: StatusReport, now: number): string[] {
  if (api === null) return []
  const { kind, reason, since, next_try_at: next } = api
  const tries = Date.parse(next) <= now ? 'now' : ago(next, now)
  return [`${UNREACHABLE[kind]} ${lasting(since, now)}: ${reason.replace(/\.$/, '')}. Next try: ${tries}.`]
}

/** Said once for all resources. */
function isSharedReason({ api }: StatusReport, reason: string): boolean {
  return api !== null && reason.endsWith(`(${api.reason}); next try at ${api.next_try_at}`)
}

function dueText(at: string | null, now: number): string {
  return at !== null && Date.parse(at) <= now ? 'now' : ago(at, now)
}

interface Column extends TableColumn<ResourceReport> {
  /** Shown where there is room, those of a lower rank first. */
  rank?: number
}

function resourceColumns(now: number): Column[] {
  const number = (title: string, value: (row: ResourceReport) => number) => ({
    title,
    align: 'right' as const,
    cell: (row: ResourceReport) => wholeNumber(value(row)),
  })
  const counted = (title: string, value: (row: ResourceReport) => number) => ({
    ...number(title, value),
    isIdle: (row: ResourceReport) => value(row) === 0,
  })
  return [
    { title: 'resource', cell: ({ resource }) => resource },
    { title: 'state', cell: ({ state }) => state },
    number('rows', row => row.rows_live),
    { ...counted('deleted', row => row.rows_deleted), rank: 4 },
    { ...counted('pending', row => row.pending_tasks), rank: 3 },
    { ...counted('rejected', row => row.rejected), rank: 1 },
    { title: 'newest', cell: row => ago(row.newest_at, now), rank: 5 },
    { title: 'fresh as of', cell: row => ago(row.fresh_as_of, now) },
    { title: 'complete as of', cell: row => ago(row.complete_as_of, now) },
    // Not when it will be read: that depends on who runs parley, and when.
    {
      title: 'due',
      cell: row => dueText(row.next_run_at, now),
      isIdle: row => row.next_run_at === null,
      rank: 2,
    },
  ]
}

/** The table, with as many of its columns as the width has room for, and the titles of the others. */
function fitted(
  columns: readonly Column[],
  rows: readonly ResourceReport[],
  width: number,
): { lines: string[]; left: string[] } {
  const busy = columns.filter(({ isIdle }) => isIdle === undefined || !rows.every(isIdle))
  const isNeeded = ({ rank }: Column) => rank === undefined
  const draw = (chosen: ReadonlySet<Column>) =>
    table(
      busy.filter(column => chosen.has(column)),
      rows,
    )
  let chosen: ReadonlySet<Column> = new Set(busy.filter(isNeeded))
  for (const column of busy.filter(one => !isNeeded(one)).sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0))) {
    const more = new Set([...chosen, column])
    if (Math.max(...draw(more).map(textWidth)) <= width) chosen = more
  }
  return { lines: draw(chosen), left: busy.filter(one => !chosen.has(one)).map(({ title }) => title) }
}

function leftOut(titles: readonly string[]): string {
  if (titles.length === 0) return ''
  return `No room for ${titles.join(', ')}: a wider terminal shows more, --json everything.`
}

interface Late extends LagReport {
  resource: string
}

function lags(resources: readonly ResourceReport[]): string[] {
  const late = resources.flatMap(({ resource, arrival_lag: lag }): Late[] =>
    lag === null ? [] : [{ resource, ...lag }],
  )
  if (late.length === 0) return []
  const time = (title: string, seconds: (row: Late) => number): TableColumn<Late> => ({
    title,
    align: 'right',
    cell: row => (seconds(row) < 1 ? 'under 1 s' : duration(seconds(row) * 1000)),
  })
  const lines = table<Late>(
    [
      { title: 'arrival lag', cell: ({ resource }) => resource },
      { title: 'rows', align: 'right', cell: ({ rows }) => wholeNumber(rows) },
      time('median', row => row.median_seconds),
      time('99 of 100', row => row.p99_seconds),
      time('longest', row => row.longest_seconds),
    ],
    late,
  )
  return ['', ...lines, '']
}

function asked({ requests }: StatusReport, now: number): string[] {
  if (requests.length === 0) return []
  const list = requests.map(one => `${one.kind} of ${one.resource} (${ago(one.asked_at, now)})`)
  return [`Asked for and not taken up yet: ${list.join(', ')}.`]
}

const WITHOUT: Readonly<Record<string, string>> = {
  pending: 'not read yet',
  empty: 'empty at the API',
  gone: 'gone (404)',
  withheld: 'withheld (403)',
}

/** Fewer texts than e-mails look like a loss to those who do not know that the API has none for some. */
function byState({ resource, by_state: counts }: ResourceReport): string[] {
  const wording = resourceNamed(resource).status.byState
  if (wording === undefined || counts === null) return []
  const others = Object.entries(counts).filter(([state, rows]) => state !== 'present' && rows > 0)
  if (others.length === 0) return []
  const all = Object.values(counts).reduce((sum, rows) => sum + rows, 0)
  const rest = others.map(([state, rows]) => `${wholeNumber(rows)} ${WITHOUT[state] ?? state}`).join(', ')
  return [
    `${wholeNumber(counts['present'] ?? 0)} of ${wholeNumber(all)} ${wording.rows} have a ${wording.part}; of the others: ${rest}.`,
  ]
}

function whose({ workspace }: StatusReport): string[] {
  return workspace === null ? [] : [`It holds workspace ${workspace.id}, read from ${workspace.base_url}.`]
}

const DOING: Readonly<Record<Exclude<DaemonReport['state'], 'stopped'>, string>> = {
  running: 'has been running',
  waiting: 'has been waiting',
  paused: 'has been paused',
}

function daemonSays({ daemon, writer }: StatusReport, now: number): string[] {
  if (daemon === null) return []
  const { state, reason, since, until } = daemon
  const exit = daemon.exit_status ? ` (exit status ${daemon.exit_status})` : ''
  const why = reason === null ? '' : `${exit}: ${reason.replace(/\.$/, '')}`
  if (since === null) {
    // Of a writer that was cut off, it is said where it is named.
    return writer?.died && writer.command === 'daemon' ? [] : [`The daemon does not run${why}.`]
  }
  const asked = daemon.exit_status === 0 ? ', as it was asked to' : ''
  if (state === 'stopped') return [`The daemon stopped ${ago(since, now)}${asked}${why}.`]
  const long = duration(Math.max(now - Date.parse(since), 1000))
  return [`The daemon ${DOING[state]} for ${long}${why}.${goesOn(until, now)}`]
}

function backfillEnded({ backfill }: StatusReport, now: number): string[] {
  if (backfill === null) return []
  const { ended_at: at, exit_status: exit, reason } = backfill
  const how = reason === null ? 'complete' : `exit status ${exit}, ${reason.replace(/\.$/, '')}`
  return [`The last backfill ended ${ago(at, now)}: ${how}.`]
}

function goesOn(until: string | null, now: number): string {
  if (until === null) return ''
  return Date.parse(until) <= now ? ' It is about to go on.' : ` It goes on ${ago(until, now)}.`
}

function writing(writer: WriterState | null, now: number): string {
  if (writer === null) return 'No process writes it.'
  const who = `parley ${writer.command}, process ${writer.pid}`
  const since = `${ago(writer.since, now)} (${writer.since})`
  if (writer.running) return `Written now by ${who}, since ${since}.`
  if (writer.died) {
    return `No process writes it: the last, ${who}, begun ${since}, was cut off. The next goes on where it stopped.`
  }
  return `No process writes it now. The last was ${who}, begun ${since}.`
}

function snapshots({ snapshot }: StatusReport, now: number): string[] {
  if (snapshot === null) return []
  const { made_at: at, path, bytes: size, failed_at: failed, reason } = snapshot
  const made =
    at === null
      ? []
      : [`The daemon's last snapshot was made ${ago(at, now)}: ${path}, ${sizeText(size ?? 0)}.`]
  return failed === null ? made : [...made, `Its snapshot of ${ago(failed, now)} failed: ${reason}`]
}

function allowed(rate: RateReport | null, now: number): string {
  if (rate === null) return 'What rate the API allows is not known yet.'
  const { requests_per_second: speed, concurrency, limited_by: limit, learned_at: at } = rate
  if (limit === null) return 'The API has not refused a request as too many (429) so far.'
  const allows = {
    rate: `about ${perSecond(speed)} requests/s`,
    concurrency: `${wholeNumber(concurrency)} requests at once`,
    both: `about ${perSecond(speed)} requests/s, ${wholeNumber(concurrency)} at once`,
  }[limit]
  const age = at === null ? '' : `, as learned ${ago(at, now)}`
  return `The API has refused requests as too many (429); what it takes is ${allows}${age}.`
}
