import { isDeepStrictEqual } from 'node:util'
import type { Change } from '../../src/simulator/changes.ts'
import type { Fault, Faults } from '../../src/simulator/faults.ts'
import { contentOf } from '../convergence/changed-tables.ts'
import { createDraw, type Draw } from '../torture/draw.ts'
import { CLOCKS, type DaemonTrial, startDaemonTrial } from './daemon-trial.ts'

/** What happens to a workspace and to the daemon that follows it, drawn at random. */
export interface Life {
  /** One line for each deed. */
  told: string[]
  /** Where the warehouse still is not what the world publishes after that has rested. */
  differences: string[]
  /** Tables that were written while nothing changed. */
  rewritten: string[]
  /** How long it took to become equal once the world rested. */
  restMs: number
}

/** The same seed is the same life, but for the moments at which things happen. */
export async function live(seed: number, { deeds }: { deeds: number }): Promise<Life> {
  const draw = createDraw(seed)
  const trial = await startDaemonTrial({ seed, now: draw.pick(CLOCKS) })
  const told: string[] = []
  try {
    await liveThrough(trial, draw, { deeds, told })
    await rest(trial)
    const began = performance.now()
    const differences = await trial.convergence()
    const restMs = performance.now() - began
    const rewritten = differences.length === 0 ? await writtenAtRest(trial) : []
    return { told, differences, rewritten, restMs }
  } catch (error) {
    return { told, differences: [String(error)], rewritten: [], restMs: 0 }
  } finally {
    await trial.close()
  }
}

async function writtenAtRest(trial: DaemonTrial): Promise<string[]> {
  // What only single reads tell of may still come.
  await trial.audit()
  const before = contentOf(trial.database)
  await trial.audit()
  const after = contentOf(trial.database)
  return [...after]
    .filter(([table, rows]) => !isDeepStrictEqual(rows, before.get(table)))
    .map(([table]) => table)
}

type Deed = (trial: DaemonTrial, draw: Draw) => Promise<string>

/** Does so many deeds, each some requests after the one before. */
async function liveThrough(
  trial: DaemonTrial,
  draw: Draw,
  { deeds, told }: { deeds: number; told: string[] },
): Promise<void> {
  trial.go()
  for (let done = 0; done < deeds && !trial.fallen(); done++) {
    told.push(await draw.pick(DEEDS)(trial, draw))
    trial.go()
    await trial.requests(draw.below(40))
  }
}

/** From now on nothing is changed, refused or killed. */
async function rest(trial: DaemonTrial): Promise<void> {
  await trial.simulator.setFaults([])
  await trial.simulator.setLimit({ kind: 'none' })
  trial.go()
}

// ---------------------------------------------------------------------------------------------- deeds

const changeSome: Deed = async (trial, draw) => {
  const changes = Array.from({ length: 1 + draw.below(4) }, () => draw.pick(CHANGES)(draw))
  await trial.simulator.changeAtOnce(changes)
  return `change ${JSON.stringify(changes)}`
}

const moveSome: Deed = async (trial, draw) => {
  const resource = draw.pick(['messages', 'activities', 'meetings'] as const)
  const agoMs = draw.pick([HOUR, 5 * HOUR, 3 * DAY, 40 * DAY, 400 * DAY, 3 * YEAR])
  const at = Math.floor((trial.serverNow() - agoMs) * 1000 + draw.below(1_000_000))
  const changes: Change[] = [{ kind: 'edit', resource, at, count: 1 + draw.below(2) }]
  await trial.simulator.changeAtOnce(changes)
  return `change ${JSON.stringify(changes)}`
}

const publishLate: Deed = async (trial, draw) => {
  const resource = draw.pick(['messages', 'activities', 'meetings'] as const)
  const { ids } = await trial.simulator.change({ kind: 'publish', resource, count: 1 + draw.below(3) })
  const agoMs = draw.pick([HOUR, 30 * HOUR, 9 * DAY, YEAR, 3 * YEAR])
  const at = Math.floor((trial.serverNow() - agoMs) * 1000 + draw.below(1_000_000))
  await trial.simulator.change({ kind: 'edit', resource, ids, at })
  return `publish ${ids.length} ${resource} of ${new Date(at / 1000).toISOString()}`
}

const failForAWhile: Deed = async (trial, draw) => {
  const faults = draw.pick(FAULTS)(draw)
  await trial.simulator.setFaults(faults)
  await trial.requests(10 + draw.below(60))
  if (draw.below(2) === 0) await changeSome(trial, draw)
  await trial.simulator.setFaults([])
  return `faults ${JSON.stringify(faults)}`
}

const overtakeForAWhile: Deed = async (trial, draw) => {
  const delayMs = 1 + draw.below(300)
  await trial.simulator.setFaults([{ kind: 'late', probability: 0.4, delayMs }])
  const told: string[] = []
  for (let change = 0; change < 3; change++) {
    told.push(await changeSome(trial, draw))
    await trial.requests(5 + draw.below(20))
  }
  await trial.simulator.setFaults([])
  return `late by ${delayMs} ms; ${told.join('; ')}`
}

