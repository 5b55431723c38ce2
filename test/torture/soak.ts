import { parseArgs } from 'node:util'
import { blips } from '../daemon/lives/blips.ts'
import { HOSTILE_NAMES, withUsual } from '../daemon/lives/hostile-actions.ts'
import { live } from '../daemon/lives/life.ts'
import { longMonth } from './month.ts'

/**
 * Runs the daemon for longer than a test. Exits 1 when anything failed.
 *
 * - `npx tsx test/torture/soak.ts [--minutes 5] [--seed 1]`: a month that takes this many minutes, with small changes.
 *   The daemon's memory, files and handles must not grow.
 * - `npx tsx test/torture/soak.ts --lives 50 [--seed 1] [--actions 15] [--at-once 2]`: lives with changes, faults and
 *   kills. After each the warehouse must equal the workspace, every resource falls due within a week, no task reads what
 *   a list shows, and no item is read more often than necessary. An action whose wrong answers reach no request is idle.
 *   In every other life weeks, days and hours are distinct; `--apart` and `--compressed` use one of the two scales in
 *   all lives. `--for-good`: at the end one item can never be read, and all others must become equal. `--purged`: at the
 *   end two months pass with the daemon off; then no file of the folder contains a deleted text, and before them
 *   nothing is purged and no snapshot removed. `--off=-40`: the clock is off by this many days at the start. `--hostile`, or the names of some
 *   of its actions (`--blips --lag …`): the service gives wrong answers.
 * - `npx tsx test/torture/soak.ts --still 10 [--seed 1] [--rounds 4]`: a workspace that does not change, behind an API
 *   that gives single wrong answers. Intervals are real, and time leaps. The warehouse never shows a wrong answer.
 */

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: '1' },
    lives: { type: 'string' },
    still: { type: 'string' },
    apart: { type: 'boolean' },
    compressed: { type: 'boolean' },
    hostile: { type: 'boolean' },
    'for-good': { type: 'boolean' },
    purged: { type: 'boolean' },
    off: { type: 'string', default: '0' },
    ...Object.fromEntries(HOSTILE_NAMES.map(name => [name, { type: 'boolean' as const }])),
    rounds: { type: 'string', default: '4' },
    actions: { type: 'string', default: '15' },
    'at-once': { type: 'string', default: '1' },
  },
})

const flags = Object.entries(values).flatMap(([name, value]) => (value === true ? [name] : []))

const line = (text: string): boolean => process.stdout.write(`${text}\n`)

interface Counts {
  passed: number
  failed: number
}

interface Trial {
  told: string[]
  /** The faults at the end. */
  wrong: string[]
  /** Other remarks. */
  about: string
}

async function many(runs: number, attempt: (seed: number) => Promise<Trial>): Promise<Counts> {
  const counts = { passed: 0, failed: 0 }
  const seeds = Array.from({ length: runs }, (_, number) => Number(values.seed) + number)
  const work = async (): Promise<void> => {
    for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
      const began = performance.now()
      const { told, wrong, about } = await attempt(seed)
      counts[wrong.length === 0 ? 'passed' : 'failed'] += 1
      const verdict = wrong.length === 0 ? 'passed' : 'FAILED'
      line(`seed ${seed}: ${verdict}, ${seconds(performance.now() - began)} s in all${about}`)
      if (wrong.length > 0) line([...told, ...wrong].map(text => `    ${text}`).join('\n'))
    }
  }
  await Promise.all(Array.from({ length: Number(values['at-once']) }, work))
  return counts
}

const seconds = (ms: number): string => (ms / 1000).toFixed(1)

async function oneLife(seed: number): Promise<Trial> {
  const isApart = values.apart || (!values.compressed && seed % 2 === 0)
  const { told, idle, differences, faults, rewritten, restMs } = await live(seed, {
    actions: Number(values.actions),
    of: withUsual(HOSTILE_NAMES.filter(name => values.hostile || flags.includes(name))),
    scale: isApart ? 'apart' : 'compressed',
    stubborn: values['for-good'] === true,
    purges: values.purged === true,
    clockOffMs: Number(values.off) * 86_400_000,
  })
  const wrong = [...differences, ...faults, ...rewritten.map(table => `rewritten: ${table}`)]
  const about = `, ${seconds(restMs)} s after its last change, ${told.length} actions, ${idle.length} of them idle`
  return { told, wrong, about }
}

async function oneStillWorld(seed: number): Promise<Trial> {
  const { told, hits, differences } = await blips(seed, { rounds: Number(values.rounds) })
  return { told, wrong: differences, about: `, ${hits} of ${told.length} wrong answers were given` }
}

function run(): Promise<Counts> {
  if (values.lives !== undefined) return many(Number(values.lives), oneLife)
  if (values.still !== undefined) return many(Number(values.still), oneStillWorld)
  return longMonth({ minutes: Number(values.minutes), seed: Number(values.seed), line })
}

const { passed, failed } = await run()
line(`${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
