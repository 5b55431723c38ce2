import { wholeNumber } from '../../base/whole-number.ts'
import { rateSentence } from '../../health/wording.ts'
import type { TrafficHistory, TrafficSpan } from '../../store/status/overview.ts'
import type { RateReport } from '../../store/status/report.ts'
import { countText, rateText } from '../../terminal/wording.ts'
import { type Html, html } from './html.ts'
import { shortInstant } from './wording.ts'

interface Period {
  name: keyof TrafficHistory
  label: string
  /** The label at the start of the chart. */
  begin: string
  unit: string
  minutes: number
}

const PERIODS: readonly Period[] = [
  { name: 'hour', label: 'Last hour', begin: '1 h ago', unit: 'minute', minutes: 1 },
  { name: 'day', label: 'Last day', begin: '1 day ago', unit: 'quarter of an hour', minutes: 15 },
  { name: 'week', label: 'Last week', begin: '1 week ago', unit: 'two hours', minutes: 120 },
]

export function trafficSection(traffic: TrafficHistory, rate: RateReport | null, now: number): Html {
  return html`<section id="traffic" aria-labelledby="traffic-title">
<h2 id="traffic-title">Requests</h2>
<p>${rateSentence(rate, now)}</p>
<div class="charts">
${PERIODS.map(period => chart(period, traffic[period.name]))}</div>
<p class="legend"><span><svg viewBox="0 0 9 9" width="11" height="11" aria-hidden="true"><path class="bar" d="M2 0h5v9h-5z"/></svg> requests per minute</span> <span><svg viewBox="0 0 9 9" width="11" height="11" aria-hidden="true"><path class="limit" d="M0 4h9v1h-9z"/></svg> learned limit, where it is in the picture</span> <span><svg viewBox="0 0 9 9" width="11" height="11" aria-hidden="true"><path class="refused" d="M0 0h9l-4.5 9z"/></svg> refused as too many, or failed</span> <span><svg viewBox="0 0 9 9" width="11" height="11" aria-hidden="true"><path class="idle" d="M0 7h9v2h-9z"/></svg> parley did not run</span></p>
</section>`
}

function trafficSummary(spans: readonly TrafficSpan[]): string {
  if (spans.every(({ minutes }) => minutes === 0)) return 'No minute has been recorded yet.'
  const sum = (figure: 'requests' | 'throttled' | 'errors' | 'rows' | 'paused_seconds') =>
    spans.reduce((all, span) => all + span[figure], 0)
  return `${countText(sum('requests'), 'request')}, ${wholeNumber(sum('throttled'))} refused as too many, ${wholeNumber(sum('errors'))} failed, ${countText(sum('rows'), 'row')} written, ${wholeNumber(sum('paused_seconds'))} s of asked waits`
}

const HEIGHT = 60
const BAR = 4

function chart({ name, label, begin, unit, minutes }: Period, spans: readonly TrafficSpan[]): Html {
  const perMinute = ({ requests }: TrafficSpan) => requests / minutes
  const most = Math.max(1, ...spans.map(perMinute))
  const width = spans.length * BAR
  const bars = spans.flatMap((span, place) => {
    const height = Math.ceil((perMinute(span) / most) * HEIGHT)
    return height === 0 ? [] : [`M${place * BAR} ${HEIGHT - height}h${BAR - 1}v${height}h-${BAR - 1}z`]
  })
  const marks = (isMarked: (span: TrafficSpan) => boolean, path: string) =>
    spans.flatMap((span, place) => (isMarked(span) ? [`M${place * BAR} ${path}`] : [])).join('')
  const refused = marks(({ throttled, errors }) => throttled + errors > 0, `0h${BAR}l-2 5z`)
  const limits = spans.flatMap(({ rate }, place) => {
    const height = rate === null ? 0 : ((rate * 60) / most) * HEIGHT
    return height === 0 || height > HEIGHT
      ? []
      : [`M${place * BAR} ${Math.floor(HEIGHT - height)}h${BAR}v1h-${BAR}z`]
  })
  const idle = marks(({ minutes: seen }) => seen === 0, `${HEIGHT - 1}h${BAR}v1h-${BAR}z`)
  const summary = trafficSummary(spans)
  return html`<figure>
<figcaption>${label}${bars.length > 0 && `: at most ${wholeNumber(Math.ceil(most))} per minute`}</figcaption>
<svg role="img" aria-labelledby="${name}-title ${name}-desc" viewBox="0 0 ${width} ${HEIGHT}" preserveAspectRatio="none"><title id="${name}-title">${label}</title><desc id="${name}-desc">${summary}</desc>
<path class="idle" d="${idle}"/><path class="bar" d="${bars.join('')}"/><path class="limit" d="${limits.join('')}"/><path class="refused" d="${refused}"/></svg>
<p class="axis"><span>${begin}</span><span>now</span></p>
<p>${summary}</p>
<details><summary>By ${unit}</summary>
<div class="scroll" tabindex="0" role="region" aria-label="${label}">
<table class="dense"><thead><tr><th scope="col">From<th scope="col">Requests<th scope="col">Refused<th scope="col">Failed<th scope="col">Rows<th scope="col">In flight<th scope="col">Limit/s<th scope="col">Paused s</tr></thead><tbody>
${spans.filter(({ minutes: seen }) => seen > 0).map(spanRow)}</tbody></table>
</div></details>
</figure>
`
}

/** The markup is short, since the three tables have 240 rows. */
function spanRow(span: TrafficSpan): Html {
  const counts = [span.requests, span.throttled, span.errors, span.rows, span.in_flight]
  const cells = [
    ...counts.map(wholeNumber),
    span.rate === null ? '–' : rateText(span.rate),
    wholeNumber(span.paused_seconds),
  ]
  return html`<tr><th scope="row">${shortInstant(span.at)}${cells.map(cell => html`<td>${cell}`)}</tr>
`
}
