import { wholeNumber } from '../base/whole-number.ts'
import { type Html, html } from '../server/page/html.ts'
import { foreign } from '../server/page/wording.ts'
import { cutToWidth } from '../terminal/text-width.ts'

/**
 * The charts of a report as SVG. Lengths are in per cent of the width, so that a chart fits a phone while its letters keep
 * their size. Colours and dashes are in style.ts. Pure.
 */

export type ChartPanel = BarPanel | LinePanel

export interface BarPanel {
  kind: 'bars'
  title: string
  /** The names of the parts of each bar; one name for bars without parts. */
  parts: readonly string[]
  bars: readonly { label: string; values: readonly number[]; text: string }[]
}

export interface LinePanel {
  kind: 'lines'
  title: string
  /** In the plural; empty for a number without a unit. */
  unit: string
  /** The labels of the points, in order and at equal distances. */
  points: readonly string[]
  /** Null where there is no value: the line has a gap. */
  lines: readonly { name: string; values: readonly (number | null)[] }[]
}

/** @param id unique in the document */
export function chartHtml(panel: ChartPanel, id: string): Html {
  const names = panel.kind === 'bars' ? panel.parts : panel.lines.map(({ name }) => name)
  const drawn = panel.kind === 'bars' ? drawnBars(panel) : drawnLines(panel)
  return html`<figure>
<figcaption>${foreign(panel.title)}</figcaption>
<svg class="chart" role="img" aria-labelledby="${id}-title ${id}-desc" width="100%" height="${drawn.height}">
<title id="${id}-title">${panel.title}</title>
<desc id="${id}-desc">${descriptionOf(panel)}</desc>
${drawn.shapes}</svg>
${names.length > 1 && legend(names, panel.kind)}</figure>
`
}

/** The number of colours for parts and lines. After the last colour, the first one follows. */
export const COLOURS = 6

const colourOf = (place: number) => place % COLOURS

function legend(names: readonly string[], kind: ChartPanel['kind']): Html {
  const mark = (place: number) =>
    kind === 'bars'
      ? html`<rect class="f${colourOf(place)}" y="1" width="24" height="8"/>`
      : html`<line class="l${colourOf(place)}" y1="5" x2="24" y2="5"/>`
  return html`<ul class="legend">${names.map((name, place) => html`<li><svg width="24" height="10" aria-hidden="true">${mark(place)}</svg> ${foreign(name)}</li>`)}</ul>
`
}

interface Drawn {
  height: number
  shapes: readonly Html[]
}

const per = (share: number): string => `${Math.round(share * 10_000) / 100}%`

const BAR_STEP = 38
const BAR_HEIGHT = 12
/** The bars' share of the width. The rest is for the text at each bar. */
const BAR_SHARE = 0.7
/** The longest label in columns of a terminal, which are about as wide as a letter. */
const LABEL_WIDTH = 40

function drawnBars({ bars }: BarPanel): Drawn {
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + Math.max(0, value), 0)
  const most = Math.max(...bars.map(({ values }) => sum(values)), 0)
  const shapes = bars.map(({ label, values, text }, line) => {
    const y = line * BAR_STEP + 18
    const width = (amount: number) => per(most === 0 ? 0 : (BAR_SHARE * amount) / most)
    const parts = values.map(
      (value, part) =>
        html`<rect class="f${colourOf(part)}" x="${width(sum(values.slice(0, part)))}" y="${y}" width="${width(Math.max(0, value))}" height="${BAR_HEIGHT}"/>`,
    )
    return html`<g><title>${label}: ${text}</title><text y="${y - 5}">${cutToWidth(label, LABEL_WIDTH)}</text><rect class="track" y="${y}" width="${per(BAR_SHARE)}" height="${BAR_HEIGHT}"/>${parts}<text x="${per(BAR_SHARE)}" dx="8" y="${y + BAR_HEIGHT - 2}">${text}</text></g>
`
  })
  return { height: Math.max(1, bars.length) * BAR_STEP, shapes }
}

const PLOT_TOP = 18
const PLOT_HEIGHT = 160
/** Points do not touch the edges. */
const EDGE = 0.02
/** There is room for this many dates on a screen, and on a phone. */
const LABELS = { wide: 7, narrow: 2 }

