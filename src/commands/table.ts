import { harmless } from '../harmless.ts'
import { textWidth } from './text-width.ts'
import { wrap } from './wording.ts'

export interface TableColumn<Row> {
  title: string
  align?: 'left' | 'right'
  cell(row: Row): string
  /** Left out of the table when this says so of every row. */
  isIdle?(row: Row): boolean
}

/** Lines of aligned text, the titles first. Cells are shown without colours. Pure. */
export function table<Row>(columns: readonly TableColumn<Row>[], rows: readonly Row[]): string[] {
  const shown = columns.filter(({ isIdle }) => isIdle === undefined || !rows.every(isIdle))
  const body = rows.map(row => shown.map(({ cell }) => harmless(cell(row))))
  return aligned(
    [shown.map(({ title }) => title), ...body],
    shown.map(({ align }) => align ?? 'left'),
  )
}

function aligned(rows: readonly (readonly string[])[], aligns: readonly ('left' | 'right')[]): string[] {
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

/** `name: sentence`, wrapped to the width and indented below its name. Pure. */
export function remark(name: string, sentence: string, width: number): string[] {
  return wrap(`${name}: ${sentence}`, Math.max(width - 4, 20)).map((line, index) =>
    index === 0 ? `  ${line}` : `    ${line}`,
  )
}
