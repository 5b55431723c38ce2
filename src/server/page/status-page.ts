import type { HealthProblem } from '../../health/problems.ts'
import type { HealthVerdict } from '../../health/verdict.ts'
import { PROBLEM_LABELS } from '../../health/wording.ts'
import { coverageSection } from './coverage-section.ts'
import { type FileView, fileSection } from './file.ts'
import { type Html, html } from './html.ts'
import { resourcesSection } from './resources.ts'
import { todaySection } from './today.ts'
import { trafficSection } from './traffic.ts'
import { problemsSection, verdictBanner, verdictIcon } from './verdict-banner.ts'
import { foreign, shortInstant } from './wording.ts'

/** The page of the status server: names, counts and times, never content. Pure. */

export interface PageView extends FileView {
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
  const { report, overview, verdict, problems, at } = view
  const { workspaceId } = view
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
