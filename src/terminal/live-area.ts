import { stripVTControlCharacters } from 'node:util'
import type { Environment } from '../config/loaded-settings.ts'
import type { Output } from './output.ts'
import { textWidth } from './text-width.ts'

/** The last lines of a terminal. They are redrawn in place while log lines are written above them. */
export type LiveArea = ReturnType<typeof createLiveArea>

/** Whether the stream is a terminal that can move its cursor. */
export function isRedrawable(stream: Output, env: Environment): boolean {
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}

const USUAL_COLUMNS = 80
const USUAL_ROWS = 24

const CLEAR_BELOW = '\u001b[J'
const CLEAR_REST_OF_LINE = '\u001b[K'
const cursorUp = (lines: number) => (lines > 0 ? `\r\u001b[${lines}A` : '\r')

/** To avoid flicker, each change is one write, and a line is overwritten before the rest of it is cleared. */
export function createLiveArea(stream: Output) {
  let drawn: readonly string[] = []
  const columns = () => stream.columns || USUAL_COLUMNS

  /** The number of terminal lines in use. A line that became too long in a narrowed terminal takes several. */
  const height = () =>
    drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(visibleWidth(line) / columns())), 0)
  const block = () => drawn.map(line => `${line}${CLEAR_REST_OF_LINE}\n`).join('')

  return {
    /** Writes permanent lines, such as log lines, above the area. The text must end with a line feed. */
    write(text: string) {
      if (drawn.length === 0) stream.write(text)
      else stream.write(`${cursorUp(height())}${CLEAR_BELOW}${text}${block()}`)
    },
    draw(lines: readonly string[]) {
      const home = cursorUp(height())
      drawn = lines
      stream.write(`${home}${block()}${CLEAR_BELOW}`)
    },
    clear() {
      if (drawn.length > 0) stream.write(`${cursorUp(height())}${CLEAR_BELOW}`)
      drawn = []
    },
    /**
     * The width of a line in characters, and the number of lines that fit. The last column stays free: some terminals
     * start a new line as soon as it is filled.
     */
    size: () => ({ columns: columns() - 1, rows: (stream.rows || USUAL_ROWS) - 1 }),
  }
}

const visibleWidth = (line: string): number => textWidth(stripVTControlCharacters(line))
