import type { App } from '../../app/app.ts'
import { EXIT_STATUS, ParleyError, StopError } from '../../base/errors.ts'
import { sizeText } from '../../base/size-text.ts'
import { wholeNumber } from '../../base/whole-number.ts'
import { resourceNamed } from '../../catalog/catalog.ts'
import { itemsOf } from '../../catalog/feeds.ts'
import type { Backfill, BackfillResult, ResourceResult } from '../../engine/run/backfill.ts'
import { databaseBytes } from '../../store/database/whole-copy.ts'
import { readStatus } from '../../store/status/status.ts'
import { META } from '../../store/sync/meta.ts'
import { indentedNote, table } from '../../terminal/table.ts'
import { countText, dateTimeText, durationText, wrapText } from '../../terminal/wording.ts'

/** The result of a backfill, printed as text and with `--json`. */
type Summary = NonNullable<ReturnType<typeof summarize>>

interface SummaryDeps {
  /** Sentences about resources that were left out without being named. */
  leftOut: readonly string[]
  durationMs: number
  app: Pick<App, 'store'>
  backfill: Backfill
  end: { result: BackfillResult } | { error: unknown }
}

/**
 * @returns undefined when the database failed, when an error ended the run before any row was read, and after an error
 *   that is not a ParleyError
 */
export function summarize({ app, backfill, leftOut, end, durationMs }: SummaryDeps) {
  const error = 'error' in end ? end.error : undefined
  if (error !== undefined && !(error instanceof ParleyError)) return undefined
  if (error instanceof StopError && error.exitStatus === EXIT_STATUS.databaseUnavailable) return undefined
  const result = backfill.result()
  if (result === undefined) return undefined
  if (error !== undefined && result.resources.every(({ rowsRead }) => rowsRead === 0)) return undefined
  const { store } = app
  const status = new Map(readStatus(store.db).map(row => [row.resource, row]))
  return {
    database: { path: store.db.name, bytes: databaseBytes(store.db) },
    durationMs,
    result,
    /** The error that ended the backfill early; undefined when it ended normally or by a signal. */
    error,
    leftOut,
    resources: result.resources.flatMap(one => {
      const row = status.get(one.resource)
      if (row === undefined) return []
      return [
        {
          ...one,
          status: row,
          waiting: countWaiting(store, one),
          isHeldBack: store.state.get(one.resource).heldSince !== null,
        },
      ]
    }),
  }
}

/** Number of items that are not ready in the API yet. The next run requests them again. */
function countWaiting({ tasks, state }: App['store'], { resource }: ResourceResult): number {
  const since = state.meta(META.since) ?? null
  return itemsOf(resourceNamed(resource)).reduce(
    (sum, { id, feed }) => sum + tasks.countWaiting(id, feed.boundBySince ? since : null),
    0,
  )
}

// ------------------------------------------------------------------------------------------------ JSON

/** The object that `--json` prints. The keys are in snake_case, like the column names of the warehouse. */
export function summaryJson({ database, durationMs, result, resources, error }: Summary) {
  return {
    complete: result.complete,
    interrupted: result.interrupted,
    continued_from: result.continuedFrom ?? null,
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

// ------------------------------------------------------------------------------------------------ text

const OUTCOME_TEXT: Readonly<Record<ResourceResult['outcome'], string>> = {
  complete: 'read',
  stopped: 'not finished',
  failed: 'failed',
  unavailable: 'not offered',
  interrupted: 'not finished',
}

interface SummaryLine {
  name: string
  outcome: string
  live: number | undefined
  changed: number
  deleted: number
  requests: number
}

const USUAL_COLUMNS = 100

export function summaryText(summary: Summary, columns = USUAL_COLUMNS): string {
  const { resources, result } = summary
  const lines: SummaryLine[] = resources.map(one => ({
    name: one.resource,
    outcome: OUTCOME_TEXT[one.outcome],
    live: one.status.rows_live,
    changed: one.rowsChanged,
    deleted: one.rowsDeleted,
    requests: one.requests,
  }))
  const total = (value: (line: SummaryLine) => number) => lines.reduce((sum, line) => sum + value(line), 0)
  const totals: SummaryLine = {
    name: 'all',
    outcome: '',
    live: undefined,
    changed: total(({ changed }) => changed),
    deleted: total(({ deleted }) => deleted),
    requests: result.requests,
  }
  const number = (value: number | undefined) => (value === undefined ? '' : wholeNumber(value))
  const text = table<SummaryLine>(
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
    reason === undefined ? [] : indentedNote(resource, reason, columns),
  )
  const said = summarySentences(summary).flatMap(sentence => wrapText(sentence, columns - 1))
  return `${[...text, ...reasons, ...said].join('\n')}\n`
}

function summarySentences(summary: Summary): string[] {
  const { result, durationMs, database } = summary
  const throttled = result.throttled > 0 ? `, ${wholeNumber(result.throttled)} of them throttled (429)` : ''
  const took = `${countText(result.requests, 'request')} in ${durationText(durationMs)}${throttled}.`
  return [
    `${headline(result)}: ${took}`,
    `Warehouse: ${database.path} (${sizeText(database.bytes)}).`,
    ...summary.leftOut,
    ...waitingSentences(summary),
    ...rejectedSentences(summary),
    ...nextStepSentences(summary),
  ]
}

function headline({ complete, interrupted }: BackfillResult): string {
  if (complete) return 'Complete'
  return interrupted ? 'Stopped early' : 'Not complete'
}

function waitingSentences({ resources }: Summary): string[] {
  const waiting = resources.filter(one => one.waiting > 0)
  if (waiting.length === 0) return []
  const list = waiting.map(one => `${wholeNumber(one.waiting)} of ${one.resource}`).join(', ')
  return [`Not ready in the API yet: ${list}. The next run requests them again.`]
}

function rejectedSentences({ resources }: Summary): string[] {
  const rejected = resources.filter(({ status }) => status.rejected > 0)
  if (rejected.length === 0) return []
  const list = rejected.map(({ resource, status }) => `${wholeNumber(status.rejected)} of ${resource}`)
  return [`Not stored: ${list.join(', ')}. The table sync_rejects gives the reasons.`]
}

function continuedSentences({ continuedFrom }: BackfillResult): string[] {
  if (continuedFrom === undefined) return []
  const asOf = dateTimeText(continuedFrom)
  return [
    `Complete as of ${asOf}, when the interrupted run began that this one has continued. Run parley backfill again to bring the warehouse up to date.`,
  ]
}

function nextStepSentences({ result, resources, error }: Summary): string[] {
  if (result.complete) return continuedSentences(result)
  const failed = resources.filter(({ outcome }) => outcome === 'failed' || outcome === 'stopped')
  if (result.interrupted || failed.length === 0) {
    return ['Run parley backfill again to continue where it stopped.']
  }
  const names = (chosen: Summary['resources']) => chosen.map(({ resource }) => resource).join(', ')
  const held = failed.filter(({ isHeldBack }) => isHeldBack)
  const unread = failed.filter(({ isHeldBack }) => !isHeldBack)
  // The hint of an error says what to do first.
  const again = error === undefined ? ' Run parley backfill again to read the rest.' : ''
  return [
    ...(held.length === 0
      ? []
      : [
          `Deletions are held back: ${names(held)}. If these rows still exist, check api.key and api.workspace_id before the next run.`,
        ]),
    ...(unread.length === 0
      ? []
      : [`Not read completely: ${names(unread)}. The rows read so far are stored.${again}`]),
  ]
}
