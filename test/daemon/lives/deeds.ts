import type { Change } from '../../../src/simulator/changes.ts'
import type { Draw } from '../../torture/draw.ts'
import type { DaemonTrial } from '../daemon-trial.ts'
import { drawChange } from './changes.ts'
import { drawFaults } from './faults.ts'

/** Does something to the workspace, the API or the daemon, and tells what. */
export type Deed = (trial: DaemonTrial, draw: Draw) => Promise<string>

export type Deeds = readonly [Deed, ...Deed[]]

export const changeSome: Deed = async (trial, draw) => {
  const changes = Array.from({ length: 1 + draw.below(4) }, () => drawChange(draw))
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
  const faults = drawFaults(draw)
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
  // More than the lists of a compressed week need: what is learned here outlasts the limit, and texts come behind them.
  const rate = 40 + draw.below(30)
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

/** What happens to every workspace and every service. */
export const USUAL: Deeds = [
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
