import type { ResourceName } from '../resource.ts'
import type { ResourceReport } from '../store/status-report.ts'
import type { DemoEvent } from './demo-world.ts'
import { table } from './table.ts'
import { textWidth } from './text-width.ts'
import { ago, counted, duration, perSecond, wholeNumber } from './wording.ts'

/** What a demo of the daemon shows while it goes on, and what it says at the end. Pure. */

export interface DemoState {
  resources: readonly ResourceReport[]
  events: readonly DemoEvent[]
  requests: { total: number; throttled: number; perSecond: number | undefined }
  now: number
  elapsedMs: number
  stopping: boolean
}

export interface DemoPaper {
  columns: number
  rows: number
  colour: boolean
}

/** Where most goes on; the others are only counted. */
const SHOWN: readonly ResourceName[] = [
  'activities',
  'messages',
  'message_bodies',
  'meetings',
  'transcripts',
  'crm_records',
  'members',
]

/** Lines that fit on the terminal: how the warehouse stands, and below it as many of the last events as there is room for. */
export function drawDemo(state: DemoState, { columns, rows, colour }: DemoPaper): string[] {
  const head = [
    ...statusLines(state),
    '',
    requestLine(state),
    comingLine(state),
    state.stopping ? 'stopping: what is under way is finished' : 'Ctrl-C ends it',
    '',
  ]
  const room = Math.max(0, rows - head.length)
  const shown = head.slice(0, rows)
  const last = state.events.slice(-room).map(event => ({ text: eventLine(event, state.now), event }))
  return [
    ...shown.map(line => cut(line, columns)),
    ...(room === 0 ? [] : last).map(({ text, event }) => tinted(cut(text, columns), event, colour)),
  ]
}

export function statusLines({ resources, now }: DemoState): string[] {
  const shown = resources.filter(({ resource }) => SHOWN.includes(resource))
  const others = resources.filter(({ resource }) => !SHOWN.includes(resource))
  return [
    ...table<ResourceReport>(
      [
        { title: 'resource', cell: ({ resource }) => resource },
        { title: 'state', cell: ({ state }) => state },
        { title: 'rows', align: 'right', cell: row => wholeNumber(row.rows_live) },
        { title: 'deleted', align: 'right', cell: row => wholeNumber(row.rows_deleted) },
        { title: 'pending', align: 'right', cell: row => wholeNumber(row.pending_tasks) },
        { title: 'newest', cell: row => ago(row.newest_at, now) },
        { title: 'fresh as of', cell: row => ago(row.fresh_as_of, now) },
        { title: 'complete as of', cell: row => ago(row.complete_as_of, now) },
      ],
      shown,
    ),
    `and ${counted(others.length, 'more resource')}: ${statesOf(others)}`,
  ]
}

function statesOf(resources: readonly ResourceReport[]): string {
  const states = [...new Set(resources.map(({ state }) => state))].sort()
  const counts = states.map(state => `${resources.filter(row => row.state === state).length} ${state}`)
  return counts.join(', ')
}

export function requestLine({ requests, elapsedMs }: DemoState): string {
  const { total, throttled, perSecond: rate } = requests
  const speed = rate === undefined ? [] : [`${perSecond(rate)} requests/s`]
  return [
    ...speed,
    counted(total, 'request'),
    `${wholeNumber(throttled)} refused (429)`,
    `${duration(Math.max(elapsedMs, 1000))} so far`,
  ].join(', ')
}

function comingLine({ events, now }: DemoState): string {
  const made = events.filter(({ kind }) => kind !== undefined)
  const there = lagsOf(made)
  const open = made.filter(({ lagMs }) => lagMs === undefined)
  const oldest = open[0]
  const median = there.length === 0 ? '' : `, half of them within ${lagText(quantile(there, 0.5))}`
  const waiting = oldest === undefined ? '' : `; ${open.length} to come, the oldest made ${age(oldest, now)}`
  return `${counted(made.length, 'change')}, ${wholeNumber(there.length)} in the warehouse${median}${waiting}`
}

const age = ({ at }: DemoEvent, now: number) => ago(new Date(at).toISOString(), now)

export function eventLine({ at, kind, what, lagMs }: DemoEvent, now: number): string {
  const time = new Date(at).toISOString().slice(11, 19)
  if (kind === undefined) return `${time}  ${what}`
  if (lagMs !== undefined) return `${time}  ${what}: in the warehouse after ${lagText(lagMs)}`
  return `${time}  ${what}: not in the warehouse yet, after ${duration(Math.max(now - at, 0))}`
}

/** To a tenth where that matters. */
const lagText = (ms: number) => (ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms))

interface KindSummary {
  kind: string
  made: number
  lags: readonly number[]
}

/** How long each kind of change took, as a table. */
export function demoSummary(events: readonly DemoEvent[]): string[] {
  const kinds = [...new Set(events.flatMap(({ kind }) => kind ?? []))]
  const rows = kinds.map((kind): KindSummary => {
    const made = events.filter(event => event.kind === kind)
    return { kind, made: made.length, lags: lagsOf(made) }
  })
  const lag = (title: string, share: number) => ({
    title,
    align: 'right' as const,
    cell: ({ lags }: KindSummary) => (lags.length === 0 ? '-' : lagText(quantile(lags, share))),
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

function cut(line: string, columns: number): string {
  let text = line
  while (textWidth(text) > columns) text = text.slice(0, -1)
  return text
}

/** Green for what is there, yellow for what the API does. */
function tinted(text: string, { kind, lagMs }: DemoEvent, colour: boolean): string {
  if (!colour) return text
  if (kind === undefined) return `\u001b[33m${text}\u001b[39m`
  return lagMs === undefined ? text : `\u001b[32m${text}\u001b[39m`
}
