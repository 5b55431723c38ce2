import type { App } from '../app.ts'
import { resourceNamed } from '../catalog.ts'
import type { Backfill, BackfillResult, ResourceResult } from '../engine/backfill.ts'
import { EXIT_STATUS, ParleyError, StopError } from '../errors.ts'
import { sizeText } from '../size-text.ts'
import { readStatus, type StatusRow } from '../store/status.ts'
import { remark, table } from './table.ts'
import { counted, duration, wholeNumber, wrap } from './wording.ts'

/** What a backfill did, for people and for programs. */
export interface Summary {
  database: { path: string; bytes: number }
  durationMs: number
  result: BackfillResult
  resources: readonly ResourceSummary[]
  /** What ended it before its time, other than a signal. */
  error: ParleyError | undefined
}

export interface ResourceSummary extends ResourceResult {
  /** The resource's row of `sync_status` after the run. */
  status: StatusRow
  /** Things that the API has not ready yet and that are asked for again. */
  waiting: number
  /** The mass-deletion guard holds back deletions. */
  isHeldBack: boolean
}

export interface SummaryDeps {
  app: Pick<App, 'store'>
  backfill: Backfill
  end: { result: BackfillResult } | { error: unknown }
  durationMs: number
}

/** Undefined when there is nothing to tell: the database failed, or nothing was read at all. */
export function summarize({ app, backfill, end, durationMs }: SummaryDeps): Summary | undefined {
  const error = 'error' in end ? end.error : undefined
  if (error !== undefined && !(error instanceof ParleyError)) return undefined
  if (error instanceof StopError && error.exitStatus === EXIT_STATUS.databaseUnavailable) return undefined
  const result = 'result' in end ? end.result : cutShort(backfill)
  if (error !== undefined && result.resources.every(({ rowsRead }) => rowsRead === 0)) return undefined
  const { store } = app
  const status = new Map(readStatus(store.db).map(row => [row.resource, row]))
  return {
    database: { path: store.db.name, bytes: sizeOf(store) },
    durationMs,
    result,
    error,
    resources: result.resources.flatMap(one => {
      const row = status.get(one.resource)
      if (row === undefined) return []
      const isHeldBack = store.state.get(one.resource).heldSince !== null
      return [{ ...one, status: row, waiting: waitingFor(store, one), isHeldBack }]
    }),
  }
}

/** What is known of a run that an error ended. */
function cutShort(backfill: Backfill): BackfillResult {
  const { requests, throttled, resources } = backfill.progress()
  return {
    complete: false,
    interrupted: false,
    requests,
    throttled,
    resources: resources.map(({ resource, counts, finished }) => ({
      resource,
      ...counts,
      outcome: finished ? 'complete' : 'stopped',
    })),
  }
}

function sizeOf({ db }: App['store']): number {
  const page = db.pragma('page_size', { simple: true }) as number
  return page * (db.pragma('page_count', { simple: true }) as number)
}

function waitingFor({ tasks }: App['store'], { resource }: ResourceResult): number {
  return Object.entries(resourceNamed(resource).feeds)
    .filter(([, { mode }]) => mode === 'item')
    .reduce((sum, [name]) => sum + tasks.countWaiting(`${resource}.${name}`), 0)
}

// ------------------------------------------------------------------------------------------------ programs

/** The object that `--json` prints. Names as in the warehouse's own tables. */
export function forPrograms({ database, durationMs, result, resources, error }: Summary) {
  return {
    complete: result.complete,
    interrupted: result.interrupted,
    duration_ms: Math.round(durationMs),
    requests: result.requests,
    throttled: result.throttled,
    database: database.path,
    database_bytes: database.bytes,
    error: error ? { code: error.code, message: error.message, hint: error.hint ?? null } : null,
    resources: resources.map(({ status, waiting, ...one }) => ({
      resource: one.resource,
      outcome: one.outcome,
      reason: one.reason ?? null,
      requests: one.requests,
      throttled: one.throttled,
      rows_read: one.rowsRead,
      rows_changed: one.rowsChanged,
      rows_deleted: one.rowsDeleted,
      rows_live: status.rows_live,
      pending: status.pending_tasks,
      waiting,
      rejected: status.rejected,
    })),
  }
}

// ------------------------------------------------------------------------------------------------ people

