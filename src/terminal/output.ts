import { styleText } from 'node:util'
import type { Environment } from '../config/loaded-settings.ts'

/** The part of a writable stream that commands use. */
export interface Output {
  write(text: string): unknown
  isTTY?: boolean
  columns?: number
  rows?: number
}

/** Whether the stream is a terminal that shows colours, and the user has not set `NO_COLOR`. */
export function hasColours(stream: Output, env: Environment): boolean {
  return stream.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb'
}

/**
 * The text in a colour or style of `util.styleText`. Node's own check of the stream is off: it looks at standard output
 * only, while `hasColours` has checked the stream that the text goes to.
 */
export function styledText(style: Parameters<typeof styleText>[0], text: string): string {
  return styleText(style, text, { validateStream: false })
}
