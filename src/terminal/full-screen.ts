import type { Output } from './output.ts'

/** A display that fills the terminal. What was on the terminal before comes back at the end. */
export interface FullScreen {
  open(): void
  /** Replaces everything. The lines must fit `size`. */
  draw(lines: readonly string[]): void
  close(): void
  /** The width of a line in columns, and the number of lines that fit. */
  size(): { columns: number; rows: number }
}

const USUAL_COLUMNS = 80
const USUAL_ROWS = 24

/**
 * The alternate screen, a hidden cursor, and no line wrapping: where a terminal draws a character wider than
 * `textWidth` says, the line is cut at the edge and the lines below stay in place.
 */
const OPEN = '\u001b[?1049h\u001b[?25l\u001b[?7l'
// The line feed is for a terminal without an alternate screen: there the prompt follows the last line.
const CLOSE = '\r\n\u001b[?7h\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const CLEAR_REST_OF_LINE = '\u001b[K'
const CLEAR_BELOW = '\u001b[J'

/** To avoid flicker, each change is one write, and a line is overwritten before the rest of it is cleared. */
export function createFullScreen(stream: Output): FullScreen {
  return {
    open: () => void stream.write(OPEN),
    // After the last line there is no line feed: it would scroll.
    draw: lines =>
      void stream.write(
        `${HOME}${lines.join(`${CLEAR_REST_OF_LINE}\r\n`)}${CLEAR_REST_OF_LINE}${CLEAR_BELOW}`,
      ),
    close: () => void stream.write(CLOSE),
    // The last column stays free: clearing the rest of a full line would clear its last character.
    size: () => ({ columns: (stream.columns || USUAL_COLUMNS) - 1, rows: stream.rows || USUAL_ROWS }),
  }
}
