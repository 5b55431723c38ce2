import type { Freshness } from './freshness.ts'
import type { Figure } from './report.ts'
import type { Measured, MeasureName } from './watcher.ts'

/** The kinds with a target. The others depend on these. */
const WANTED_QUICK: readonly MeasureName[] = [
  'new messages',
  'new activities',
  'new meetings with their title',
  'changed fields of CRM records',
]
const QUICK_MS = 7000
const HISTORY_SHARE = 0.5

export function freshnessFigures({ measures, asked, lanes, firstFreshMs, daemon }: Freshness): Figure[] {
  const plain = (measure: string, value: string): Figure => ({
    measure,
    value,
    wanted: '',
    reached: undefined,
  })
  const share = asked.history / Math.max(asked.answered, 1)
  const sent = asked.answered + asked.throttled
  const byLane = Object.entries(lanes).map(([lane, count]) => `${lane} ${count}`)
  return [
    ...measures.map(lagFigure),
    {
      measure: 'requests for what was there at the start',
      value: `${share.toFixed(2)} of ${asked.answered}${asked.unseen > 0 ? `, ${asked.unseen} not looked at` : ''}`,
      wanted: `≥ ${HISTORY_SHARE}`,
      reached: share >= HISTORY_SHARE,
    },
    plain('requests by lane', byLane.join(', ')),
    plain('requests/s that were let in', (asked.answered / asked.seconds).toFixed(1)),
    plain('refused as too many (429)', `${((100 * asked.throttled) / Math.max(sent, 1)).toFixed(1)} %`),
    plain('newest ends read after the start', seconds(firstFreshMs)),
    plain('CPU of the daemon', `${seconds(daemon.userMs + daemon.systemMs)} in ${seconds(daemon.wallMs)}`),
    plain('peak memory of the daemon', `${(daemon.peakKiB / 1024).toFixed(0)} MiB`),
  ]
}

function lagFigure({ measure, lags, missing }: Measured): Figure {
  // An item that never arrived counts as later than all others.
  const all = [...lags, ...Array.from({ length: missing }, () => Number.POSITIVE_INFINITY)]
  const quantile = (share: number) => all[Math.max(0, Math.ceil(share * all.length) - 1)] ?? Number.NaN
  const isJudged = WANTED_QUICK.includes(measure)
  return {
    measure: `${measure} (${all.length}${missing > 0 ? `, ${missing} missing` : ''})`,
    value: `p50 ${seconds(quantile(0.5))}, p95 ${seconds(quantile(0.95))}, max ${seconds(quantile(1))}`,
    wanted: isJudged ? `p95 ≤ ${QUICK_MS / 1000} s` : '',
    reached: isJudged ? quantile(0.95) <= QUICK_MS : undefined,
  }
}

function seconds(ms: number): string {
  return Number.isFinite(ms) ? `${(ms / 1000).toFixed(1)} s` : 'never'
}
