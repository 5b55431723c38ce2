import { isDeepStrictEqual } from 'node:util'
import { contentOf } from '../../convergence/changed-tables.ts'
import { readTruth, type Truth } from '../../support/truth.ts'
import { until } from '../../support/until.ts'
import { createDraw, type Draw } from '../../torture/draw.ts'
import { CLOCKS, type DaemonTrial, SCALES, startDaemonTrial, WEEK_MS } from '../daemon-trial.ts'
import { overspent, silent, unneeded } from './checks.ts'
import { type Deed, type Deeds, type Done, USUAL } from './deeds.ts'
import { destroyedEarly, leftAfterPurge, placesOf, snapshotsOf, withdrawnTexts } from './remains.ts'
import { failForGood } from './stubborn.ts'

/** What happens to a workspace and to the daemon that follows it, drawn at random. */
export interface Life {
  /** One line for each deed. */
  told: string[]
  /** Deeds whose wrong answers no request has met, so that they prove nothing. */
  idle: string[]
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
  /** How many, or exactly which. */
  deeds: number | readonly Deed[]
  /** What may happen. */
  of?: Deeds
  /** How far apart a week, a day and an hour are. */
  scale?: keyof typeof SCALES
  /** How wrong the clock of the daemon's machine is until the world rests. */
  clockOffMs?: number
  /** One item that can never be read, so that everything else must become true beside it. */
  stubborn?: boolean
  /** Ends with the purge of everything that was withdrawn; the clocks of service and machine agree then. */
  purges?: boolean
}

/** The same seed is the same life, but for the moments at which things happen. */
export async function live(seed: number, options: LifeOptions): Promise<Life> {
  const { scale = 'compressed', purges = false, clockOffMs = 0 } = options
  const draw = createDraw(seed)
  const now = draw.pick(CLOCKS)
  const trial = await startDaemonTrial(
    { seed, now: purges || clockOffMs !== 0 ? 'real' : now },
    purges ? SNAPSHOTS : {},
    SCALES[scale],
  )
  const life: Life = { told: [], idle: [], differences: [], faults: [], rewritten: [], restMs: 0 }
  try {
    trial.setClock(clockOffMs)
    const seen = await liveThrough(trial, draw, options, life)
    if (options.stubborn) {
      const { differences, ...done } = await failForGood(trial, draw, besides =>
        converge(trial, scale, besides),
      )
      tell(life, done)
      life.differences.push(...differences)
    }
    await rest(trial)
    const began = performance.now()
    life.differences.push(...(await converge(trial, scale)))
    life.restMs = performance.now() - began
    if (life.differences.length > 0) return life
    Object.assign(life, await atRest(trial, scale))
    if (purges) life.faults.push(...(await purgedInTime(trial, seen)))
    return life
  } catch (error) {
    life.differences.push(String(error))
    return life
  } finally {
    await trial.close()
  }
}

const SNAPSHOTS = { PARLEY_SNAPSHOT_EVERY: 'daily' }

/** What was published, and which snapshots there were, at moments of a life. */
interface Seen {
  truths: Truth[]
  snapshots: Set<string>
}

/** Does the deeds, each some requests after the one before. */
async function liveThrough(
  trial: DaemonTrial,
  draw: Draw,
  { deeds, of = USUAL, purges }: LifeOptions,
  life: Pick<Life, 'told' | 'idle' | 'differences'>,
): Promise<Seen> {
  const seen: Seen = { truths: [], snapshots: new Set() }
  const look = async () => {
    if (!purges) return
    seen.truths.push(await readTruth(trial.simulator))
    for (const name of snapshotsOf(trial)) seen.snapshots.add(name)
  }
  await look()
  trial.go()
  // What was never stored need not be purged.
  if (purges) life.differences.push(...(await trial.convergence({ besides: CLOCK_WENT_BACK })))
  const all = typeof deeds === 'number' ? Array.from({ length: deeds }, () => draw.pick(of)) : deeds
  for (const deed of all) {
    if (trial.fallen()) break
    tell(life, await deed(trial, draw))
    trial.go()
    await trial.requests(draw.below(40))
    await look()
  }
  return seen
}

function tell(life: Pick<Life, 'told' | 'idle'>, { told, struck }: Done): void {
  life.told.push(struck === undefined ? told : `${told} (${struck} wrong answers)`)
  if (struck === 0) life.idle.push(told)
}

/** From now on nothing is changed, refused or killed, and all clocks are right. */
async function rest(trial: DaemonTrial): Promise<void> {
  await trial.simulator.setFaults([])
  await trial.simulator.setLimit({ kind: 'none' })
  trial.go()
  await trial.requests(1)
  trial.setClock(0)
}

/** When rows were stored is told by a clock that may have gone backwards. */
const CLOCK_WENT_BACK = /are out of order/

/** Waits until the warehouse equals the world, and gives what is still different, if anything. */
function converge(trial: DaemonTrial, scale: keyof typeof SCALES, besides?: RegExp): Promise<string[]> {
  const all = besides ? new RegExp(`${CLOCK_WENT_BACK.source}|${besides.source}`) : CLOCK_WENT_BACK
  return scale === 'compressed' ? trial.convergence({ besides: all }) : overWeeks(trial, SCALES[scale], all)
}

/** So long something that is really gone may be held back, asked again and confirmed. */
const MOST_WEEKS = 5

/** Lets weeks pass until the warehouse equals the world, and gives what is still different, if anything. */
async function overWeeks(trial: DaemonTrial, scale: number, besides: RegExp): Promise<string[]> {
  for (let weeks = 1; ; weeks++) {
    await trial.leap(scale * WEEK_MS)
    await trial.caughtUp()
    // What was found is settled in its own time, which no leap shortens.
    const differences = await trial.convergence({ besides, patienceMs: trial.weekMs / 7 })
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

/** What was destroyed too early, or is not in the end. */
async function purgedInTime(trial: DaemonTrial, { truths, snapshots }: Seen): Promise<string[]> {
  const early = destroyedEarly(trial, [...snapshots])
  const texts = withdrawnTexts(truths, await readTruth(trial.simulator))
  const held = placesOf(texts, trial)
  // Else the search would prove nothing.
  const unproven = texts.length > 0 && held.length === 0 ? ['no text of what was withdrawn is found'] : []
  return [...early, ...unproven, ...(await leftAfterPurge(trial, texts))]
}
