import type { Change } from '../../src/simulator/changes.ts'
import type { Fault, Faults } from '../../src/simulator/faults.ts'
import type { LimitModel } from '../../src/simulator/limits.ts'
import { ENVELOPES } from '../../src/simulator/paging.ts'
import type { SimulatorOptions } from '../../src/simulator/server.ts'
import { killAt, killNoMore, type Trial } from '../support/trial.ts'
import type { Draw } from './draw.ts'

/** What is done to a backfill before its warehouse is compared. */
export interface Mode {
  about: string
  options?(draw: Draw): SimulatorOptions
  env?: Readonly<Record<string, string>>
  /** Leaves a warehouse that must be true. What it tells is shown beside a failure. */
  play(trial: Trial, draw: Draw): Promise<string>
}

const KILLS = ['request', 'answer'] as const

/** About as many requests as a backfill of the small workspace makes. */
const REQUESTS = 330

export const MODES: Readonly<Record<string, Mode>> = {
  once: {
    about: 'killed once at a random moment and run again',
    play: async (trial, draw) => {
      const point = { number: 1 + draw.below(REQUESTS), phase: draw.pick(KILLS) }
      const parley = trial.start()
      killAt(trial, parley, point)
      const { status } = await parley.ended
      killNoMore(trial)
      const said = status === null ? `killed at ${point.phase} ${point.number}` : 'done before it was killed'
      return `${said}; ${await finish(trial)}`
    },
  },
  'every-second': {
    about: 'killed once a second until it is done',
    play: async trial => {
      let kills = 0
      for (;;) {
        const parley = trial.start()
        const timer = setTimeout(() => parley.kill('SIGKILL'), 1_000)
        const { status } = await parley.ended
        clearTimeout(timer)
        if (status !== null) return `killed ${kills} times; exit ${status}`
        kills += 1
      }
    },
  },
  'every-few': {
    about: 'killed after every few requests until it is done',
    play: async (trial, draw) => {
      const number = 10 + draw.below(60)
      const phase = draw.pick(KILLS)
      for (let kills = 0; kills < REQUESTS; kills++) {
        const parley = trial.start()
        killAt(trial, parley, { number, phase })
        const { status } = await parley.ended
        if (status !== null) return `killed ${kills} times, every ${number} at ${phase}; exit ${status}`
      }
      return `never done when killed every ${number} at ${phase}`
    },
  },
  faults: {
    about: '5 % mixed faults',
    env: {
      PARLEY_API_TIMEOUT_SECONDS: '3',
      PARLEY_API_MAX_RESPONSE_BYTES: '2MiB',
    },
    play: async (trial, draw) => {
      await trial.simulator.setFaults(mixedFaults(draw))
      const point = { number: 1 + draw.below(REQUESTS), phase: draw.pick(KILLS) }
      const parley = trial.start()
      killAt(trial, parley, point)
      const first = await parley.ended
      killNoMore(trial)
      const during = await finish(trial)
      await trial.simulator.setFaults([])
      return `first ${first.status}; with faults ${during}; without ${await finish(trial)}`
    },
  },
  limits: {
    about: 'every model of a rate limit',
    options: draw => ({ limit: limitOf(draw), latencyMs: draw.below(6) }),
    play: async trial => finish(trial),
  },
  envelopes: {
    about: 'every shape of what the API leaves open',
    options: draw => ({
      envelopes: {
        meetingList: draw.pick(ENVELOPES),
        playbookList: draw.pick(ENVELOPES),
        objectList: draw.pick(ENVELOPES),
        meetingListId: draw.pick(['meeting_id', 'id']),
        unstatedSingle: draw.pick(['bare', 'data']),
        unreadyResults: draw.pick(['empty', 'not-found']),
      },
      meetings: 10 + draw.below(90),
    }),
    play: async (trial, draw) => {
      const parley = trial.start()
      killAt(trial, parley, { number: 1 + draw.below(REQUESTS), phase: draw.pick(KILLS) })
      await parley.ended
      killNoMore(trial)
      return finish(trial)
    },
  },
  changes: {
    about: 'the workspace changes before, during and between runs that are killed',
    play: async (trial, draw) => {
      const told: string[] = []
      for (let round = 0; round < 4; round++) {
        const parley = trial.start()
        const point = { number: 1 + draw.below(REQUESTS), phase: draw.pick(KILLS) }
        if (draw.below(2) === 0) killAt(trial, parley, point)
        const changing = changeDuring(trial, draw, told)
        const { status } = await parley.ended
        killNoMore(trial)
        await changing()
        told.push(`exit ${status}`)
        if (draw.below(2) === 0) await change(trial, draw, told)
      }
      return `${told.join('; ')}; ${await finish(trial)} ${await finish(trial)}`
    },
  },
}

