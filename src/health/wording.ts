import { sizeText } from '../base/size-text.ts'
import { wholeNumber } from '../base/whole-number.ts'
import type { RecentRun, TrafficSpan } from '../store/status/overview.ts'
import type { PublicationReport, RateReport, ResourceReport, StatusReport } from '../store/status/report.ts'
import { countText, durationText, rateText } from '../terminal/wording.ts'
import type { ProblemKind } from './problems.ts'

/** Texts that the page of the status server and `parley status --watch` share. Pure. */

export const PROBLEM_LABELS: Readonly<Record<ProblemKind, string>> = {
  act: 'Needs you',
  warn: 'Needs a look',
  wait: 'Waiting',
}

export const RUN_NAMES = ['complete', 'failed', 'stopped', 'interrupted', 'unavailable', 'running'] as const

/** The outcome of a run, or that it has none yet. */
export type RunName = (typeof RUN_NAMES)[number]

export const runName = ({ outcome }: RecentRun): RunName => outcome ?? 'running'

export const RUN_LABELS: Readonly<Record<RunName, string>> = {
  complete: 'complete',
  failed: 'failed',
  stopped: 'stopped',
  interrupted: 'killed',
  unavailable: 'unavailable',
  running: 'running',
}

/** When the resource is due; null when that is not known. While nothing is read, it is not known. */
export const nextDue = ({ state, next_run_at }: ResourceReport): string | null =>
  state === 'on hold' ? null : next_run_at

/** Such as `1.5 GB, and 3.1 MB in its -wal` */
export function fileSizesText({
  database_bytes: bytes,
  wal_bytes: wal,
}: Pick<StatusReport, 'database_bytes' | 'wal_bytes'>): string {
  return `${sizeText(bytes)}, and ${sizeText(wal)} in its -wal`
}

/** Such as `publication 12, 3 min old: 2 files, 40 kB written`, without its target and its failures. */
export function publishedText({ last, lag_seconds: lag }: PublicationReport): string {
  if (last === null || lag === null) return 'none yet'
  const written = `${countText(last.files_written, 'file')}, ${sizeText(last.bytes_written)} written`
  return `publication ${last.publication}, ${durationText(Math.max(0, lag) * 1000)} old: ${written}`
}

export function limitSentence(rate: RateReport | null): string {
  if (rate === null) return 'No limit of the API is known yet.'
  const { requests_per_second: perSecond, concurrency, limited_by: by } = rate
  const pace = `parley sends up to ${rateText(perSecond)} requests per second, ${concurrency} at once`
  return by === null
    ? `${pace}; the API has refused none of them.`
    : `${pace}, as learned from refusals of the API.`
}

export function trafficSummary(spans: readonly TrafficSpan[]): string {
  if (spans.every(({ minutes }) => minutes === 0)) return 'No minute has been recorded yet.'
  const sum = (figure: 'requests' | 'throttled' | 'errors' | 'rows' | 'paused_seconds') =>
    wholeNumber(spans.reduce((all, span) => all + span[figure], 0))
  return `${sum('requests')} requests, ${sum('throttled')} refused as too many, ${sum('errors')} failed, ${sum('rows')} rows written, ${sum('paused_seconds')} s of asked waits`
}

/** `sync_days` is written once a minute. */
export const NOTHING_WRITTEN = 'No row was written today (UTC), up to the last full minute.'

/** Such as `3 ok, 1 unavailable` */
export function stateCounts(resources: readonly Pick<ResourceReport, 'state'>[]): string {
  const states = [...new Set(resources.map(({ state }) => state))].sort()
  const counts = states.map(state => `${resources.filter(row => row.state === state).length} ${state}`)
  return counts.join(', ')
}
