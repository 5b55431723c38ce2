import { sizeText } from '../../base/size-text.ts'
import { type LoadingProgress, loadedShare } from '../../health/loading.ts'
import { type HealthProblem, withoutStop } from '../../health/problems.ts'
import type { HealthVerdict } from '../../health/verdict.ts'
import { fileSizesText, PROBLEM_LABELS, publishedText } from '../../health/wording.ts'
import type { DriftedField, Overview } from '../../store/status/overview.ts'
import type {
  PublicationReport,
  ResourceReport,
  SnapshotReport,
  StatusReport,
} from '../../store/status/report.ts'
import { clockText, countText, durationText } from '../../terminal/wording.ts'
import { coverageSection } from './coverage-section.ts'
import { type Html, html } from './html.ts'
import { resourcesSection } from './resources.ts'
import { trafficSection } from './traffic.ts'
import { countCell, foreign, instantText, shortInstant } from './wording.ts'

/** The page of the status server: names, counts and times, never content. Pure. */

export interface PageView {
  report: StatusReport
  overview: Overview
  /** Whether the report is at `/report`. */
  hasReport: boolean
  version: string
  /** How long the process that serves the page has run, in ms. */
  uptimeMs: number
  /** The workspace id in the settings. */
  workspaceId: string
  verdict: HealthVerdict
  /** All problems, the most serious first. */
  problems: readonly HealthProblem[]
  /** When the view was read. */
  at: string
}

/** Elements that `live.js` replaces when they change have an `id`. */
export function statusPageHtml(view: PageView): string {
  const { report, overview, verdict, problems, at, workspaceId } = view
  return documentHtml({ verdict, workspaceId }, [
    html`<p id="clock">parley · ${foreign(workspaceId)} · ${shortInstant(at)} UTC</p>`,
    verdictBanner(verdict),
    problemsSection(problems, Date.parse(at)),
    resourcesSection(report, overview.runs, at),
    coverageSection(overview.coverage),
    trafficSection(overview.traffic, report.learned_rate, Date.parse(at)),
    todaySection(report, overview),
    fileSection(view),
    html`<footer id="footer">All times are in UTC. Names, counts and times only.<noscript> Reload the page to update it.</noscript></footer>`,
  ])
}

/** The page while the warehouse cannot be read. */
export function errorPageHtml(head: DocumentHead): string {
  return documentHtml(head, [verdictBanner(head.verdict)])
}

const TITLES: Readonly<Record<HealthVerdict['kind'], string>> = {
  ok: 'Up to date',
  loading: 'Loading history',
  ...PROBLEM_LABELS,
}

interface DocumentHead {
  verdict: HealthVerdict
  workspaceId: string
}

function documentHtml({ verdict, workspaceId }: DocumentHead, parts: readonly Html[]): string {
  const icon = `data:image/svg+xml,${encodeURIComponent(String(verdictIcon(verdict.kind)))}`
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${TITLES[verdict.kind]} – ${workspaceId} – parley</title>
<link rel="icon" href="${icon}">
<link rel="stylesheet" href="style.css">
<script type="module" src="live.js"></script>
</head>
<body>
<main>
${parts}
</main>
</body>
</html>
`
  return String(page)
}

/** A circle with a tick, an arrow, two bars or an exclamation mark: readable without its colour, next to the text. */
const SHAPES: Readonly<Record<HealthVerdict['kind'], { colour: string; path: string }>> = {
  ok: { colour: '#1a7f37', path: 'M7 12.5l3.5 3.5 6.5-8' },
  loading: { colour: '#0b5cad', path: 'M12 6v11M7.5 12.5L12 17l4.5-4.5' },
  wait: { colour: '#8a5a00', path: 'M9.5 7v10M14.5 7v10' },
  warn: { colour: '#8a5a00', path: 'M12 6v7.5M12 17v.5' },
  act: { colour: '#b42318', path: 'M12 6v7.5M12 17v.5' },
}

function verdictIcon(kind: HealthVerdict['kind']): Html {
  const { colour, path } = SHAPES[kind]
  return html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="40" height="40" aria-hidden="true"><circle cx="12" cy="12" r="11" fill="${colour}"/><path d="${path}" fill="none" stroke="#fff" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"/></svg>`
}

