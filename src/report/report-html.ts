import { type Html, html } from '../server/page/html.ts'
import { foreign, instantText } from '../server/page/wording.ts'
import { countText } from '../terminal/wording.ts'
import { type BarPanel, type ChartPanel, COLOURS, chartHtml, type LinePanel, numberText } from './chart.ts'
import type { ReportFigures, ReportSection } from './read-report.ts'
import { type BarsPlan, type ChartPlan, type LinesPlan, REPORT_SECTIONS, type ReportRow } from './sections.ts'
import { STYLE } from './style.ts'

/** The mark of a report, by which parley knows that a later report may replace the file. */
const GENERATOR = 'parley report'

export const isReport = (html: string): boolean =>
  html.includes(`<meta name="generator" content="${GENERATOR}">`)

/** The report as one file, which needs no other. Pure. */
export function reportHtml(report: ReportFigures): string {
  const title = `Report of ${report.workspace ?? 'an empty warehouse'}`
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="${GENERATOR}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<header>
<h1>${foreign(title)}</h1>
${completeness(report)}
${tablesState(report)}
${guesses(report)}
</header>
<nav aria-label="Sections"><ul>${report.sections.map(({ question, title: name }) => html`<li><a href="#${question}">${name}</a></li>`)}</ul></nav>
${report.sections.map(section)}
<footer><p>The figures are the answers of questions in SQL that come with parley. Each stands below its figures.</p></footer>
</main>
</body>
</html>
`
  return String(page)
}

function completeness({
  complete_as_of: at,
  completeness: text,
  made_at: made,
  time_zone: zone,
}: ReportFigures): Html {
  const [before, after] = at === null ? [] : text.split(at)
  return html`<p>${at === null ? html`<span class="warn">${text}</span>` : html`${before}${instantText(at)} UTC${after}`} The report was made at ${instantText(made)} UTC.${zone !== null && html` Days, weeks and months are those of ${foreign(zone)}.`}</p>`
}

function tablesState({ tables: { state, notes } }: ReportFigures): Html {
  if (state === 'up to date' && notes.length === 0) return html`<p>The tables for reports are up to date.</p>`
  return html`<ul class="notes">${notes.map(note => html`<li>${foreign(note)}</li>`)}</ul>`
}

function guesses({ guesses: all }: ReportFigures): Html | false {
  if (all.length === 0) return false
  return html`<details id="guesses">
<summary>${countText(all.length, 'guess', 'guesses')}, since the settings do not say what fields, stages and domains mean</summary>
<p>Settings of the same names replace them. <code>parley doctor</code> prints them as lines for the settings file.</p>
${scroll(
  'Guesses',
  table(
    'What is guessed, and why',
    ['name', 'value', 'why'],
    all.map(({ name, value, why }) => ({ name, value, why })),
  ),
)}
</details>`
}

function section({
  question,
  asks,
  title,
  sentence,
  missing,
  notes,
  columns,
  rows,
  sql,
}: ReportSection): Html {
  const shown = columns.filter(column => !column.endsWith('_id') && rows.some(row => row[column] !== null))
  const plan = REPORT_SECTIONS.find(each => each.question === question)
  const panels = plan?.charts.flatMap(chart => panelsOf(chart, rows)) ?? []
  const caption =
    rows.length > MOST_ROWS
      ? `${title} in numbers: the first ${MOST_ROWS} of ${countText(rows.length, 'row')}. The question below shows all.`
      : `${title} in numbers`
  return html`<section id="${question}" aria-labelledby="${question}-heading">
<h2 id="${question}-heading">${title}</h2>
<p class="pale">${asks}</p>
${sentence !== null && html`<p class="figure">${foreign(sentence)}</p>`}
${missing !== null && html`<p class="warn">${foreign(missing)}</p>`}
${notes.length > 0 && html`<ul class="notes">${notes.map(note => html`<li>${note}</li>`)}</ul>`}
${panels.map((panel, place) => chartHtml(panel, `${question}-${place}`))}
${rows.length > 0 && scroll(title, table(caption, shown, rows.slice(0, MOST_ROWS)))}
<details><summary>The question in SQL: ${question}</summary>
<pre tabindex="0"><code>${sql}</code></pre>
</details>
</section>
`
}

/** More rows would make the file slow to open. */
const MOST_ROWS = 100

const scroll = (label: string, content: Html): Html =>
  html`<div class="scroll" tabindex="0" role="region" aria-label="${label}, as a table">${content}</div>`

function table(caption: string, columns: readonly string[], rows: readonly ReportRow[]): Html {
  const kinds = columns.map(column => kindOf(rows, column))
  return html`<table>
<caption>${caption}</caption>
<thead><tr>${columns.map((column, place) => html`<th scope="col"${kinds[place]}>${column.replaceAll('_', ' ')}</th>`)}</tr></thead>
<tbody>
${rows.map(
  row => html`<tr>${columns.map((column, place) => html`<td${kinds[place]}>${cell(row[column] ?? null, column)}</td>`)}</tr>
`,
)}</tbody>
</table>`
}

/** The class of a cell: numbers are aligned right, and days are not broken. */
function kindOf(rows: readonly ReportRow[], column: string): Html | '' {
  const known = rows.map(row => row[column]).find(value => value != null)
  if (typeof known === 'number' && !isFlag(column)) return html` class="number"`
  return /^\d{4}-\d\d/.test(String(known)) ? html` class="day"` : ''
}

const isFlag = (column: string): boolean => column.startsWith('is_')

function cell(value: ReportRow[string] | null, column: string): Html | string {
  if (value == null) return html`<span class="pale">–</span>`
  if (isFlag(column)) return Number(value) === 0 ? 'no' : 'yes'
  return typeof value === 'number' ? numberText(value) : foreign(value)
}

/** What is drawn of the rows of a question. Pure. @returns an empty list where there is nothing to draw */
function panelsOf(plan: ChartPlan, rows: readonly ReportRow[]): ChartPanel[] {
  if (rows.length === 0) return []
  return plan.kind === 'bars' ? barPanels(plan, rows) : [linePanel(plan, rows)]
}

/** More bars would not fit a page. The table has the other rows. */
const MOST_BARS = 15

function barPanels(plan: BarsPlan, all: readonly ReportRow[]): BarPanel[] {
  const { panel } = plan
  const rows = all.filter(plan.has)
  const names = panel === undefined ? [undefined] : distinct(rows.map(row => row[panel]))
  return names.map(name => {
    const own = panel === undefined ? rows : rows.filter(row => row[panel] === name)
    const drawn = own.slice(0, MOST_BARS)
    const parts = panel === undefined ? '' : `, ${name ?? `no ${panel}`}`
    const cut = own.length > drawn.length ? ` (the first ${drawn.length} of ${own.length})` : ''
    return {
      kind: 'bars',
      title: `${plan.title}${parts}${cut}`,
      parts: [...Object.values(plan.parts), ...(plan.whole ? [plan.whole.rest] : [])],
      bars: drawn.map(row => barOf(plan, row)),
    }
  })
}

function barOf({ label, detail, parts, whole, text }: BarsPlan, row: ReportRow): BarPanel['bars'][number] {
  const values = Object.keys(parts).map(column => Number(row[column] ?? 0))
  const rest = whole && Number(row[whole.column] ?? 0) - values.reduce((sum, value) => sum + value, 0)
  return {
    label: `${label.map(column => row[column] ?? `no ${column}`).join(' / ')}${detail ? ` (${detail(row)})` : ''}`,
    values: rest === undefined ? values : [...values, rest],
    text: text(row),
  }
}

function linePanel(
  { title, x, series, value, names, unit }: LinesPlan,
  rows: readonly ReportRow[],
): LinePanel {
  const points = distinct(rows.map(row => String(row[x]))).sort()
  const line = (name: string, of: readonly ReportRow[], column: string): Line => {
    const byPoint = new Map(of.map(row => [String(row[x]), row[column] ?? null]))
    const values = points.map(point => byPoint.get(point) ?? null)
    return { name, values: values.map(cell => (cell === null ? null : Number(cell))) }
  }
  if (series === undefined || value === undefined)
    return {
      kind: 'lines',
      title,
      unit,
      points,
      lines: Object.entries(names).map(([column, name]) => line(name, rows, column)),
    }
  const all = distinct([...Object.keys(names), ...rows.map(row => row[series])]).map(of => {
    const name = String(of ?? `no ${series}`)
    return line(
      names[name] ?? name,
      rows.filter(row => row[series] === of),
      value,
    )
  })
  return { kind: 'lines', title, unit, points, lines: withOthers(all) }
}

type Line = LinePanel['lines'][number]

/** The largest lines in the given order, and the sum of the others, so that each has a colour. */
function withOthers(all: readonly Line[]): readonly Line[] {
  if (all.length <= COLOURS) return all
  const total = ({ values }: Line) => values.reduce<number>((sum, value) => sum + (value ?? 0), 0)
  const others = all.toSorted((one, other) => total(other) - total(one)).slice(COLOURS - 1)
  const values =
    others[0]?.values.map((_, at) => others.reduce((sum, line) => sum + (line.values[at] ?? 0), 0)) ?? []
  return [...all.filter(line => !others.includes(line)), { name: `${others.length} others`, values }]
}

const distinct = <T>(values: readonly T[]): T[] => [...new Set(values)]
