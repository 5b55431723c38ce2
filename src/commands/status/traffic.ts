import { wholeNumber } from '../../base/whole-number.ts'
import { limitSentence, NOTHING_WRITTEN, trafficSummary } from '../../health/wording.ts'
import type { Overview } from '../../store/status/overview.ts'
import type { RateReport } from '../../store/status/report.ts'
import type { TrafficSpan } from '../../store/status/traffic-history.ts'
import { sparkline } from '../../terminal/sparkline.ts'
import { cutToWidth } from '../../terminal/text-width.ts'
import { foldText } from '../../terminal/wording.ts'
import { type DisplayScreen, painted } from './view.ts'

/** What the lines of the chart begin with. The chart has a character for each minute. */
const LABEL = 'Requests/min '
const REFUSALS_LABEL = 'refused/failed '

/** The requests of each of the last minutes, and below them the minutes with refusals or failures, if any. */
export function trafficChart(hour: readonly TrafficSpan[], screen: DisplayScreen): string[] {
  const width = REFUSALS_LABEL.length
  const minutes = hour.slice(-Math.max(1, screen.columns - width))
  const bars = sparkline(minutes.map(span => (span.minutes === 0 ? undefined : span.requests)))
  const refusals = minutes.map(({ throttled, errors }) => (throttled + errors > 0 ? 'x' : ' ')).join('')
  const chart = cutToWidth(`${LABEL.padEnd(width)}${bars}`, screen.columns)
  if (refusals.trim() === '') return [chart]
  const marks = cutToWidth(`${REFUSALS_LABEL}${refusals}`.trimEnd(), screen.columns)
  return [chart, painted('yellow', marks, screen)]
}

export function trafficFigures(hour: readonly TrafficSpan[], { columns }: DisplayScreen): string[] {
  const most = Math.max(0, ...hour.map(({ requests }) => requests))
  const busiest = most === 0 ? '' : `; at most ${wholeNumber(most)} in a minute`
  return foldText(`Last hour: ${trafficSummary(hour)}${busiest}`, columns)
}

export function limitLines(rate: RateReport | null, { columns }: DisplayScreen): string[] {
  return foldText(limitSentence(rate), columns)
}

export function todayLines({ today }: Pick<Overview, 'today'>, { columns }: DisplayScreen): string[] {
  if (today.length === 0) return foldText(NOTHING_WRITTEN, columns)
  const sum = (figure: 'rows_new' | 'rows_changed' | 'rows_deleted') =>
    wholeNumber(today.reduce((all, day) => all + day[figure], 0))
  const text = `Today (UTC): ${sum('rows_new')} rows new, ${sum('rows_changed')} changed, ${sum('rows_deleted')} deleted`
  return foldText(text, columns)
}
