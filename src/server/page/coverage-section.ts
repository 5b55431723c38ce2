import { wholeNumber } from '../../base/whole-number.ts'
import {
  type CoverageCell,
  type CoverageGrid,
  type CoverageState,
  EARLIER,
  LATER,
} from '../../store/status/coverage.ts'
import { type Html, html } from './html.ts'

/** A heat map, resource × month, and the same numbers as a table. */

const STATES: Readonly<Record<CoverageState, { label: string; path: string }>> = {
  complete: { label: 'complete', path: 'M0 0h9v9h-9z' },
  reading: { label: 'being read', path: 'M0 9l9-9v9z' },
  'texts-missing': { label: 'texts missing', path: 'M0 0h9v9h-9zm3 3v3h3v-3z' },
  suspected: { label: 'suspected deletions', path: 'M4.5 0l4.5 4.5-4.5 4.5-4.5-4.5z' },
  empty: { label: 'nothing there', path: 'M3 4h3v1h-3z' },
}

const CELL = 11
const LABEL_WIDTH = 96
const HEAD_HEIGHT = 16
/** CSS pixels per unit of the drawing: larger where all months fit next to the names on a usual screen. */
const scaleOf = (months: number) => (months <= 48 ? 1.8 : 1.4)

export function coverageSection({ months, rows }: CoverageGrid): Html {
  const width = months.length * CELL
  const scale = scaleOf(months.length)
  // The last line has room for the part of letters below the line.
  const height = HEAD_HEIGHT + rows.length * CELL + 3
  return html`<section id="coverage" aria-labelledby="coverage-title">
<h2 id="coverage-title">Coverage by month</h2>
<div class="heat">
<svg class="names" aria-hidden="true" viewBox="0 0 ${LABEL_WIDTH} ${height}" width="${LABEL_WIDTH * scale}" height="${height * scale}">${rows.map(({ resource }, line) => html`<text x="0" y="${lineY(line) + 9}">${resource}</text>`)}</svg>
<div class="scroll" tabindex="0" role="region" aria-label="Heat map">
<svg class="cells" role="img" aria-labelledby="heat-title heat-desc" viewBox="0 0 ${width} ${height}" width="${width * scale}" height="${height * scale}">
<title id="heat-title">Coverage by resource and month</title>
<desc id="heat-desc">${summaryOf({ months, rows })}</desc>
${months.map((_, column) => yearLabel(months, column))}
${rows.map(heatRow)}</svg>
</div>
</div>
<p class="legend">${Object.entries(STATES).map(([name, { label, path }]) => html`<span><svg viewBox="0 0 9 9" width="11" height="11" aria-hidden="true"><path id="cell-${name}" class="cell ${name}" d="${path}"/></svg> ${label}</span> `)}</p>
<details><summary>The same as a table</summary>
<p class="legend">Rows of each month; − texts missing, ? suspected deletions, … being read.</p>
<div class="scroll" tabindex="0" role="region" aria-label="Rows by resource and month">
<table class="dense"><thead><tr><th scope="col">Month${rows.map(({ resource }) => html`<th scope="col">${resource}`)}</tr></thead>
<tbody>${months.map(
    (
      month,
      column,
    ) => html`<tr><th scope="row">${month}${rows.map(({ cells }) => html`<td>${tableText(cells[column])}`)}</tr>
`,
  )}</tbody></table>
</div></details>
</section>`
}

/** The markup is short, since ten years have a thousand cells. `live.js` names a cell by the numbers in the table. */
function heatRow({ cells }: CoverageGrid['rows'][number], line: number): Html {
  return html`<g transform="translate(0 ${lineY(line)})">${cells.map(heatCell)}</g>
`
}

const lineY = (line: number) => HEAD_HEIGHT + line * CELL

function heatCell({ state }: CoverageCell, column: number): Html {
  return html`<use href="#cell-${state}" x="${column * CELL}"/>`
}

/** A label is as wide as three months, so the first month has no label when a year begins within that width. */
const LABEL_MONTHS = 3

function yearLabel(months: readonly string[], column: number): Html | false {
  const beginsYear = (name: string) => name.endsWith('-01')
  const month = months[column] ?? ''
  const isFirst = column === (months[0] === EARLIER ? 1 : 0)
  const hasRoom = !months.slice(column + 1, column + 1 + LABEL_MONTHS).some(beginsYear)
  return (
    (beginsYear(month) || (isFirst && hasRoom)) &&
    html`<text class="year" x="${column * CELL}" y="10">${month.slice(0, 4)}</text>`
  )
}

/** The number of rows, then missing texts after `−` and suspected deletions after `?`. */
function tableText(cell: CoverageCell | undefined): string {
  if (cell === undefined) return ''
  const { state, rows, missing, suspected } = cell
  if (state === 'empty') return ''
  const rest = [
    ...(missing > 0 ? [`−${wholeNumber(missing)}`] : []),
    ...(suspected > 0 ? [`?${wholeNumber(suspected)}`] : []),
  ]
  return [wholeNumber(rows), ...rest, ...(state === 'reading' ? ['…'] : [])].join(' ')
}

function summaryOf({ months, rows }: CoverageGrid): string {
  const cells = rows.flatMap(row => row.cells)
  const counts = Object.entries(STATES).flatMap(([state, { label }]) => {
    const number = cells.filter(cell => cell.state === state).length
    return number === 0 ? [] : [`${number} ${label}`]
  })
  const named = months.filter(month => month !== EARLIER && month !== LATER)
  return `${rows.length} resources from ${named[0] ?? '–'} to ${named.at(-1) ?? '–'}. Cells: ${counts.join(', ')}.`
}
