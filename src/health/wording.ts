import { sizeText } from '../base/size-text.ts'
import { wholeNumber } from '../base/whole-number.ts'
import {
  isLeftOut,
  type PublicationReport,
  type RateReport,
  type ResourceReport,
  type StatusReport,
} from '../store/status/report.ts'
import { countText, durationText, rateText, relativeTime } from '../terminal/wording.ts'
import type { ProblemKind } from './problems.ts'

/** Texts that the status page, `parley status` and the problems share. Pure. */

export const PROBLEM_LABELS: Readonly<Record<ProblemKind, string>> = {
  act: 'Needs you',
  warn: 'Needs a look',
  wait: 'Waiting',
}

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

/**
 * Why a resource is in its state; null when the state says enough, as during the first read. What concerns several
 * resources is said once for all: that the API is closed, and that settings leave them out.
 */
export function shownReason(
  row: Pick<ResourceReport, 'resource' | 'state' | 'reason'>,
  report: Pick<StatusReport, 'api' | 'chosen_resources'>,
): string | null {
  const { state, reason } = row
  const isSaid = isLeftOut(row, report) || (state === 'on hold' && report.api !== null)
  return state === 'backfilling' || isSaid ? null : reason
}

/** What the API allows, as parley has learned it from refusals. */
export function rateSentence(rate: RateReport | null, now: number): string {
  if (rate === null) return 'The rate limit of the API is not known yet.'
  const { requests_per_second: speed, concurrency, limited_by: limit, learned_at: at } = rate
  if (limit === null) return 'The API has not limited the rate of all requests so far.'
  const allows = {
    rate: `about ${rateText(speed)} requests/s`,
    concurrency: `${wholeNumber(concurrency)} requests at once`,
    both: `about ${rateText(speed)} requests/s, ${wholeNumber(concurrency)} at once`,
  }[limit]
  const age = at === null ? '' : `, measured ${relativeTime(at, now)}`
  return `The API throttles requests (429). It allows ${allows}${age}.`
}