const beAway: Deed = async (trial, draw) => {
  await trial.simulator.setFaults([{ kind: draw.pick(['reset', 'status'] as const) }])
  await trial.requests(5 + draw.below(4))
  await changeSome(trial, draw)
  await trial.simulator.setFaults([])
  return 'away altogether'
}

const limitForAWhile: Deed = async (trial, draw) => {
  const rate = 10 + draw.below(30)
  await trial.simulator.setLimit({ kind: 'token-bucket', rate, burst: 5, hint: 'none' })
  await trial.requests(30)
  await trial.simulator.setLimit({ kind: 'none' })
  return `limit of ${rate} a second`
}

const killAndChange: Deed = async (trial, draw) => {
  const phase = draw.pick(['request', 'answer'] as const)
  const number = 1 + draw.below(60)
  await trial.kill({ number, phase })
  if (draw.below(2) === 0) return `killed at ${phase} ${number}`
  return `killed at ${phase} ${number}, then ${await changeSome(trial, draw)}`
}

const stop: Deed = async trial => {
  const { status, stderr } = await trial.end()
  return status === 0 ? 'stopped' : `stopped with ${status}: ${stderr}`
}

const DEEDS: readonly [Deed, ...Deed[]] = [
  changeSome,
  changeSome,
  changeSome,
  changeSome,
  changeSome,
  moveSome,
  publishLate,
  publishLate,
  failForAWhile,
  failForAWhile,
  overtakeForAWhile,
  overtakeForAWhile,
  beAway,
  limitForAWhile,
  killAndChange,
  killAndChange,
  killAndChange,
  stop,
]

const HOUR = 3_600_000
const DAY = 24 * HOUR
const YEAR = 365 * DAY

// -------------------------------------------------------------------------------------------- changes

type MakeChange = (draw: Draw) => Change

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
/** No contacts: a new one changes the texts of mails of long ago in the simulator, which no list tells. */
const OBJECTS = ['deal', 'company', 'renewal', 'order', 'Order'] as const

/** Few enough at once that no change is held back as too much to be believed. */
const changeItems: MakeChange = draw => ({
  kind: draw.pick(['publish', 'publishLate', 'edit', 'hide', 'delete', 'reveal'] as const),
  resource: draw.pick(RESOURCES),
  object: draw.pick(OBJECTS),
  count: 1 + draw.below(3),
  ...(draw.below(4) === 0 && { keepActivity: true }),
  ...(draw.below(4) === 0 && { unready: true }),
})

const CHANGES: readonly [MakeChange, ...MakeChange[]] = [
  changeItems,
  changeItems,
  changeItems,
  changeItems,
  changeItems,
  // Meetings that become ATTENDEES_ONLY, and members who leave.
  draw => ({ kind: 'hide', resource: draw.pick(['meetings', 'members'] as const) }),
  // A change of a record tells itself by an activity.
  draw => ({
    kind: draw.pick(['publish', 'edit', 'delete'] as const),
    resource: 'crm_records',
    object: draw.pick(['deal', 'company'] as const),
  }),
  draw => ({
    kind: draw.pick(['edit', 'hide', 'delete', 'reveal'] as const),
    resource: 'crm_records',
    object: 'contact',
  }),
  draw => ({ kind: draw.pick(['completeOverview', 'completeTranscript'] as const), count: 2 }),
  () => ({ kind: 'editSettings' }),
  draw => ({
    kind: 'addField',
    object: draw.pick(OBJECTS),
    field: `added ${draw.below(1_000_000)}`,
    type: draw.pick(['huge', 'text', 'list'] as const),
  }),
]

// --------------------------------------------------------------------------------------------- faults

type MakeFaults = (draw: Draw) => Faults

const MIXED: Faults = [
  { kind: 'status', status: 500, probability: 0.1 },
  { kind: 'status', status: 503, retryAfter: 1, probability: 0.02 },
  { kind: 'reset', probability: 0.08 },
  { kind: 'reset-in-body', probability: 0.06 },
  { kind: 'truncate', probability: 0.06 },
  { kind: 'html', probability: 0.04 },
  { kind: 'wrong-type', probability: 0.04 },
]

const RARE: readonly [Fault, ...Fault[]] = [
  { kind: 'stall', probability: 0.03 },
  { kind: 'stall-in-body', probability: 0.03 },
  { kind: 'endless', probability: 0.03 },
  { kind: 'expire-cursor', uses: 0, probability: 0.3 },
  { kind: 'repeat-cursor', probability: 0.1 },
]

const ROUTES = [
  '/v1/teams',
  '/v1/meetings',
  '/v1/meetings/{meetingId}',
  '/v2/messages',
  '/v2/messages/{messageId}',
  '/v2/activities',
  '/v2/objects',
  '/v2/objects/{object}/records',
] as const

const FAULTS: readonly [MakeFaults, ...MakeFaults[]] = [
  () => MIXED,
  draw => [...MIXED, draw.pick(RARE)],
  draw => [draw.pick(RARE)],
  draw => [{ kind: draw.pick(['status', 'truncate', 'reset'] as const), route: draw.pick(ROUTES) }],
]