function verdictBanner({ kind, text, detail, todo, loading }: HealthVerdict): Html {
  return html`<header id="verdict" class="verdict ${kind}">
${verdictIcon(kind)}
<div role="status"><h1>${foreign(text)}</h1>${todo !== null && html`<p class="todo">${foreign(todo)}</p>`}${detail !== null && html`<p>${foreign(detail)}.</p>`}${loading && loadingBar(loading)}</div>
</header>`
}

function loadingBar(loading: LoadingProgress): Html {
  const value = Math.floor(loadedShare(loading) * 100)
  return html`<progress max="100" value="${value}" aria-label="Loading history">${value} %</progress>`
}

/** All problems but the first, which the banner shows. */
function problemsSection(problems: readonly HealthProblem[], now: number): Html {
  const others = problems.slice(1)
  if (others.length === 0) return html`<section id="problems" hidden></section>`
  return html`<section id="problems" aria-labelledby="problems-title">
<h2 id="problems-title">${countText(others.length, 'more problem')}</h2>
<ul>${others.map(problem => problemItem(problem, now))}</ul>
</section>`
}

function problemItem({ kind, what, detail, todo, since }: HealthProblem, now: number): Html {
  const from = since === null ? '' : ` since ${clockText(since, now)}`
  return html`<li class="${kind}"><strong>${PROBLEM_LABELS[kind]}${from}:</strong> ${foreign(what)}${detail !== null && html`: ${foreign(detail)}`}. ${foreign(todo)}</li>
`
}

function todaySection({ resources }: StatusReport, { today, drift }: Overview): Html {
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

function fileSection({ report, overview, hasReport, version, uptimeMs }: PageView): Html {
  const { database, snapshot, publication, workspace } = report
  const entries: [string, Html | string][] = [
    ['Database', foreign(database)],
    ['Size', fileSizesText(report)],
    ['Workspace', workspace === null ? 'not known yet' : foreign(`${workspace.id} at ${workspace.base_url}`)],
    ['Snapshot', snapshot === null ? 'none' : snapshotText(snapshot)],
    ...(publication === null ? [] : [['Publication', publicationText(publication)] as [string, Html]]),
    ...(hasReport ? [['Report', REPORT_LINK] as [string, Html]] : []),
    ...(overview.guesses > 0
      ? [['Guesses', guessesText(overview.guesses, hasReport)] as [string, Html]]
      : []),
    ['Version', `parley ${version}`],
    ['Running for', durationText(uptimeMs)],
  ]
  return html`<section id="file" aria-labelledby="file-title">
<h2 id="file-title">The file</h2>
<dl>${entries.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
</section>`
}

const REPORT_LINK = html`<a href="report">pipeline, activity, reply times and more</a>`

/** The report, or a command, explains what reports rest on. */
function guessesText(guesses: number, hasReport: boolean): Html {
  const count = countText(guesses, 'guess', 'guesses')
  return hasReport
    ? html`<a href="report#guesses">${count} for reports, with their reasons</a>`
    : html`${count} for reports; <code>parley doctor</code> lists them, and <code>parley report</code> explains them`
}

function snapshotText({ made_at: madeAt, bytes, failed_at: failedAt }: SnapshotReport): Html {
  return html`${madeAt === null ? 'none yet' : html`${instantText(madeAt)}${bytes !== null && `, ${sizeText(bytes)}`}`}${failedAt !== null && html`; failed at ${instantText(failedAt)}`}`
}

function publicationText(publication: PublicationReport): Html {
  const { target, failing } = publication
  return html`${publishedText(publication)}, in ${foreign(target)}${failing !== null && html`; failing since ${instantText(failing.since)}: ${foreign(withoutStop(failing.reason))}`}`
}
