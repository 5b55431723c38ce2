import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LimitModel } from '../../src/simulator/faults/limits.ts'
import { type CpuShare, watchCpu } from './cpu-share.ts'
import { type DaemonProcess, startDaemon } from './daemon-process.ts'
import {
  firstRequestAt,
  type KnownLimit,
  type SteadyFigures,
  steadyFigures,
  timeToReach,
} from './limits-figures.ts'
import { startMeasured, type Usage } from './measured-process.ts'
import { type Recorded, type RecordedWorkspace, startRecorded } from './recorded-workspace.ts'

/**
 * Measures how much of an unknown rate limit the program uses, and how many of its requests are refused. Several
 * daemons load a long history at the same time, each from a simulator with a different limit, all in separate
 * processes.
 */

export interface LimitsOptions {
  folder: string
  /** The built command line program. */
  program: string
  minutes: number
  logLevel: string
}

export interface Limits {
  rows: readonly LimitRow[]
  changes: readonly ChangeRow[]
  /** The figure of a client that only sends requests, for the in-flight limit: the maximum on this machine. */
  bare: SteadyFigures | undefined
  cpu: CpuShare
}

export type Hint = NonNullable<LimitModel['hint']>

interface Load {
  daemon: Usage
  simulator: Usage
  /** Delay of the simulator's timers at the 99th percentile. */
  lateMs: number
}

export interface LimitRow extends Load {
  limit: string
  hint: Hint
  /** Undefined when the time was too short. */
  steady: SteadyFigures | undefined
  /** Time from the first request; undefined when it never happened. */
  ninetyPercentMs: number | undefined
}

/** A limit that changes twice during the run. */
export interface ChangeRow extends Load {
  limit: string
  hint: Hint
  /** Time until hardly any request is refused and the new limit is used; undefined when it never happened. */
  halvedMs: number | undefined
  doubledMs: number | undefined
}

interface Pair {
  name: string
  limit: string
  hint: Hint
  rule: KnownLimit
  /** The latency of each answer. */
  holdMs?: number
  /** Whether the limit is halved and doubled during the run. */
  isChanging?: boolean
}

interface RunningPair extends Pair {
  workspace: RecordedWorkspace
  daemon: DaemonProcess
  folder: string
}

interface EndedPair extends Pair, Recorded {
  daemon: Usage
}

const TEN: KnownLimit = { kind: 'token-bucket', rate: 10, burst: 20 }
const FIVE: KnownLimit = { kind: 'token-bucket', rate: 5, burst: 10 }

const FOUR_PLACES = { rule: { kind: 'concurrency', max: 4 }, holdMs: 100 } as const

const LIMITS: readonly Pick<Pair, 'limit' | 'rule' | 'holdMs'>[] = [
  { limit: '10/s, bucket of 20', rule: TEN },
  { limit: '2/s, bucket of 5', rule: { kind: 'token-bucket', rate: 2, burst: 5 } },
  { limit: '600 per fixed minute', rule: { kind: 'fixed-window', count: 600, windowMs: 60_000 } },
  { limit: '100 per sliding 10 s', rule: { kind: 'sliding-window', count: 100, windowMs: 10_000 } },
  { limit: '4 in flight, 100 ms each', ...FOUR_PLACES },
]

const HINTS: readonly Hint[] = ['retry-after-seconds', 'retry-after-date', 'none']
const CHANGE_HINTS: readonly Hint[] = ['retry-after-seconds', 'none']

/** Shares of the time at which the limit is halved and doubled again. A doubled limit takes longer to find. */
const HALVED_AT = 0.3
const DOUBLED_AT = 0.55

/** Programs start before the measurement, and windows allow more than the mean. */
const TO_SPARE_SECONDS = 120

const NEARLY_ALL = 0.9
const HARDLY_REFUSED = 0.01

export async function runLimits(options: LimitsOptions): Promise<Limits> {
  const steady = LIMITS.flatMap(limit =>
    HINTS.map(
      (hint): Pair => ({ ...limit, hint, name: `${limit.rule.kind}-${amountOf(limit.rule)}-${hint}` }),
    ),
  )
  const changing = CHANGE_HINTS.map(
    (hint): Pair => ({
      limit: '10/s, 5/s, 10/s',
      rule: TEN,
      hint,
      name: `changing-${hint}`,
      isChanging: true,
    }),
  )
  const running = await Promise.all([...steady, ...changing].map(pair => start(pair, options)))
  try {
    const { ended, ...measured } = await measure(running, options.minutes)
    return {
      rows: ended.slice(0, steady.length).map(limitRow),
      changes: ended.slice(steady.length).map(changeRow),
      ...measured,
    }
  } finally {
    await Promise.allSettled(running.map(({ daemon }) => daemon.stop()))
  }
}