const OUTCOMES: Readonly<Record<ResourceResult['outcome'], string>> = {
  complete: 'read',
  stopped: 'not finished',
  failed: 'failed',
  unavailable: 'not offered',
  interrupted: 'not finished',
}

interface Line {
  name: string
  outcome: string
  live: number | undefined
  changed: number
  deleted: number
  requests: number
}

const USUAL_COLUMNS = 100

export function forPeople(summary: Summary, columns = USUAL_COLUMNS): string {
  const { resources, result } = summary
  const lines: Line[] = resources.map(one => ({
    name: one.resource,
    outcome: OUTCOMES[one.outcome],
    live: one.status.rows_live,
    changed: one.rowsChanged,
    deleted: one.rowsDeleted,
    requests: one.requests,
  }))
  const total = (value: (line: Line) => number) => lines.reduce((sum, line) => sum + value(line), 0)
  const totals: Line = {
    name: 'all',
    outcome: '',
    live: undefined,
    changed: total(({ changed }) => changed),
    deleted: total(({ deleted }) => deleted),
    requests: result.requests,
  }
  const number = (value: number | undefined) => (value === undefined ? '' : wholeNumber(value))
  const text = table<Line>(
    [
      { title: 'resource', cell: ({ name }) => name },
      { title: 'rows', align: 'right', cell: ({ live }) => number(live) },
      { title: 'new or changed', align: 'right', cell: ({ changed }) => number(changed) },
      { title: 'deleted', align: 'right', cell: ({ deleted }) => number(deleted) },
      { title: 'requests', align: 'right', cell: ({ requests }) => number(requests) },
      { title: '', cell: ({ outcome }) => outcome },
    ],
    [...lines, totals],
  )
  const reasons = resources.flatMap(({ resource, reason }) =>
    reason === undefined ? [] : remark(resource, reason, columns),
  )
  const said = sentences(summary).flatMap(sentence => wrap(sentence, columns - 1))
  return `${[...text, ...reasons, ...said].join('\n')}\n`
}

function sentences(summary: Summary): string[] {
  const { result, durationMs, database } = summary
  const throttled =
    result.throttled > 0 ? `, ${wholeNumber(result.throttled)} of them refused as too many (429)` : ''
  const took = `${counted(result.requests, 'request')} in ${duration(durationMs)}${throttled}.`
  return [
    `${headline(result)}: ${took}`,
    `The warehouse is ${database.path} (${sizeText(database.bytes)}).`,
    ...waitingSentence(summary),
    ...rejectedSentence(summary),
    ...nextStep(summary),
  ]
}

function headline({ complete, interrupted }: BackfillResult): string {
  if (complete) return 'Complete'
  return interrupted ? 'Stopped before the end' : 'Not complete'
}

function waitingSentence({ resources }: Summary): string[] {
  const waiting = resources.filter(one => one.waiting > 0)
  if (waiting.length === 0) return []
  const list = waiting.map(one => `${wholeNumber(one.waiting)} of ${one.resource}`).join(', ')
  return [`Not ready at the API yet, and asked for again by the next run: ${list}.`]
}

function rejectedSentence({ resources }: Summary): string[] {
  const rejected = resources.filter(({ status }) => status.rejected > 0)
  if (rejected.length === 0) return []
  const list = rejected.map(({ resource, status }) => `${wholeNumber(status.rejected)} of ${resource}`)
  return [`Could not be stored: ${list.join(', ')}; the table sync_rejects says why.`]
}

function nextStep({ result, resources, error }: Summary): string[] {
  if (result.complete || error !== undefined) return []
  const failed = resources.filter(({ outcome }) => outcome === 'failed')
  if (result.interrupted || failed.length === 0) {
    return ['Run parley backfill again and it goes on where it stopped.']
  }
  const names = (chosen: readonly ResourceSummary[]) => chosen.map(({ resource }) => resource).join(', ')
  const held = failed.filter(({ isHeldBack }) => isHeldBack)
  const unread = failed.filter(({ isHeldBack }) => !isHeldBack)
  return [
    ...(held.length === 0
      ? []
      : [
          `Deletions are held back: ${names(held)}. If the rows are really gone, do nothing; if not, check api.key and api.workspace_id before the next run.`,
        ]),
    ...(unread.length === 0
      ? []
      : [
          `Could not be read to the end: ${names(unread)}. What was read is kept; run parley backfill again to try the rest.`,
        ]),
  ]
}
