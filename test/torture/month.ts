import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import type { Change } from '../../src/simulator/changes/change.ts'
import { type DaemonTrial, startDaemonTrial } from '../daemon/daemon-trial.ts'
import { newFolder } from '../support/parley-process.ts'
import { SMALL } from '../support/trial.ts'
import { createDraw, type Draw } from './draw.ts'

/** Runs the daemon for a month that takes a few minutes, and checks that its memory, files and handles do not grow. */
export interface MonthOptions {
  minutes: number
  seed: number
  line(text: string): void
}

const MONTH_MS = 30 * 86_400_000
/** The longest reading interval, as a share of the month. */
const WEEKS = 7 / 30
const EVERY_MS = 5_000

export async function longMonth({
  minutes,
  seed,
  line,
}: MonthOptions): Promise<{ passed: number; failed: number }> {
  const socket = join(newFolder(), 'parley.sock')
  const trial = await startDaemonTrial(
    { ...SMALL, seed },
    {
      PARLEY_HTTP_LISTEN: `unix:${socket}`,
      PARLEY_SYNC_INTERVAL_SCALE: String((minutes * 60_000) / MONTH_MS),
      PARLEY_LOG_LEVEL: 'error',
    },
  )
  try {
    const { pid } = trial.go()
    const first = await trial.convergence()
    const samples: Sample[] = []
    const end = performance.now() + minutes * 60_000
    const changing = changeUntil(trial, createDraw(seed), end)
    line(Object.keys(MEASURES).map(heading).join(' '))
    while (performance.now() < end && !trial.fallen()) {
      await pause(EVERY_MS)
      const sample = await take(trial, pid ?? 0, socket)
      samples.push(sample)
      line(
        Object.keys(MEASURES)
          .map(name => String(sample[name] ?? '').padStart(WIDTH))
          .join(' '),
      )
    }
    line(`${await changing} changes`)
    const last = await trial.convergence({ patienceMs: 2 * WEEKS * minutes * 60_000 })
    const verdicts = [
      ...flatness(samples),
      verdict(
        'the warehouse equals the workspace at the start',
        first.length === 0,
        first.slice(0, 3).join('; '),
      ),
      verdict(
        'the warehouse equals the workspace at the end',
        last.length === 0,
        last.slice(0, 3).join('; '),
      ),
    ]
    for (const { says } of verdicts) line(says)
    const failed = verdicts.filter(({ holds }) => !holds).length
    return { passed: verdicts.length - failed, failed }
  } finally {
    await trial.close()
  }
}

// --------------------------------------------------------------------------------------- the workspace

/** Makes small changes of all kinds that keep the size of the workspace. Returns the number of changes. */
async function changeUntil(trial: DaemonTrial, draw: Draw, end: number): Promise<number> {
  let made = 0
  while (performance.now() < end) {
    await trial.simulator.changeAtOnce(draw.pick(SMALL_CHANGES)(draw))
    made += 1
    await pause(300 + draw.below(700))
  }
  return made
}

const COMING_AND_GOING = ['messages', 'activities', 'meetings', 'collections', 'teams'] as const

const SMALL_CHANGES: readonly [(draw: Draw) => Change[], ...((draw: Draw) => Change[])[]] = [
  draw => {
    const resource = draw.pick(COMING_AND_GOING)
    return [
      { kind: 'publish', resource },
      { kind: 'delete', resource },
    ]
  },
  draw => {
    const resource = draw.pick(['messages', 'activities', 'meetings'] as const)
    return [
      { kind: 'publishLate', resource },
      { kind: 'delete', resource },
    ]
  },
  draw => [
    { kind: 'edit', resource: draw.pick(['messages', 'meetings', 'collections', 'playbooks'] as const) },
  ],
  draw => [
    { kind: 'edit', resource: 'crm_records', object: draw.pick(['deal', 'company', 'contact'] as const) },
  ],
  draw => {
    const resource = draw.pick(['members', 'meetings', 'playbooks', 'crm_records'] as const)
    return [
      { kind: 'reveal', resource },
      { kind: 'hide', resource },
    ]
  },
]

// ---------------------------------------------------------------------------------------- measurements

type Sample = Readonly<Record<string, number>>

interface Measure {
  unit: string
  /** How far the last third may be above the second, as a share of it and in the unit. */
  share: number
  slack: number
}