async function measure(running: readonly RunningPair[], minutes: number) {
  const endBare = await startBare()
  const endCpu = watchCpu()
  const changed = running.filter(({ isChanging }) => isChanging).map(pair => change(pair, minutes))
  await Promise.all([sleep(minutes * 60_000), ...changed])
  const cpu = endCpu()
  const [bare, ...ended] = await Promise.all([endBare(), ...running.map(end)])
  return { ended, bare, cpu }
}

/** The requests that the limit allows. Each message needs at least one, so the program never runs out of requests. */
function perSecond({ rule, holdMs = 1 }: Pair): number {
  switch (rule.kind) {
    case 'token-bucket':
      return rule.rate
    case 'concurrency':
      return (rule.max * 1000) / holdMs
    default:
      return (rule.count * 1000) / rule.windowMs
  }
}

function amountOf(rule: KnownLimit): number {
  if (rule.kind === 'token-bucket') return rule.rate
  return rule.kind === 'concurrency' ? rule.max : rule.count
}

async function start(
  pair: Pair,
  { folder, program, minutes, logLevel }: LimitsOptions,
): Promise<RunningPair> {
  const { rule, hint, holdMs, name } = pair
  const ownFolder = join(folder, name)
  mkdirSync(ownFolder, { recursive: true })
  const messages = Math.ceil(perSecond(pair) * (minutes * 60 + TO_SPARE_SECONDS))
  const workspace = await startRecorded({ messages, now: 'real', limit: { ...rule, hint } }, holdMs)
  const daemon = startDaemon(workspace, { folder: ownFolder, program, logLevel })
  return { ...pair, workspace, daemon, folder: ownFolder }
}

const BARE_CLIENT = new URL('bare-client.mjs', import.meta.url).pathname

async function startBare(): Promise<() => Promise<SteadyFigures | undefined>> {
  const { rule, holdMs } = FOUR_PLACES
  const { url, apiKey, workspaceId, end } = await startRecorded({ limit: rule }, holdMs)
  const asker = startMeasured([BARE_CLIENT, url, apiKey, workspaceId, String(rule.max)], process.env)
  return async () => {
    const { record } = await end()
    await asker.ended
    return steadyFigures(rule, record)
  }
}

async function change({ workspace, hint }: RunningPair, minutes: number): Promise<void> {
  const ms = minutes * 60_000
  await sleep(HALVED_AT * ms)
  await workspace.setLimit({ ...FIVE, hint })
  await sleep((DOUBLED_AT - HALVED_AT) * ms)
  await workspace.setLimit({ ...TEN, hint })
}

/** Closes the record first, since an ending daemon sends fewer requests. The record stays in its folder. */
async function end({ workspace, daemon, folder, ...pair }: RunningPair): Promise<EndedPair> {
  const recorded = await workspace.end()
  writeFileSync(join(folder, 'requests.json'), JSON.stringify(recorded.record))
  return { ...pair, ...recorded, daemon: await daemon.stop() }
}

function limitRow({ limit, hint, rule, record, lateMs, simulator, daemon }: EndedPair): LimitRow {
  const from = firstRequestAt(record) ?? record.endedMs
  return {
    limit,
    hint,
    steady: steadyFigures(rule, record),
    ninetyPercentMs: timeToReach(record, {
      rule,
      span: { from, to: record.endedMs },
      utilisation: NEARLY_ALL,
    }),
    lateMs,
    simulator,
    daemon,
  }
}

function changeRow({ limit, hint, record, lateMs, simulator, daemon }: EndedPair): ChangeRow {
  const [halvedAt = record.endedMs, doubledAt = record.endedMs] = record.changes
  const found = (rule: KnownLimit, from: number, to: number) =>
    timeToReach(record, { rule, span: { from, to }, utilisation: NEARLY_ALL, refusedShare: HARDLY_REFUSED })
  return {
    limit,
    hint,
    halvedMs: found(FIVE, halvedAt, doubledAt),
    doubledMs: found(TEN, doubledAt, record.endedMs),
    lateMs,
    simulator,
    daemon,
  }
}
