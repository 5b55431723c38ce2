import { sizeText } from '../../base/size-text.ts'
import { withoutStop } from '../../health/problems.ts'
import { fileSizesText, publishedText } from '../../health/wording.ts'
import type { Overview } from '../../store/status/overview.ts'
import type { PublicationReport, SnapshotReport, StatusReport } from '../../store/status/report.ts'
import { countText, durationText } from '../../terminal/wording.ts'
import { type Html, html } from './html.ts'
import { foreign, instantText } from './wording.ts'

export interface FileView {
  report: StatusReport
  overview: Overview
  /** Whether the report is at `/report`. */
  hasReport: boolean
  version: string
  /** How long the process that serves the page has run, in ms. */
  uptimeMs: number
}

export function fileSection({ report, overview, hasReport, version, uptimeMs }: FileView): Html {
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