function drawnLines({ points, lines, unit }: LinePanel): Drawn {
  const top = roundedUp(Math.max(0, ...lines.flatMap(({ values }) => values.map(value => value ?? 0))))
  const x = (at: number) => (points.length < 2 ? 0.5 : EDGE + (at / (points.length - 1)) * (1 - 2 * EDGE))
  const y = (value: number) => PLOT_TOP + PLOT_HEIGHT * (1 - value / top)
  const grid = [0, top / 2, top].map(
    value => html`<line class="grid" x1="0" x2="100%" y1="${y(value)}" y2="${y(value)}"/><text class="tick" x="0" y="${y(value) - 4}">${value === top ? withUnit(value, unit) : numberText(value)}</text>
`,
  )
  const wide = Math.ceil(points.length / LABELS.wide)
  const narrow = wide * Math.ceil(points.length / wide / LABELS.narrow)
  const labels = points.flatMap((point, at) => {
    const fromEnd = points.length - 1 - at
    if (fromEnd % wide !== 0) return []
    const anchor =
      at === 0 && points.length > 1 ? 'first' : fromEnd === 0 && points.length > 1 ? 'last' : 'middle'
    const place = fromEnd % narrow === 0 ? '' : ' wide'
    return html`<text class="tick ${anchor}${place}" x="${per(x(at))}" y="${PLOT_TOP + PLOT_HEIGHT + 16}">${point}</text>
`
  })
  const drawn = lines.map(({ name, values }, line) => {
    const marks = values.flatMap((value, at) =>
      value === null
        ? []
        : html`<circle class="f${colourOf(line)}" cx="${per(x(at))}" cy="${y(value)}" r="3"><title>${name}, ${points[at]}: ${withUnit(value, unit)}</title></circle>`,
    )
    const paths = runsOf(values).map(
      run =>
        html`<polyline class="l${colourOf(line)}" points="${run.map(([at, value]) => `${(x(at) * 100).toFixed(2)},${y(value).toFixed(1)}`).join(' ')}"/>`,
    )
    return html`<svg viewBox="0 0 100 ${PLOT_TOP + PLOT_HEIGHT}" width="100%" height="${PLOT_TOP + PLOT_HEIGHT}" preserveAspectRatio="none">${paths}</svg>${marks}
`
  })
  return { height: PLOT_TOP + PLOT_HEIGHT + 22, shapes: [...grid, ...labels, ...drawn] }
}

/** The values between two gaps, with their places. */
function runsOf(values: readonly (number | null)[]): (readonly [at: number, value: number])[][] {
  const runs: (readonly [number, number])[][] = [[]]
  for (const [at, value] of values.entries()) {
    if (value === null) runs.push([])
    else runs.at(-1)?.push([at, value])
  }
  return runs.filter(({ length }) => length > 1)
}

/** The end of an axis: a number that is at least the value, and whose half has few digits. */
function roundedUp(value: number): number {
  if (value <= 0) return 1
  const size = 10 ** Math.floor(Math.log10(value))
  const steps = size >= 10 ? [1, 2, 3, 4, 5, 6, 8] : [1, 2, 4, 6, 8]
  return steps.map(step => step * size).find(step => step >= value) ?? 10 * size
}

/** A number as text: below 1,000 with at most one decimal, else without. */
export const numberText = (value: number): string =>
  wholeNumber(Math.abs(value) < 1000 ? Math.round(value * 10) / 10 : Math.round(value))

function withUnit(value: number, unit: string): string {
  const text = numberText(value)
  return `${text} ${text === '1' ? unit.replace(/s$/, '') : unit}`.trimEnd()
}

/** The text for people who do not see the chart. The table has all numbers. */
function descriptionOf(panel: ChartPanel): string {
  if (panel.kind === 'bars') {
    const named = panel.bars.slice(0, MOST_NAMED).map(({ label, text }) => `${label}: ${text}`)
    return [...named, ...(panel.bars.length > MOST_NAMED ? ['the others are in the table'] : [])].join('; ')
  }
  const { lines, points, unit } = panel
  return lines
    .map(({ name, values }) => {
      const [at, value] = [...values.entries()].findLast(([, each]) => each !== null) ?? []
      return value == null || at === undefined
        ? `${name}: no value`
        : `${name}: ${withUnit(value, unit)} in ${points[at]}, the last of ${points.length}`
    })
    .join('; ')
}

const MOST_NAMED = 5