/** Runs it until it says that it is done; a run that could not be completed is run again, a few times. */
async function finish(trial: Trial): Promise<string> {
  const statuses: (number | null)[] = []
  for (let run = 0; run < 4; run++) {
    const { status } = await trial.backfill()
    statuses.push(status)
    if (status === 0) break
  }
  return `exit ${statuses.join(', ')}`
}

/** Applies changes at random requests of the run under way; the function given waits for the last. */
function changeDuring(trial: Trial, draw: Draw, told: string[]): () => Promise<void> {
  const before = trial.tap.onRequest
  const from = trial.tap.requests.length
  const at = new Set(Array.from({ length: 6 }, () => 1 + draw.below(REQUESTS)))
  let last = Promise.resolve()
  trial.tap.onRequest = number => {
    before(number)
    if (at.has(number - from)) last = last.then(() => change(trial, draw, told))
  }
  return () => last
}

const RESOURCES = [
  'messages',
  'activities',
  'meetings',
  'crm_records',
  'members',
  'teams',
  'collections',
  'playbooks',
] as const
const KINDS = ['publish', 'publishLate', 'edit', 'hide', 'delete', 'reveal'] as const
const OBJECTS = ['deal', 'company', 'contact', 'renewal', 'order', 'Order'] as const

/** Few enough at once that no change is held back as too much to be believed. */
async function change(trial: Trial, draw: Draw, told: string[]): Promise<void> {
  const special = draw.below(8)
  const changed: Change =
    special === 0
      ? { kind: draw.pick(['completeOverview', 'completeTranscript']), count: 1 + draw.below(3) }
      : special === 1
        ? { kind: 'editSettings' }
        : {
            kind: draw.pick(KINDS),
            resource: draw.pick(RESOURCES),
            object: draw.pick(OBJECTS),
            count: 1 + draw.below(3),
          }
  await trial.simulator.change(changed)
  told.push('resource' in changed ? `${changed.kind} ${changed.count} ${changed.resource}` : changed.kind)
}

const COMMON: Faults = [
  { kind: 'status', status: 500, probability: 0.01 },
  { kind: 'status', status: 503, retryAfter: 1, probability: 0.004 },
  { kind: 'status', status: 502, probability: 0.008 },
  { kind: 'reset', probability: 0.008 },
  { kind: 'reset-in-body', probability: 0.006 },
  { kind: 'truncate', probability: 0.006 },
  { kind: 'html', probability: 0.004 },
  { kind: 'wrong-type', probability: 0.004 },
]
const RARE: readonly [Fault, ...Fault[]] = [
  { kind: 'stall', probability: 0.002 },
  { kind: 'stall-in-body', probability: 0.002 },
  { kind: 'endless', probability: 0.002 },
  { kind: 'expire-cursor', uses: 0, probability: 0.1 },
  { kind: 'repeat-cursor', probability: 0.02 },
]

function mixedFaults(draw: Draw): Faults {
  return [...COMMON, draw.pick(RARE)]
}

function limitOf(draw: Draw): LimitModel {
  const rule = draw.pick<LimitModel>([
    { kind: 'token-bucket', rate: 40 + draw.below(200), burst: 1 + draw.below(50) },
    { kind: 'fixed-window', count: 20 + draw.below(100), windowMs: 1_000 },
    { kind: 'sliding-window', count: 20 + draw.below(100), windowMs: 1_000 },
    { kind: 'concurrency', max: 1 + draw.below(6) },
  ])
  return {
    ...rule,
    hint: draw.pick(['retry-after-seconds', 'retry-after-date', 'none']),
    rateHeaders: draw.below(2) === 0,
  }
}
