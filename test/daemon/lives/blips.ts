import type { Fault } from '../../../src/simulator/faults/faults.ts'
import { routeTemplates } from '../../../src/simulator/operations/routes.ts'
import { createDraw, type Draw } from '../../torture/draw.ts'
import { type DaemonTrial, SCALES, startDaemonTrial } from '../daemon-trial.ts'
import { WRONG_ANSWERS } from './hostile-answers.ts'

/** The outcome of single wrong answers. */
export interface Blips {
  /** One line for each wrong answer. */
  told: string[]
  /** How many of them were given. */
  hits: number
  /** Differences between the warehouse and the API, although the API never changed. */
  differences: string[]
}

const HOUR = 3_600_000
const DAY = 24 * HOUR
const WEEK = 7 * DAY

/** One wrong answer from each route, at one of the first requests after everything has fallen due. */
const oneOfEach = (draw: Draw): Fault[] =>
  routeTemplates().map(route => ({
    ...draw.pick(WRONG_ANSWERS),
    route,
    atMost: 1,
    afterRequests: draw.below(4),
  }))

/**
 * An unchanging workspace behind an API with occasional wrong answers: the warehouse may never show one of them, and a
 * day later no trace may remain.
 */
export async function blips(seed: number, { rounds }: { rounds: number }): Promise<Blips> {
  const draw = createDraw(seed)
  const trial = await startDaemonTrial({ seed }, {}, SCALES.real)
  const told: string[] = []
  let hits = 0
  try {
    trial.go()
    const differences = await trial.convergence()
    for (let round = 0; round < rounds && differences.length === 0; round++) {
      const faults = oneOfEach(draw)
      told.push(...faults.map(fault => JSON.stringify(fault)))
      await trial.simulator.setFaults(faults)
      differences.push(...(await lookedAt(trial, [WEEK])).map(found => `at once: ${found}`))
      hits += (await trial.simulator.hitCounts()).filter(count => count > 0).length
      await trial.simulator.setFaults([])
      const day = [HOUR, HOUR, 4 * HOUR, 18 * HOUR]
      differences.push(...(await lookedAt(trial, day)).map(found => `a day later: ${found}`))
      differences.push(...unwell(trial))
    }
    return { told, hits, differences }
  } catch (error) {
    return { told, hits, differences: [String(error)] }
  } finally {
    await trial.close()
  }
}

/** Lets time pass, and returns the differences after it. */
async function lookedAt(trial: DaemonTrial, leaps: readonly number[]): Promise<string[]> {
  for (const ms of leaps) {
    await trial.leap(ms)
    await trial.quiet()
  }
  const ended = trial.fallen()
  return ended ? [`the daemon has ended: ${JSON.stringify(ended)}`] : trial.differences()
}

/** Resources that are not ok in `sync_status`. */
function unwell(trial: DaemonTrial): string[] {
  return trial
    .rows("SELECT resource, state, reason FROM sync_status WHERE state NOT IN ('ok', 'waiting')")
    .map(row => `sync_status: ${JSON.stringify(row)}`)
}
