import type { Environment } from '../config.ts'
import type { Output } from './command.ts'

/** The last lines of a terminal, drawn again in place while whole lines are written above them. */
export interface LiveArea {
  /** Lines that stay, such as the log's; each must end with a line feed. */
  write(text: string): void
  /** Puts these lines in place of those drawn before. */
  draw(lines: readonly string[]): void
  /** Takes the drawn lines away. */
  clear(): void
  /** Characters that a line has room for, and lines that may be drawn. */
  size(): { columns: number; rows: number }
}

/** Whether lines can be drawn again here. */
export function isLive(stream: Output, env: Environment): boolean {
  return stream.isTTY === true && env['TERM'] !== 'dumb'
}

const USUAL_COLUMNS = 80
const USUAL_ROWS = 24

const clearBelow = '\u001b[J'
const clearRest = '\u001b[K'
const up = (lines: number) => (lines > 0 ? `\r\u001b[${lines}A` : '\r')

/** Every change is one write, and a line is written over before its rest is cleared, so that nothing flickers. */
export function createLiveArea(stream: Output): LiveArea {
  let drawn: readonly string[] = []
  const columns = () => stream.columns || USUAL_COLUMNS

  /** Lines that became too long when the terminal was made narrower take several. */
  const height = () =>
    drawn.reduce((sum, line) => sum + Math.max(1, Math.ceil(visibleLength(line) / columns())), 0)
  const block = () => drawn.map(line => `${line}${clearRest}\n`).join('')

  return {
    write(text) {
      if (drawn.length === 0) stream.write(text)
      else stream.write(`${up(height())}${clearBelow}${text}${block()}`)
    },
    draw(lines) {
      const home = up(height())
      drawn = lines
      stream.write(`${home}${block()}${clearBelow}`)
    },
    clear() {
      if (drawn.length > 0) stream.write(`${up(height())}${clearBelow}`)
      drawn = []
    },
    // The last column stays free: some terminals begin a new line as soon as it is filled.
    size: () => ({ columns: columns() - 1, rows: (stream.rows || USUAL_ROWS) - 1 }),
  }
}

const COLOURS = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g')

export function visibleLength(line: string): number {
  return line.replace(COLOURS, '').length
}
