import { sizeText } from '../../base/size-text.ts'
import { wholeNumber } from '../../base/whole-number.ts'
import { resourceNamed } from '../../catalog/catalog.ts'
import { verdictSentences } from '../../health/check.ts'
import { type HealthProblem, problemsOf, withNextTry } from '../../health/problems.ts'
import { problemVerdict } from '../../health/verdict.ts'
import { fileSizesText, publishedText, rateSentence, shownReason } from '../../health/wording.ts'
import type { WriterState } from '../../store/status/processes.ts'
import { isLeftOut, type ResourceReport, type StatusReport } from '../../store/status/report.ts'
import type { LagReport } from '../../store/sync/arrivals.ts'
import { fitTable, indentedNote, type RankedColumn, type TableColumn, table } from '../../terminal/table.ts'
import {
  clockText,
  dueText,
  durationText,
  relativeTime,
  wholeSecondsText,
  wrapText,
} from '../../terminal/wording.ts'

/** The text output of `parley status`. Pure. */

export interface StatusPageOptions {
  /** In ms since the epoch. */
  now: number
  /** The width of the terminal; undefined for a file or pipe, where lines have any length. */
  columns: number | undefined
  /** Problems that are not in the report. */
  causes?: readonly HealthProblem[]
}

export function statusPage(report: StatusReport, { now, columns, causes = [] }: StatusPageOptions): string {
  const width = columns ?? Number.POSITIVE_INFINITY
  const resources = failingFirst(report.resources)
  const { lines, left } = fitTable(resourceColumns(report, now), resources, width)
  const reasons = resources.flatMap(row => {
    const reason = shownReason(row, report)
    return reason === null ? [] : indentedNote(row.resource, reason, width)
  })
  const files = `${report.database}: ${fileSizesText(report)}`
  const sentences = [
    ...workspaceSentences(report),
    ...leftOutSentences(report),
    ...resources.flatMap(stateSentences),
    ...requestSentences(report, now),
    ...daemonSentences(report, now),
    ...backfillSentences(report, now),
    writerSentence(report.writer, now),
    ...snapshotSentences(report, now),
    ...publicationSentences(report, now),
    rateSentence(report.learned_rate, now),
  ].flatMap(sentence => wrapText(sentence, width))
  const problems = [...causes, ...problemsOf(report, now)]
    .map(problem => verdictSentences(problemVerdict(problem, 0, now)))
    .flatMap(sentences => wrapText(sentences, width))
  return `${[...problems, ...lines, ...wrapText(hiddenColumnsSentence(left), width), ...reasons, ...lagLines(report.resources), files, ...sentences].join('\n')}\n`
}

function leftOutSentences(report: StatusReport): string[] {
  const names = report.resources.filter(row => isLeftOut(row, report)).map(({ resource }) => resource)
  if (names.length === 0) return []
  return [
    `Left out by sync.resources, --only or --skip, so not read: ${names.join(', ')}. Choose them there to read them.`,
  ]
}

/** Failing resources first, otherwise in the order of the catalogue. */
function failingFirst(resources: readonly ResourceReport[]): ResourceReport[] {
  const isFailing = ({ state }: ResourceReport) => state === 'failing'
  return [...resources.filter(isFailing), ...resources.filter(one => !isFailing(one))]
}

function resourceColumns(report: StatusReport, now: number): RankedColumn<ResourceReport>[] {
  /** When the resource is due; null when that is not known, as while reading is on hold, and when it is left out. */
  const nextDue = (row: ResourceReport): string | null =>
    row.state === 'on hold' || isLeftOut(row, report) ? null : row.next_run_at
  const number = (title: string, value: (row: ResourceReport) => number) => ({
    title,
    align: 'right' as const,
    cell: (row: ResourceReport) => wholeNumber(value(row)),
  })
  const counted = (title: string, value: (row: ResourceReport) => number) => ({
    ...number(title, value),
    isEmpty: (row: ResourceReport) => value(row) === 0,
  })
  return [
    { title: 'resource', cell: ({ resource }) => resource },
    { title: 'state', cell: ({ state }) => state },
    number('rows', row => row.rows_live),
    { ...counted('deleted', row => row.rows_deleted), rank: 4 },
    { ...counted('pending', row => row.pending_tasks), rank: 3 },
    { ...counted('rejected', row => row.rejected), rank: 1 },
    { title: 'newest', cell: row => relativeTime(row.newest_at, now), rank: 5 },
    { title: 'fresh as of', cell: row => relativeTime(row.fresh_as_of, now) },
    { title: 'complete as of', cell: row => relativeTime(row.complete_as_of, now) },
    // When the resource is due, not when it will be read: that depends on when parley runs.
    {
      title: 'due',
      cell: row => dueText(nextDue(row), now),
      isEmpty: row => nextDue(row) === null,
      rank: 2,
    },
  ]
}

