import { type LimitCase, limitCaseOf, SHAPE_NAMES, shapeOf } from './limit-cases.ts'
import { type Figures, figuresOf } from './limited.ts'

/** `npm run simulate -- limits`: the governor against limits that it does not know. */

/** What the governor is to reach with any limit. */
const AIM = { used: 1 / 1.3, usedLater: 1 / 1.1, refused: 0.01 }
/** Each window that allows fewer requests may have one refusal. */
const SMALL_WINDOW = 100

/** The aims that the figures miss, in words. */
export function missedAims(
  { limit, forMs }: LimitCase,
  { used, usedLater, refused, requests }: Figures,
): string[] {
  const windows = 'windowMs' in limit && limit.count < SMALL_WINDOW ? forMs / limit.windowMs : 0
  const mayRefuse = Math.max(AIM.refused * requests, windows)
  return [
    ...(used < AIM.used ? [`used ${used.toFixed(2)} of what is possible`] : []),
    ...(usedLater < AIM.usedLater ? [`used ${usedLater.toFixed(2)} after the start`] : []),
    ...(refused * requests > mayRefuse ? [`${percent(refused)} refused`] : []),
  ]
}

interface Run {
  limited: LimitCase
  figures: Figures
  missed: readonly string[]
}

export async function simulateLimits(
  first: number,
  count: number,
  say: (...lines: readonly string[]) => void,
): Promise<boolean> {
  const runs: Run[] = []
  for (let seed = first; seed < first + count; seed += 1) {
    const limited = limitCaseOf(seed)
    const figures = await figuresOf(limited)
    const run = { limited, figures, missed: missedAims(limited, figures) }
    runs.push(run)
    say(told(run))
  }
  say('', ...tableOf(runs))
  return runs.every(({ missed }) => missed.length === 0)
}

const told = ({ limited: { seed, limit, faults, answerMs }, figures, missed }: Run) =>
  [
    missed.length === 0 ? 'reached' : 'MISSED',
    `seed ${seed}`,
    shapeOf(seed),
    JSON.stringify(limit),
    ...faults.map(fault => JSON.stringify(fault)),
    `${answerMs} ms`,
    `${figures.requests} requests`,
    missed.length === 0 ? `used ${figures.used.toFixed(2)}` : missed.join(', '),
  ].join('  ')

function tableOf(runs: readonly Run[]): string[] {
  const rows = SHAPE_NAMES.flatMap(shape => {
    const ofShape = runs.filter(({ limited }) => shapeOf(limited.seed) === shape)
    return ofShape.length === 0 ? [] : [rowOf(shape, ofShape)]
  })
  return [
    '| limit | used, mean | least | after the start, least | refused, most | aims reached | least: seed |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...[...rows, rowOf('all', runs)].map(cells => `| ${cells.join(' | ')} |`),
  ]
}

function rowOf(name: string, runs: readonly Run[]): string[] {
  const used = runs.map(({ figures }) => figures.used)
  const least = Math.min(...used)
  const worst = runs.find(({ figures }) => figures.used === least)
  return [
    name,
    (used.reduce((sum, value) => sum + value, 0) / used.length).toFixed(2),
    least.toFixed(2),
    Math.min(...runs.map(({ figures }) => figures.usedLater)).toFixed(2),
    percent(Math.max(...runs.map(({ figures }) => figures.refused))),
    `${runs.filter(({ missed }) => missed.length === 0).length} of ${runs.length}`,
    String(worst?.limited.seed),
  ]
}

const percent = (share: number) => `${(100 * share).toFixed(1)} %`
