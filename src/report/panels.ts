import { type BarPanel, type ChartPanel, COLOURS, type LinePanel } from './chart.ts'
import type { BarsPlan, ChartPlan, LinesPlan, ReportRow } from './sections.ts'

/** Turns the rows of a question into what is drawn. Pure. */

/** @returns an empty list where there is nothing to draw */
export function panelsOf(plan: ChartPlan, rows: readonly ReportRow[]): ChartPanel[] {
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
