import type { Change } from '../../../src/simulator/changes/change.ts'
import type { Faults } from '../../../src/simulator/faults/faults.ts'
import { until } from '../../support/until.ts'
import type { Draw } from '../../torture/draw.ts'
import type { DaemonTrial } from '../daemon-trial.ts'
import { drawChange } from './changes.ts'
import { drawFaults } from './faults.ts'

/** A change of the workspace, the API or the daemon. */
export interface Done {
  told: string
  /** How many answers were wrong; undefined for an action that makes none wrong. */
  hits?: number
}

export type Action = (trial: DaemonTrial, draw: Draw) => Promise<Done>

export type Actions = readonly [Action, ...Action[]]

/** Makes some small changes of the workspace. Returns their description. */
export async function changed(trial: DaemonTrial, draw: Draw): Promise<string> {
  const changes = Array.from({ length: 1 + draw.below(4) }, () => drawChange(draw))
  await trial.simulator.changeAtOnce(changes)
  return `change ${JSON.stringify(changes)}`
}

/** How long an action waits for a request that may never come: a scaled day, but at least this long. */
export const patienceMs = ({ weekMs }: DaemonTrial): number => Math.max(4000, weekMs / 7)

/**
 * Gives wrong answers during an action, and until there was at least one. Returns their number.
 * @param during the action
 */
export async function whileWrong(
  trial: DaemonTrial,
  faults: Faults,
  during: () => Promise<unknown>,
): Promise<number> {
  await trial.simulator.setFaults(faults)
  await during()
  const hits = await until(
    async () => (await trial.simulator.hitCounts()).reduce((sum, count) => sum + count, 0),
    count => count > 0 || trial.fallen() !== undefined,
    { patienceMs: patienceMs(trial) },
  )
  await trial.simulator.setFaults([])
  return hits
}

const changeSome: Action = async (trial, draw) => ({ told: await changed(trial, draw) })

const moveSome: Action = async (trial, draw) => {
  const resource = draw.pick(['messages', 'activities', 'meetings'] as const)
  const agoMs = draw.pick([HOUR, 5 * HOUR, 3 * DAY, 40 * DAY, 400 * DAY, 3 * YEAR])
  const at = Math.floor((trial.serverNow() - agoMs) * 1000 + draw.below(1_000_000))
  const changes: Change[] = [{ kind: 'edit', resource, at, count: 1 + draw.below(2) }]
  await trial.simulator.changeAtOnce(changes)
  return { told: `change ${JSON.stringify(changes)}` }
}

const publishLate: Action = async (trial, draw) => {
  const resource = draw.pick(['messages', 'activities', 'meetings'] as const)
  const { ids } = await trial.simulator.change({ kind: 'publish', resource, count: 1 + draw.below(3) })
  const agoMs = draw.pick([HOUR, 30 * HOUR, 9 * DAY, YEAR, 3 * YEAR])
  const at = Math.floor((trial.serverNow() - agoMs) * 1000 + draw.below(1_000_000))
  await trial.simulator.change({ kind: 'edit', resource, ids, at })
  return { told: `publish ${ids.length} ${resource} of ${new Date(at / 1000).toISOString()}` }
}

const failForAWhile: Action = async (trial, draw) => {
  const faults = drawFaults(draw)
  const hits = await whileWrong(trial, faults, async () => {
    await trial.requests(10 + draw.below(60))
    if (draw.below(2) === 0) await changed(trial, draw)
  })
  return { told: `faults ${JSON.stringify(faults)}`, hits }
}

const overtakeForAWhile: Action = async (trial, draw) => {
  const delayMs = 1 + draw.below(300)
  const told: string[] = []
  const hits = await whileWrong(trial, [{ kind: 'late', probability: 0.4, delayMs }], async () => {
    for (let change = 0; change < 3; change++) {
      told.push(await changed(trial, draw))
      await trial.requests(5 + draw.below(20))
    }
  })
  return { told: `late by ${delayMs} ms; ${told.join('; ')}`, hits }
}

const beAway: Action = async (trial, draw) => {
  const faults = [{ kind: draw.pick(['reset', 'status'] as const) }]
  const hits = await whileWrong(trial, faults, async () => {
    await trial.requests(5 + draw.below(4))
    await changed(trial, draw)
  })
  return { told: 'away altogether', hits }
}

const limitForAWhile: Action = async (trial, draw) => {
  // More than the lists of a compressed week need: the learned rate outlasts the limit, and texts come after the lists.
  const rate = 40 + draw.below(30)
  await trial.simulator.setLimit({ kind: 'token-bucket', rate, burst: 5, hint: 'none' })
  await trial.requests(30)
  await trial.simulator.setLimit({ kind: 'none' })
  return { told: `limit of ${rate} a second` }
}

const killAndChange: Action = async (trial, draw) => {
  const phase = draw.pick(['request', 'answer'] as const)
  const number = 1 + draw.below(60)
  await trial.kill({ number, phase })
  if (draw.below(2) === 0) return { told: `killed at ${phase} ${number}` }
  return { told: `killed at ${phase} ${number}, then ${await changed(trial, draw)}` }
}

const stop: Action = async trial => {
  const { status, stderr } = await trial.end()
  return { told: status === 0 ? 'stopped' : `stopped with ${status}: ${stderr}` }
}

/** Actions of any workspace and any service. */
export const USUAL: Actions = [
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