export function hiddenColumnsSentence(titles: readonly string[]): string {
  if (titles.length === 0) return ''
  return `Hidden columns: ${titles.join(', ')}. Widen the terminal, or use --json.`
}

interface LagRow extends LagReport {
  resource: string
}

function lagLines(resources: readonly ResourceReport[]): string[] {
  const late = resources.flatMap(({ resource, arrival_lag: lag }): LagRow[] =>
    lag === null ? [] : [{ resource, ...lag }],
  )
  if (late.length === 0) return []
  const time = (title: string, seconds: (row: LagRow) => number): TableColumn<LagRow> => ({
    title,
    align: 'right',
    cell: row => (seconds(row) < 1 ? 'under 1 s' : durationText(seconds(row) * 1000)),
  })
  const lines = table<LagRow>(
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

function requestSentences({ requests }: StatusReport, now: number): string[] {
  if (requests.length === 0) return []
  const list = requests.map(one => `${one.kind} of ${one.resource} (${relativeTime(one.asked_at, now)})`)
  return [`Requested and not started yet: ${list.join(', ')}.`]
}

const STATE_TEXT: Readonly<Record<string, string>> = {
  pending: 'not read yet',
  empty: 'empty at the API',
  gone: 'gone (404)',
  withheld: 'withheld (403)',
}

/** Says how many e-mails have a text, or how many meetings have a transcript, and why the others have none. */
function stateSentences({ resource, by_state: counts }: ResourceReport): string[] {
  const wording = resourceNamed(resource).status.byState
  if (wording === undefined || counts === null) return []
  const others = Object.entries(counts).filter(([state, rows]) => state !== 'present' && rows > 0)
  if (others.length === 0) return []
  const all = Object.values(counts).reduce((sum, rows) => sum + rows, 0)
  const rest = others.map(([state, rows]) => `${wholeNumber(rows)} ${STATE_TEXT[state] ?? state}`).join(', ')
  return [
    `${wholeNumber(counts['present'] ?? 0)} of ${wholeNumber(all)} ${wording.rows} have a ${wording.part}; of the others: ${rest}.`,
  ]
}

function workspaceSentences({ workspace }: StatusReport): string[] {
  return workspace === null ? [] : [`Workspace: ${workspace.id}, read from ${workspace.base_url}.`]
}

function daemonSentences({ daemon }: StatusReport, now: number): string[] {
  if (daemon === null || daemon.since === null) return []
  const { state, since, until, exit_status: exit } = daemon
  if (state === 'stopped')
    return [
      `The daemon stopped ${relativeTime(since, now)}${exit ? ` (exit status ${exit})` : ' on request'}.`,
    ]
  const long = wholeSecondsText(now - Date.parse(since))
  return [`The daemon has been ${state} for ${long}.${resumeSentence(until, now)}`]
}

function backfillSentences({ backfill }: StatusReport, now: number): string[] {
  if (backfill === null) return []
  const { ended_at: at, exit_status: exit, reason } = backfill
  const how = reason === null ? ': complete' : ` (exit status ${exit}): ${reason.replace(/\.$/, '')}`
  return [`The last backfill ended ${relativeTime(at, now)}${how}.`]
}

function resumeSentence(until: string | null, now: number): string {
  if (until === null) return ''
  return Date.parse(until) <= now ? ' It is about to resume.' : ` It resumes ${relativeTime(until, now)}.`
}

function writerSentence(writer: WriterState | null, now: number): string {
  if (writer === null) return 'No process is writing the warehouse.'
  const who = `parley ${writer.command}, process ${writer.pid}`
  const since = `${relativeTime(writer.since, now)} (${clockText(writer.since, now)})`
  if (writer.running) return `${who}, is writing the warehouse. It started ${since}.`
  if (writer.died) {
    return `No process is writing the warehouse. The last one, ${who}, started ${since}, was killed, or the machine or disk failed. The next one continues where it stopped.`
  }
  return `No process is writing the warehouse. The last one was ${who}, started ${since}.`
}

function snapshotSentences({ snapshot }: StatusReport, now: number): string[] {
  if (snapshot?.made_at == null) return []
  const { made_at: at, path, bytes: size } = snapshot
  return [`The daemon took its last snapshot ${relativeTime(at, now)}: ${path}, ${sizeText(size ?? 0)}.`]
}

function publicationSentences({ publication }: StatusReport, now: number): string[] {
  if (publication === null) return []
  const { target, failing, due_at: due } = publication
  const published = `Published to ${target}: ${publishedText(publication)}.`
  if (failing === null || publication.is_late) return [published]
  return [`${published} The last try failed: ${withNextTry(failing.reason, due, now)}.`]
}
