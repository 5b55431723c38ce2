import { isDeepStrictEqual } from 'node:util'
import { isDerived } from '../../../src/dictionary/report-tables.ts'
import { contentOf } from '../../convergence/changed-tables.ts'
import { readTruth, type Truth } from '../../support/truth.ts'
import { until } from '../../support/until.ts'
import { createDraw, type Draw } from '../../torture/draw.ts'
import { CLOCKS, type DaemonTrial, SCALES, startDaemonTrial, WEEK_MS } from '../daemon-trial.ts'
import { type Action, type Actions, type Done, USUAL } from './actions.ts'
import { overspent, silent, unneeded } from './checks.ts'
import { deletedTexts, leftAfterPurge, placesOf, purgedEarly, snapshotsOf } from './purged-texts.ts'
import { failForGood } from './stubborn.ts'

/** A random sequence of actions to a workspace and its daemon. */
export interface Life {
  /** One line for each action. */
  told: string[]
  /** Actions whose wrong answers reached no request, so that they prove nothing. */
  idle: string[]
  /** Differences between the warehouse and the API after the API has rested. */
  differences: string[]
  /** Other faults at the end: a feed that is never due, a needless task, too many requests. */
  faults: string[]
  /** Tables that were written while nothing changed. */
  rewritten: string[]
  /** The time until the warehouse was equal after the workspace came to rest. */
  restMs: number
}

export interface LifeOptions {
  /** A number of random actions, or a list of actions. */
  actions: number | readonly Action[]
  /** The actions to draw from. */
  of?: Actions
  /** The lengths of a week, a day and an hour. */
  scale?: keyof typeof SCALES
  /** The clock error of the daemon's machine until the workspace rests. */
  clockOffMs?: number
  /** One item can never be read, and all others must become equal. */
  stubborn?: boolean
  /** The life ends with the purge of all deleted rows; the clocks of service and machine agree then. */
  purges?: boolean
}

/** A seed gives the same life, except for the moments of the actions. */
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

/** The published items and the snapshots at moments of a life. */
interface Seen {
  truths: Truth[]
  snapshots: Set<string>
}

/** Does the actions, each some requests after the previous one. */
async function liveThrough(
  trial: DaemonTrial,
  draw: Draw,
  { actions, of = USUAL, purges }: LifeOptions,
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
  // A row that was never stored need not be purged.
  if (purges) life.differences.push(...(await trial.convergence({ besides: CLOCK_WENT_BACK })))
  const all = typeof actions === 'number' ? Array.from({ length: actions }, () => draw.pick(of)) : actions
  for (const action of all) {
    if (trial.fallen()) break
    tell(life, await action(trial, draw))
    trial.go()
    await trial.requests(draw.below(40))
    await look()
  }
  return seen
}

function tell(life: Pick<Life, 'told' | 'idle'>, { told, hits }: Done): void {
  life.told.push(hits === undefined ? told : `${told} (${hits} wrong answers)`)
  if (hits === 0) life.idle.push(told)
}

/** Ends all changes, faults and kills, and sets all clocks right. */
async function rest(trial: DaemonTrial): Promise<void> {
  await trial.simulator.setFaults([])
  await trial.simulator.setLimit({ kind: 'none' })
  trial.go()
  await trial.requests(1)
  trial.setClock(0)
}

/** The clock that sets `_synced_at` may have gone backwards. */
const CLOCK_WENT_BACK = /are out of order/

/** Waits until the warehouse equals the API, and returns the remaining differences. */
function converge(trial: DaemonTrial, scale: keyof typeof SCALES, besides?: RegExp): Promise<string[]> {
  const all = besides ? new RegExp(`${CLOCK_WENT_BACK.source}|${besides.source}`) : CLOCK_WENT_BACK
  return scale === 'compressed' ? trial.convergence({ besides: all }) : overWeeks(trial, SCALES[scale], all)
}

/** The longest time for holding back, checking again and confirming a real deletion. */
const MOST_WEEKS = 5

/** Lets weeks pass until the warehouse equals the API, and returns the remaining differences. */
async function overWeeks(trial: DaemonTrial, scale: number, besides: RegExp): Promise<string[]> {
  for (let weeks = 1; ; weeks++) {
    await trial.leap(scale * WEEK_MS)
    await trial.caughtUp()
    // Deletions are confirmed in real time, which no leap shortens.
    const differences = await trial.convergence({ besides, patienceMs: trial.weekMs / 7 })
    if (differences.length === 0 || weeks === MOST_WEEKS || trial.fallen()) return differences
  }
}

/** Tables for reports follow the others within half a minute, which may end after the comparison has begun. */
const followsLater = (table: string): boolean =>
  isDerived(table) || table.startsWith('_') || table.startsWith('report_settings')

/** Checks a warehouse that equals a resting API. */
async function atRest(
  trial: DaemonTrial,
  scale: keyof typeof SCALES,
): Promise<Pick<Life, 'faults' | 'rewritten'>> {
  const week = async () => {
    if (scale === 'compressed') return trial.audit()
    await trial.leap(SCALES[scale] * WEEK_MS)
    await trial.caughtUp()
  }
  // Items that only single reads show may still arrive.
  await week()
  const before = contentOf(trial.database)
  await trial.simulator.forgetRequests()
  const since = trial.serverNow()
  await week()
  const spent = scale === 'compressed' ? [] : await overspent(trial, since)
  const after = contentOf(trial.database)
  const rewritten = [...after]
    .filter(([table, rows]) => !followsLater(table) && !isDeepStrictEqual(rows, before.get(table)))
    .map(([table]) => table)
  const isNone = (found: readonly string[]): boolean => found.length === 0
  const left = await until(() => silent(trial), isNone, { patienceMs: trial.weekMs / 7 })
  return { rewritten, faults: [...left, ...(await unneeded(trial)), ...spent] }
}

/** Content that was purged too early, or not at all. */
async function purgedInTime(trial: DaemonTrial, { truths, snapshots }: Seen): Promise<string[]> {
  const early = purgedEarly(trial, [...snapshots])
  const texts = deletedTexts(truths, await readTruth(trial.simulator))
  const held = placesOf(texts, trial)
  // Otherwise the search would prove nothing.
  const unproven =
    texts.length > 0 && held.length === 0 ? ['no deleted text was in the files before the purge'] : []
  return [...early, ...unproven, ...(await leftAfterPurge(trial, texts))]
}
