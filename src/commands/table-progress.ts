import type { TableProgress } from '../export/partitions.ts'
import { createLiveArea, isRedrawable } from '../terminal/live-area.ts'
import { countText, shortText } from '../terminal/wording.ts'
import type { CommandContext } from './base/command.ts'

/** Time between two updates on a terminal, and between two lines of other output, in ms. */
const REDRAW_MS = 200
const LINE_MS = 30_000

/** Shows on standard error which table a command is at. */
export function createTableProgress(
  { stderr, env }: Pick<CommandContext, 'stderr' | 'env'>,
  elapsed: () => number,
) {
  const area = isRedrawable(stderr, env) ? createLiveArea(stderr) : undefined
  let shownAt = elapsed()
  return {
    show({ table, done, tables, rows }: TableProgress) {
      if (elapsed() - shownAt < (area ? REDRAW_MS : LINE_MS)) return
      shownAt = elapsed()
      const line = `${shortTableName(table)}: ${countText(rows, 'row')} read, ${done} of ${countText(tables, 'table')} done`
      if (area) area.draw([line])
      else stderr.write(`${line}\n`)
    },
    end: () => area?.clear(),
  }
}

/** Longer names are shortened: CRM objects may have names of any length. */
const MAX_NAME_LENGTH = 40

export const shortTableName = (name: string): string => shortText(name, MAX_NAME_LENGTH)
