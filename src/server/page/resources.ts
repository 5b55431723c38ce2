import { wholeNumber } from '../../base/whole-number.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import { shownReason } from '../../health/wording.ts'
import type { RecentRun } from '../../store/status/overview.ts'
import { isLeftOut, type ResourceReport, type StatusReport } from '../../store/status/report.ts'
import type { RunOutcome } from '../../store/sync/runs.ts'
import { countText, dueText } from '../../terminal/wording.ts'
import { type Html, html } from './html.ts'
import { ageCell, countCell, foreign, shortInstant } from './wording.ts'

/** @param at when the report was read */
export function resourcesSection(
  report: StatusReport,
  runs: ReadonlyMap<ResourceName, readonly RecentRun[]>,
  at: string,
): Html {
  const now = Date.parse(at)
  return html`<section id="resources" aria-labelledby="resources-title">
<h2 id="resources-title">Resources</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Table of resources">
<table>
<thead><tr><th scope="col">Resource<th scope="col">State<th scope="col" class="number">Rows<th scope="col">Fresh as of<th scope="col">Complete as of<th scope="col" class="number">Waiting<th scope="col" class="number">Rejected<th scope="col">Next due<th scope="col">Last runs</tr></thead>
<tbody>
${report.resources.map(row => resourceRow(row, runs.get(row.resource) ?? [], { now, report }))}</tbody>
</table>
</div>
<p class="legend">Fresh: the newest items were read then. Complete: everything published before then is here, whatever its date. Waiting: reads to come. Rejected: items that could not be stored.</p>
<p class="legend">Last runs, the newest first: ${LEGEND}</p>
</section>`
}

/**
 * The outcomes of runs; `running` is a run that has none yet. The paths are in a square of 8 units. Each outcome has a
 * different shape, so that colour is never the only difference.
 */
const RUNS: Readonly<Record<RunOutcome | 'running', { label: string; path: string }>> = {
  complete: { label: 'complete', path: 'M1 0h6v8h-6z' },
  failed: { label: 'failed', path: 'M0 1l1-1 3 3 3-3 1 1-3 3 3 3-1 1-3-3-3 3-1-1 3-3z' },
  stopped: { label: 'stopped', path: 'M1 4h6v4h-6z' },
  interrupted: { label: 'killed', path: 'M4 0l4 8h-8z' },
  unavailable: { label: 'unavailable', path: 'M0 3h8v2h-8z' },
  running: { label: 'running', path: 'M4 0l4 4-4 4-4-4z' },
}

/** The legend of the runs. The strips of runs repeat its shapes. */
const LEGEND = Object.entries(RUNS).map(
  ([name, { label, path }]) =>
    html`<span><svg viewBox="0 0 8 8" width="10" height="10" aria-hidden="true"><path id="run-${name}" class="run ${name}" d="${path}"/></svg> ${label}</span> `,
)

function resourceRow(
  row: ResourceReport,
  runs: readonly RecentRun[],
  { now, report }: { now: number; report: StatusReport },
): Html {
  const { state } = row
  const isNeverDue = state === 'on hold' || isLeftOut(row, report)
  const due = isNeverDue ? '–' : state === 'backfilling' ? 'now' : dueText(row.next_run_at, now)
  return html`<tr><th scope="row">${row.resource}<td><span class="state ${state.replace(' ', '-')}">${state}</span>${stateNote(row, report)}${countCell(row.rows_live)}<td>${ageCell(row.fresh_as_of, now)}<td>${ageCell(row.complete_as_of, now)}${countCell(row.pending_tasks)}${countCell(row.rejected)}<td>${due}<td>${runStrip(row.resource, runs)}</tr>
`
}

/** How far the first read is, or why the resource is in its state. */
function stateNote(row: ResourceReport, report: StatusReport): Html | false {
  const { resource, state, reason, deletions_held_since: heldSince } = row
  const { backfill_done: done, backfill_total: total } = row
  if (isLeftOut(row, report)) return html`<small>${foreign(reason ?? '')}</small>`
  if (state === 'backfilling' && total !== null && total > 0) {
    const share = `${wholeNumber(done)} of ${wholeNumber(total)}`
    return html`<small><progress max="${total}" value="${done}" aria-label="${resource}">${share}</progress> ${share}</small>`
  }
  if (heldSince !== null) return html`<small>deletions are held back</small>`
  const shown = shownReason(row, report)
  return shown !== null && html`<small>${foreign(shown)}</small>`
}

const STEP = 10
/** CSS pixels per unit of the drawing. */
const STRIP_SCALE = 1.25

function runStrip(resource: ResourceName, runs: readonly RecentRun[]): Html {
  if (runs.length === 0) return html`<span class="none">none yet</span>`
  const failed = runs.filter(({ outcome }) => outcome === 'failed').length
  // The newest comes first, since the table may be cut at the right.
  const summary = `The last ${runs.length} runs of ${resource}: ${failed === 0 ? 'none' : failed} failed`
  return html`<svg class="strip" role="img" viewBox="0 0 ${24 * STEP} 8" width="${24 * STEP * STRIP_SCALE}" height="${8 * STRIP_SCALE}" aria-label="${summary}">${[...runs].reverse().map(runShape)}</svg>`
}

function runShape(run: RecentRun, place: number): Html {
  const name = run.outcome ?? 'running'
  return html`<use href="#run-${name}" x="${place * STEP}"><title>${shortInstant(run.started_at)} ${RUNS[name].label}, ${countText(run.rows_changed, 'row')}</title></use>`
}
