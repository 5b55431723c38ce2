import type { ResourceName } from '../../catalog/resource-names.ts'
import { isoInstant } from '../../clock.ts'
import { stateCounts } from '../../health/wording.ts'
import type { ResourceReport } from '../../store/status/report.ts'
import { styledText } from '../../terminal/colours.ts'
import { table } from '../../terminal/table.ts'
import { cutToWidth } from '../../terminal/text-width.ts'
import { countText, durationText, rateText, relativeTime, wholeSecondsText } from '../../terminal/wording.ts'
import { wholeNumber } from '../../whole-number.ts'
import type { DemoEvent } from './change-driver.ts'

/** The display of a running daemon demo, and its summary. Pure. */

export interface DemoState {
  resources: readonly ResourceReport[]
  events: readonly DemoEvent[]
  requests: { total: number; throttled: number; perSecond: number | undefined }
  now: number
  elapsedMs: number
  isStopping: boolean
}

export interface DemoScreen {
  columns: number
  rows: number
  colour: boolean
}

/** The resources that change most. The others are only counted. */
const SHOWN_RESOURCES: readonly ResourceName[] = [
  'activities',
  'messages',
  'message_bodies',
  'meetings',
  'transcripts',
  'crm_records',
  'members',
]

/** Lines that fit on the terminal: the state of the warehouse, then as many of the newest events as fit. */
export function drawDemo(state: DemoState, { columns, rows, colour }: DemoScreen): string[] {
  const head = [
    ...statusLines(state),
    '',
    requestLine(state),
    changesLine(state),
    state.isStopping ? 'Stopping after the requests in flight' : 'Ctrl-C stops the demo',
    '',
  ]
  const room = Math.max(0, rows - head.length)
  const shown = head.slice(0, rows)
  const last = state.events.slice(-room).map(event => ({ text: eventLine(event, state.now), event }))
  return [
    ...shown.map(line => cutToWidth(line, columns)),
    ...(room === 0 ? [] : last).map(({ text, event }) =>
      colouredEvent(cutToWidth(text, columns), event, colour),
    ),
  ]
}

export function statusLines({ resources, now }: DemoState): string[] {
  const shown = resources.filter(({ resource }) => SHOWN_RESOURCES.includes(resource))
  const others = resources.filter(({ resource }) => !SHOWN_RESOURCES.includes(resource))
  return [
    ...table<ResourceReport>(
      [
        { title: 'resource', cell: ({ resource }) => resource },
        { title: 'state', cell: ({ state }) => state },
        { title: 'rows', align: 'right', cell: row => wholeNumber(row.rows_live) },
        { title: 'deleted', align: 'right', cell: row => wholeNumber(row.rows_deleted) },
        { title: 'pending', align: 'right', cell: row => wholeNumber(row.pending_tasks) },
        { title: 'newest', cell: row => relativeTime(row.newest_at, now) },
        { title: 'fresh as of', cell: row => relativeTime(row.fresh_as_of, now) },
        { title: 'complete as of', cell: row => relativeTime(row.complete_as_of, now) },
      ],
      shown,
    ),
    `and ${countText(others.length, 'more resource')}: ${stateCounts(others)}`,
  ]
}

export function requestLine({ requests, elapsedMs }: DemoState): string {
  const { total, throttled, perSecond: rate } = requests
  const speed = rate === undefined ? [] : [`${rateText(rate)} requests/s`]
  return [
    ...speed,
    countText(total, 'request'),
    `${wholeNumber(throttled)} refused (429)`,
    `${wholeSecondsText(elapsedMs)} so far`,
  ].join(', ')
}

function changesLine({ events, now }: DemoState): string {
  const made = events.filter(({ kind }) => kind !== undefined)
  const there = lagsOf(made)
  const open = made.filter(({ lagMs }) => lagMs === undefined)
  const oldest = open[0]
  const median = there.length === 0 ? '' : `, half of them within ${durationText(quantile(there, 0.5))}`
  const waiting =
    oldest === undefined ? '' : `; ${open.length} to come, the oldest made ${eventAge(oldest, now)}`
  return `${countText(made.length, 'change')}, ${wholeNumber(there.length)} in the warehouse${median}${waiting}`
}

const eventAge = ({ at }: DemoEvent, now: number) => relativeTime(isoInstant(at), now)

export function eventLine({ at, kind, what, lagMs }: DemoEvent, now: number): string {
  const time = isoInstant(at).slice(11, 19)
  if (kind === undefined) return `${time}  ${what}`
  if (lagMs !== undefined) return `${time}  ${what}: in the warehouse after ${durationText(lagMs)}`
  return `${time}  ${what}: not in the warehouse yet, after ${durationText(Math.max(now - at, 0))}`
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
function colouredEvent(text: string, { kind, lagMs }: DemoEvent, colour: boolean): string {
  if (!colour) return text
  if (kind === undefined) return styledText('yellow', text)
  return lagMs === undefined ? text : styledText('green', text)
}
