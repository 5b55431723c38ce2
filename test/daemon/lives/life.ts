import { isDeepStrictEqual } from 'node:util'
import { contentOf } from '../../convergence/changed-tables.ts'
import { until } from '../../support/until.ts'
import { createDraw, type Draw } from '../../torture/draw.ts'
import { CLOCKS, type DaemonTrial, SCALES, startDaemonTrial, WEEK_MS } from '../daemon-trial.ts'
import { overspent, silent, unneeded } from './checks.ts'
import { type Deeds, USUAL } from './deeds.ts'

/** What happens to a workspace and to the daemon that follows it, drawn at random. */
export interface Life {
  /** One line for each deed. */
  told: string[]
  /** Where the warehouse still is not what the world publishes after that has rested. */
  differences: string[]
  /** What else is not as it should be then: a feed that is never due, a task for nothing, too many requests. */
  faults: string[]
  /** Tables that were written while nothing changed. */
  rewritten: string[]
  /** How long it took to become equal once the world rested. */
  restMs: number
}

export interface LifeOptions {
  deeds: number
  /** What may happen. */
  of?: Deeds
  /** How far apart a week, a day and an hour are. */
  scale?: keyof typeof SCALES
}

/** The same seed is the same life, but for the moments at which things happen. */
export async function live(seed: number, options: LifeOptions): Promise<Life> {
  const { scale = 'compressed' } = options
  const draw = createDraw(seed)
  const trial = await startDaemonTrial({ seed, now: draw.pick(CLOCKS) }, {}, SCALES[scale])
  const told: string[] = []
  const life: Life = { told, differences: [], faults: [], rewritten: [], restMs: 0 }
  try {
    await liveThrough(trial, draw, { ...options, told })
    await rest(trial)
    const began = performance.now()
    const differences = await (scale === 'compressed' ? trial.convergence() : overWeeks(trial, SCALES[scale]))
    const restMs = performance.now() - began
    return { ...life, differences, restMs, ...(differences.length === 0 && (await atRest(trial, scale))) }
  } catch (error) {
    return { ...life, differences: [String(error)] }
  } finally {
    await trial.close()
  }
}

/** Does so many deeds, each some requests after the one before. */
async function liveThrough(
  trial: DaemonTrial,
  draw: Draw,
  { deeds, of = USUAL, told }: LifeOptions & { told: string[] },
): Promise<void> {
  trial.go()
  for (let done = 0; done < deeds && !trial.fallen(); done++) {
    told.push(await draw.pick(of)(trial, draw))
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

/** So long something that is really gone may be held back, asked again and confirmed. */
const MOST_WEEKS = 5

/** Lets weeks pass until the warehouse equals the world, and gives what is still different, if anything. */
async function overWeeks(trial: DaemonTrial, scale: number): Promise<string[]> {
  for (let weeks = 1; ; weeks++) {
    await trial.leap(scale * WEEK_MS)
    await trial.caughtUp()
    // What was found is settled in its own time, which no leap shortens.
    const differences = await trial.convergence({ patienceMs: trial.weekMs / 7 })
    if (differences.length === 0 || weeks === MOST_WEEKS || trial.fallen()) return differences
  }
}

/** What is seen of a warehouse that is equal to a world that rests. */
async function atRest(
  trial: DaemonTrial,
  scale: keyof typeof SCALES,
): Promise<Pick<Life, 'faults' | 'rewritten'>> {
  const week = async () => {
    if (scale === 'compressed') return trial.audit()
    await trial.leap(SCALES[scale] * WEEK_MS)
    await trial.caughtUp()
  }
  // What only single reads tell of may still come.
  await week()
  const before = contentOf(trial.database)
  await trial.simulator.forgetRequests()
  const since = trial.serverNow()
  await week()
  const spent = scale === 'compressed' ? [] : await overspent(trial, since)
  const after = contentOf(trial.database)
  const rewritten = [...after]
    .filter(([table, rows]) => !isDeepStrictEqual(rows, before.get(table)))
    .map(([table]) => table)
  const isNone = (found: readonly string[]): boolean => found.length === 0
  const left = await until(() => silent(trial), isNone, { patienceMs: trial.weekMs / 7 })
  return { rewritten, faults: [...left, ...(await unneeded(trial)), ...spent] }
}
