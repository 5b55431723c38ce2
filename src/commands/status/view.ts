import type { StopError } from '../../base/errors.ts'
import type { Overview } from '../../store/status/overview.ts'
import type { StatusReport } from '../../store/status/report.ts'
import { styledText } from '../../terminal/colours.ts'

/** What `parley status --watch` has read last. Times are in ms since the epoch. */
export type WatchedStatus =
  | { state: 'unread'; path: string }
  | { state: 'read'; report: StatusReport; overview: Overview; at: number }
  | { state: 'unreadable'; error: StopError; since: number }

/** The terminal that the lines are for. */
export interface DisplayScreen {
  columns: number
  rows: number
  colour: boolean
  /** In ms since the epoch. */
  now: number
}

/** Colours a line that already has its width: the codes of a colour count as text when a line is cut. */
export function painted(
  style: Parameters<typeof styledText>[0],
  text: string,
  { colour }: Pick<DisplayScreen, 'colour'>,
): string {
  return colour ? styledText(style, text) : text
}