/** The run history has a row for every run until maintenance prunes it by the calendar. */
const MEASURES: Readonly<Record<string, Measure | undefined>> = {
  seconds: undefined,
  'rss MiB': { unit: 'MiB', share: 0.05, slack: 6 },
  files: { unit: 'files', share: 0, slack: 3 },
  // Connections to the API come and go with the concurrency; a leak would show as hundreds in a month.
  sockets: { unit: 'sockets', share: 0, slack: 16 },
  'wal KiB': { unit: 'KiB', share: 0.25, slack: 1024 },
  'db KiB': undefined,
  'loop p99 ms': { unit: 'ms', share: 0.5, slack: 20 },
  'loop max ms': undefined,
  sync_tasks: { unit: 'rows', share: 0.05, slack: 20 },
  sync_segments: { unit: 'rows', share: 0.05, slack: 10 },
  sync_seen: { unit: 'rows', share: 0.05, slack: 300 },
  sync_suspicions: { unit: 'rows', share: 0, slack: 10 },
  sync_rejects: { unit: 'rows', share: 0, slack: 5 },
  sync_requests: { unit: 'rows', share: 0, slack: 5 },
  sync_purge_queue: undefined,
  sync_runs: undefined,
  requests: undefined,
}

const WIDTH = 9
const heading = (name: string): string => name.replace('sync_', '').replace('loop ', '').padStart(WIDTH)

async function take(trial: DaemonTrial, pid: number, socket: string): Promise<Sample> {
  const metrics = await readMetrics(socket)
  const delay = (quantile: string): number =>
    Math.round((metrics.get(`parley_event_loop_delay_seconds{quantile="${quantile}"}`) ?? 0) * 1000)
  const tables = Object.keys(MEASURES).filter(name => name.startsWith('sync_'))
  const counts = tables.map(table => [
    table,
    Number(trial.rows(`SELECT count(*) AS rows FROM ${table}`)[0]?.['rows']),
  ])
  return {
    seconds: Math.round(performance.now() / 1000),
    'rss MiB': Math.round(residentKib(pid) / 1024),
    ...openHandles(pid),
    'wal KiB': Math.round(sizeOf(`${trial.database}-wal`) / 1024),
    'db KiB': Math.round(sizeOf(trial.database) / 1024),
    'loop p99 ms': delay('0.99'),
    'loop max ms': delay('1'),
    ...Object.fromEntries(counts),
    requests: trial.tap.requests.length,
  }
}

/** Counts sockets separately from other open files. */
function openHandles(pid: number) {
  const folder = `/proc/${pid}/fd`
  const open = readdirSync(folder).map(number => readlinkSync(join(folder, number)))
  const sockets = open.filter(target => target.startsWith('socket:')).length
  return { files: open.length - sockets, sockets }
}

function residentKib(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** Values in Prometheus's text format, by name with labels. */
async function readMetrics(socket: string): Promise<Map<string, number>> {
  const page = await new Promise<string>((resolve, reject) => {
    request({ socketPath: socket, path: '/metrics', headers: { host: 'localhost' } }, response => {
      text(response).then(resolve, reject)
    })
      .on('error', reject)
      .end()
  })
  const lines = page.split('\n').filter(one => one !== '' && !one.startsWith('#'))
  return new Map(
    lines.map(one => {
      const at = one.lastIndexOf(' ')
      return [one.slice(0, at), Number(one.slice(at + 1))]
    }),
  )
}

// -------------------------------------------------------------------------------------------- verdicts

interface Verdict {
  holds: boolean
  says: string
}

function verdict(what: string, holds: boolean, why: string): Verdict {
  return { holds, says: `${holds ? 'ok    ' : 'FAILED'} ${what}${holds ? '' : `: ${why}`}` }
}

/** The first third is the warm-up. The last third must be about the same as the second. */
function flatness(samples: readonly Sample[]): Verdict[] {
  const third = Math.floor(samples.length / 3)
  return Object.entries(MEASURES).flatMap(([name, measure]) => {
    if (!measure) return []
    const { unit, share, slack } = measure
    const before = median(samples.slice(third, 2 * third).map(sample => sample[name] ?? 0))
    const after = median(samples.slice(2 * third).map(sample => sample[name] ?? 0))
    const holds = after <= before * (1 + share) + slack
    const change = `${before} → ${after} ${unit}`
    return [verdict(`${name} stays flat (${change})`, holds, 'it grows')]
  })
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
