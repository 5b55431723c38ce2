import { safeText } from '../base/safe-text.ts'
import { textWidth } from './text-width.ts'
import { wrapText } from './wording.ts'

export interface TableColumn<Row> {
  title: string
  align?: 'left' | 'right'
  cell(row: Row): string
  /** The column is omitted when this returns true for every row. */
  isEmpty?(row: Row): boolean
}

/** Aligned lines, the titles first. Control characters in cells, colours included, are replaced. Pure. */
export function table<Row>(columns: readonly TableColumn<Row>[], rows: readonly Row[]): string[] {
  const shown = columns.filter(({ isEmpty }) => isEmpty === undefined || !rows.every(isEmpty))
  const body = rows.map(row => shown.map(({ cell }) => safeText(cell(row))))
  return alignedLines(
    [shown.map(({ title }) => title), ...body],
    shown.map(({ align }) => align ?? 'left'),
  )
}

export interface RankedColumn<Row> extends TableColumn<Row> {
  /** Only optional columns have a rank. Columns of lower rank get the available width first. */
  rank?: number
}

/** The table with as many columns as fit the width, and the titles of the omitted columns. Pure. */
export function fitTable<Row>(
  columns: readonly RankedColumn<Row>[],
  rows: readonly Row[],
  width: number,
): { lines: string[]; left: string[] } {
  const busy = columns.filter(({ isEmpty }) => isEmpty === undefined || !rows.every(isEmpty))
  const isNeeded = ({ rank }: RankedColumn<Row>) => rank === undefined
  const draw = (chosen: ReadonlySet<RankedColumn<Row>>) =>
    table(
      busy.filter(column => chosen.has(column)),
      rows,
    )
  let chosen: ReadonlySet<RankedColumn<Row>> = new Set(busy.filter(isNeeded))
  for (const column of busy.filter(one => !isNeeded(one)).sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0))) {
    const more = new Set([...chosen, column])
    if (Math.max(...draw(more).map(textWidth)) <= width) chosen = more
  }
  return { lines: draw(chosen), left: busy.filter(one => !chosen.has(one)).map(({ title }) => title) }
}

function alignedLines(rows: readonly (readonly string[])[], aligns: readonly ('left' | 'right')[]): string[] {
  const widths = rows.reduce<number[]>(
    (widest, cells) => cells.map((cell, index) => Math.max(textWidth(cell), widest[index] ?? 0)),
    [],
  )
  const pad = (cell: string, index: number) => {
    const rest = ' '.repeat((widths[index] ?? 0) - textWidth(cell))
    return aligns[index] === 'right' ? rest + cell : cell + rest
  }
  return rows.map(cells => cells.map(pad).join('  ').trimEnd())
}

/** `name: sentence`, indented and wrapped to the width. Pure. */
export function indentedNote(name: string, sentence: string, width: number): string[] {
  return wrapText(`${name}: ${sentence}`, Math.max(width - 4, 20)).map((line, index) =>
    index === 0 ? `  ${line}` : `    ${line}`,
  )
}
