import type { Change } from '../../src/simulator/changes/change.ts'
import type { Fault, Faults } from '../../src/simulator/faults/faults.ts'
import type { LimitModel } from '../../src/simulator/faults/limits.ts'
import { ENVELOPES } from '../../src/simulator/http/paging.ts'
import type { SimulatorOptions } from '../../src/simulator/server.ts'
import { killAt, stopKilling, type Trial } from '../support/trial.ts'
import type { Draw } from './draw.ts'
import { HOSTILE_MODES } from './hostile-modes.ts'

/** What happens to a backfill before its warehouse is compared. */
export interface Mode {
  about: string
  options?(draw: Draw): SimulatorOptions
  env?: Readonly<Record<string, string>>
  /** Leaves a warehouse that must equal the API. A failure shows the returned text. */
  play(trial: Trial, draw: Draw): Promise<string>
}

const KILLS = ['request', 'answer'] as const

/** The approximate number of requests of a backfill of the small workspace. */
const REQUESTS = 330

export const MODES: Readonly<Record<string, Mode>> = {
  ...HOSTILE_MODES,
  once: {
    about: 'killed once at a random moment and run again',
    play: async (trial, draw) => {
      const point = { number: 1 + draw.below(REQUESTS), phase: draw.pick(KILLS) }
      const parley = trial.start()
      killAt(trial, parley, point)
      const { status } = await parley.ended
      stopKilling(trial)
      const said = status === null ? `killed at ${point.phase} ${point.number}` : 'done before it was killed'
      return `${said}; ${await finish(trial)}`
    },
  },
  'every-second': {
    about: 'killed a second after its first request until it is done',
    play: async trial => {
      let kills = 0
      for (;;) {
        const parley = trial.start()
        let timer: NodeJS.Timeout | undefined
        // Counted from its first request: on a slow machine the start may take more than a second.
        trial.tap.onRequest = () => {
          timer ??= setTimeout(() => parley.kill('SIGKILL'), 1_000)
        }
        const { status } = await parley.ended
        clearTimeout(timer)
        if (status !== null) return `killed ${kills} times; ${status === 0 ? 'exit 0' : await finish(trial)}`
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
      stopKilling(trial)
      const during = await finish(trial)
      await trial.simulator.setFaults([])
      return `first ${first.status}; with faults ${during}; without ${await finish(trial)}`
    },
  },
  overtaken: {
    about: 'answers overtake each other while the workspace changes',
    play: async (trial, draw) => {
      const told: string[] = []
      const delayMs = 1 + draw.below(200)
      await trial.simulator.setFaults([{ kind: 'late', probability: 0.1 + draw.below(5) / 10, delayMs }])
      for (let round = 0; round < 2; round++) {
        const changing = changeDuring(trial, draw, told)
        await trial.backfill()
        stopKilling(trial)
        await changing()
      }
      return `late by ${delayMs} ms; ${told.join('; ')}; ${await finishAfterChanges(trial)}`
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
      stopKilling(trial)
      return finish(trial)
    },
  },
  ties: {
    about: 'many rows at the same instant, changed and killed',
    options: draw => ({ messages: 1_050 + draw.below(300), meetings: 2, accessLogs: 10, customRecords: 1 }),
    play: async (trial, draw) => {
      const only = ['--only', 'messages,activities']
      const told: string[] = []
      for (let round = 0; round < 3; round++) {
        const parley = trial.start(...only)
        const phase = draw.pick(KILLS)
        if (draw.below(2) === 0) killAt(trial, parley, { number: 1 + draw.below(30), phase })
        told.push(`exit ${(await parley.ended).status}`)
        stopKilling(trial)
        for (const kind of ['hide', 'delete', 'edit', 'publish', 'publishLate', 'reveal'] as const) {
          const resource = draw.pick(['messages', 'activities'] as const)
          await trial.simulator.change({ kind, resource, count: 1 + draw.below(12) })
        }
      }
      return `${told.join('; ')}; ${await finishAfterChanges(trial)}`
    },
  },
  since: {
    about: 'bounded by different dates, killed, and in the end not bounded',
    play: async (trial, draw) => {
      const told: string[] = []
      for (let round = 0; round < 4; round++) {
        const since = new Date(Date.UTC(2024, 6 + draw.below(26), 1 + draw.below(28))).toISOString()
        const args = draw.below(4) === 0 ? [] : ['--since', since]
        const parley = trial.start(...args)
        const point = { number: 1 + draw.below(REQUESTS), phase: draw.pick(KILLS) }
        if (draw.below(3) > 0) killAt(trial, parley, point)
        const { status } = await parley.ended
        stopKilling(trial)
        told.push(`${args.join(' ')} exit ${status}`)
        const isBounded = args.length > 0 && status === 0 && round === 0
        const differences = isBounded ? await trial.differences({ since }) : []
        if (differences.length > 0) return [...told, trial.database, ...differences].join('\n    ')
        if (draw.below(2) === 0) await change(trial, draw, told)
      }
      return `${told.join('; ')}; ${await finishAfterChanges(trial)}`
    },
  },
  changes: {
    about: 'the workspace changes before, during and between runs that are killed',
    options: draw => ({ now: draw.pick(NOW) }),
    play: async (trial, draw) => {
      const told: string[] = []
      for (let round = 0; round < 4; round++) {
        const parley = trial.start()
        const point = { number: 1 + draw.below(REQUESTS), phase: draw.pick(KILLS) }
        if (draw.below(2) === 0) killAt(trial, parley, point)
        const changing = changeDuring(trial, draw, told)
        const { status } = await parley.ended
        stopKilling(trial)
        await changing()
        told.push(`exit ${status}`)
        if (draw.below(2) === 0) await change(trial, draw, told)
      }
      return `${told.join('; ')}; ${await finishAfterChanges(trial)}`
    },
  },
}

/** The service's clock is behind this machine's, right, or ahead of it. */
const NOW = ['2026-06-30T12:00:00Z', 'real', '2031-03-01T00:30:00Z'] as const

/** Runs the backfill until it completes, at most a few times. */
async function finish(trial: Trial): Promise<string> {
  const statuses: (number | null)[] = []
  for (let run = 0; run < 4; run++) {
    const { status } = await trial.backfill()
    statuses.push(status)
    if (status === 0) break
  }
  return `exit ${statuses.join(', ')}`
}

/** An interrupted round does not repeat its reads, so the next round finds later changes. */
async function finishAfterChanges(trial: Trial): Promise<string> {
  return `${await finish(trial)}, then ${await finish(trial)}`
}

/** Applies changes at random requests of the current run. The returned function waits for the last change. */
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

/** Few enough that the mass-deletion guard holds none back. */
async function change(trial: Trial, draw: Draw, told: string[]): Promise<void> {
  const changed = draw.pick(CHANGES)(draw)
  await trial.simulator.change(changed)
  told.push(JSON.stringify(changed))
}

const changeItems = (draw: Draw): Change => ({
  kind: draw.pick(KINDS),
  resource: draw.pick(RESOURCES),
  object: draw.pick(OBJECTS),
  count: 1 + draw.below(3),
  ...(draw.below(4) === 0 && { keepActivity: true }),
})

const CHANGES: readonly [(draw: Draw) => Change, ...((draw: Draw) => Change)[]] = [
  changeItems,
  changeItems,
  changeItems,
  changeItems,
  draw => ({ kind: draw.pick(['completeOverview', 'completeTranscript']), count: 1 + draw.below(3) }),
  () => ({ kind: 'editSettings' }),
  // The new time may be on the other side of the position of a pass.
  draw => ({
    kind: 'edit',
    resource: draw.pick(['messages', 'meetings', 'activities'] as const),
    at: Date.parse('2024-08-01T00:00:00Z') * 1_000 + draw.below(690) * 86_400_000_000 + draw.below(1_000_000),
  }),
  draw => ({
    kind: 'addField',
    object: draw.pick(OBJECTS),
    field: `added ${draw.below(1_000_000)}`,
    type: 'huge',
  }),
  draw => ({
    kind: 'retypeField',
    object: 'deal',
    field: 'Group By',
    type: draw.pick(['decimal', 'list', 'text']),
  }),
]

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
