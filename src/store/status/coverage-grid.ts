import type { ResourceName } from '../../declare/resource-names.ts'

/** Which months of which resource are complete. Pure. */

export interface CoverageGrid {
  /** Consecutive months such as `2026-03`, oldest first; `EARLIER` before them and `LATER` after them where needed. */
  months: readonly string[]
  rows: readonly { resource: ResourceName; cells: readonly CoverageCell[] }[]
}

export interface CoverageCell {
  month: string
  state: CoverageState
  rows: number
  /** Texts or transcripts that are not read yet. */
  missing: number
  suspected: number
}

/** `empty`: read completely, and there is nothing. */
export type CoverageState = 'complete' | 'reading' | 'texts-missing' | 'suspected' | 'empty'

/** What the database says about one resource. */
export interface CoverageFigures {
  resource: ResourceName
  months: readonly MonthFigures[]
  /** Spans of event time that were never read to their end; a bound is null where the span has none. */
  unread: readonly { from: string | null; to: string | null }[]
  /** True when the resource was never complete and has no spans that would say what is missing. */
  isUnknown: boolean
}

export interface MonthFigures {
  /** The first seven characters of the event time; empty for rows without one. */
  month: string
  rows: number
  missing: number
  /** First reads that are due. */
  unread: number
  suspected: number
}

export const EARLIER = 'earlier'
export const LATER = 'later'

const MOST_MONTHS = 120

/** @param thisMonth such as `2026-03` */
export function coverageGrid(figures: readonly CoverageFigures[], thisMonth: string): CoverageGrid {
  const oldestShown = monthsBefore(thisMonth, MOST_MONTHS - 1)
  const known = figures.flatMap(({ months }) => months.map(({ month }) => month))
  const dated = known.filter(month => isMonth(month) && month >= oldestShown && month <= thisMonth).sort()
  const shown = monthsUpTo(dated[0] ?? thisMonth, thisMonth)
  const placeOf = (month: string) => {
    if (!isMonth(month) || month < (shown[0] ?? thisMonth)) return EARLIER
    return month > thisMonth ? LATER : month
  }
  const places = new Set(known.map(placeOf))
  const months = [...(places.has(EARLIER) ? [EARLIER] : []), ...shown, ...(places.has(LATER) ? [LATER] : [])]
  return {
    months,
    rows: figures.map(of => ({
      resource: of.resource,
      cells: months.map(month => cellOf(of, month, placeOf)),
    })),
  }
}

function cellOf(of: CoverageFigures, month: string, placeOf: (month: string) => string): CoverageCell {
  const here = of.months.filter(figures => placeOf(figures.month) === month)
  const sum = (figure: 'rows' | 'missing' | 'unread' | 'suspected') =>
    here.reduce((all, figures) => all + figures[figure], 0)
  const [rows, missing, suspected] = [sum('rows'), sum('missing'), sum('suspected')]
  const isUnread = sum('unread') > 0 || of.unread.some(span => touches(span, month))
  const isReading = isUnread || (of.isUnknown && rows === 0)
  return { month, state: stateOf({ rows, missing, suspected, isReading }), rows, missing, suspected }
}

function stateOf({
  rows,
  missing,
  suspected,
  isReading,
}: Pick<CoverageCell, 'rows' | 'missing' | 'suspected'> & { isReading: boolean }): CoverageState {
  if (suspected > 0) return 'suspected'
  if (isReading) return 'reading'
  if (missing > 0) return 'texts-missing'
  return rows === 0 ? 'empty' : 'complete'
}

function touches({ from, to }: CoverageFigures['unread'][number], month: string): boolean {
  if (month === EARLIER) return from === null
  if (month === LATER) return to === null
  // Instants and months compare as texts: '2026-03' < '2026-03-01T…' < '2026-03~'.
  return (from ?? '') < `${month}~` && (to ?? '~') > `${month}-01T00:00:00.000Z`
}

const isMonth = (text: string) => /^\d{4}-(0[1-9]|1[0-2])$/.test(text)

function monthsBefore(month: string, number: number): string {
  const [year = 0, of = 1] = month.split('-').map(Number)
  return new Date(Date.UTC(year, of - 1 - number, 1)).toISOString().slice(0, month.length)
}

function monthsUpTo(first: string, last: string): string[] {
  const months = [last]
  for (let month = last; month > first; ) {
    month = monthsBefore(month, 1)
    months.unshift(month)
  }
  return months
}
