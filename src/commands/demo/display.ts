import { isoInstant } from '../../base/clock.ts'
import { wholeNumber } from '../../base/whole-number.ts'
import { styledText } from '../../terminal/colours.ts'
import { table } from '../../terminal/table.ts'
import { cutToWidth } from '../../terminal/text-width.ts'
import { countText, durationText } from '../../terminal/wording.ts'
import type { DemoEvent } from './change-driver.ts'

/** What a running demo of the daemon says in the terminal, and its summary. Pure. */

export interface DemoScreen {
  columns: number
  colour: boolean
}

/** How many changes were made and have arrived, and the newest event that is over. */
export function currentLine(events: readonly DemoEvent[], { columns, colour }: DemoScreen): string {
  const made = events.filter(({ kind }) => kind !== undefined)
  const counts = `${countText(made.length, 'change')}, ${wholeNumber(lagsOf(made).length)} in the warehouse`
  const latest = events.filter(({ kind, lagMs }) => kind === undefined || lagMs !== undefined).at(-1)
  if (latest === undefined) return cutToWidth(counts, columns)
  return colouredEvent(cutToWidth(`${counts}; ${eventLine(latest)}`, columns), latest, colour)
}

/** An API problem, or a change that has arrived. */
export function eventLine({ at, what, lagMs }: DemoEvent): string {
  const time = isoInstant(at).slice(11, 19)
  const arrival = lagMs === undefined ? '' : `: in the warehouse after ${durationText(lagMs)}`
  return `${time} ${what}${arrival}`
}

interface KindSummary {
  kind: string
  made: number
  lags: readonly number[]
}

/** A table of how long each kind of change took to arrive. */
export function demoSummary(events: readonly DemoEvent[]): string[] {
  const kinds = [...new Set(events.flatMap(({ kind }) => kind ?? []))]
  const rows = kinds.map((kind): KindSummary => {
    const made = events.filter(event => event.kind === kind)
    return { kind, made: made.length, lags: lagsOf(made) }
  })
  const lag = (title: string, share: number) => ({
    title,
    align: 'right' as const,
    cell: ({ lags }: KindSummary) => (lags.length === 0 ? '-' : durationText(quantile(lags, share))),
  })
  return table<KindSummary>(
    [
      { title: 'change', cell: ({ kind }) => kind },
      { title: 'made', align: 'right', cell: ({ made }) => wholeNumber(made) },
      { title: 'in the warehouse', align: 'right', cell: ({ lags }) => wholeNumber(lags.length) },
      lag('half within', 0.5),
      lag('longest', 1),
    ],
    rows,
  )
}

function lagsOf(events: readonly DemoEvent[]): number[] {
  return events.flatMap(({ lagMs }) => lagMs ?? []).sort((one, other) => one - other)
}

function quantile(ascending: readonly number[], share: number): number {
  return ascending[Math.max(0, Math.ceil(share * ascending.length) - 1)] ?? 0
}

/** Arrived changes are green, API problems yellow. */
function colouredEvent(text: string, { kind }: DemoEvent, colour: boolean): string {
  return colour ? styledText(kind === undefined ? 'yellow' : 'green', text) : text
}
