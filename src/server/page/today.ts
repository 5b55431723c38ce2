import type { DriftedField, Overview } from '../../store/status/overview.ts'
import type { ResourceReport, StatusReport } from '../../store/status/report.ts'
import { countText, durationText } from '../../terminal/wording.ts'
import { type Html, html } from './html.ts'
import { countCell, foreign } from './wording.ts'

export function todaySection({ resources }: StatusReport, { today, drift }: Overview): Html {
  const late = resources.filter(({ arrival_lag: lag }) => lag !== null)
  return html`<section id="today" aria-labelledby="today-title">
<h2 id="today-title">Today</h2>
${writtenTable(today)}
${late.length > 0 && lagTable(late)}
${drift.length > 0 && driftList(drift)}
</section>`
}

/** `sync_days` is written once a minute. */
const NOTHING_WRITTEN = 'No row was written today (UTC), up to the last full minute.'

function writtenTable(today: Overview['today']): Html {
  if (today.length === 0) return html`<p>${NOTHING_WRITTEN}</p>`
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Rows written today"><table>
<thead><tr><th scope="col">Resource<th scope="col" class="number">New<th scope="col" class="number">Changed<th scope="col" class="number">Deleted</tr></thead>
<tbody>${today.map(
    day => html`<tr><th scope="row">${day.resource}${countCell(day.rows_new)}${countCell(day.rows_changed)}${countCell(day.rows_deleted)}</tr>
`,
  )}</tbody></table></div>`
}

/** How late rows appeared after their event time. */
function lagTable(late: readonly ResourceReport[]): Html {
  return html`<h3>Rows that appeared late</h3>
<div class="scroll" tabindex="0" role="region" aria-label="Rows that appeared late"><table>
<thead><tr><th scope="col">Resource<th scope="col" class="number">Rows<th scope="col">Half within<th scope="col">99 % within<th scope="col">Longest</tr></thead>
<tbody>${late.map(lagRow)}</tbody></table></div>`
}

function lagRow({ resource, arrival_lag: lag }: ResourceReport): Html | false {
  const time = (seconds: number) => durationText(seconds * 1000)
  return (
    lag !== null &&
    html`<tr><th scope="row">${resource}${countCell(lag.rows)}<td>${time(lag.median_seconds)}<td>${time(lag.p99_seconds)}<td>${time(lag.longest_seconds)}</tr>
`
  )
}

const MOST_FIELDS = 50

function driftList(drift: readonly DriftedField[]): Html {
  const rest = drift.length - MOST_FIELDS
  return html`<h3>Fields that differ from the declared ones</h3>
<details><summary>${countText(drift.length, 'field')}</summary><ul>${drift.slice(0, MOST_FIELDS).map(({ table, field, reason }) => html`<li>${table}.${foreign(field)}: ${reason}</li>`)}${rest > 0 && html`<li>and ${rest} more</li>`}</ul></details>`
}
