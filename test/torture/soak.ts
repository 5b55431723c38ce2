import { parseArgs } from 'node:util'
import { live } from '../daemon/world.ts'
import { longMonth } from './month.ts'

/**
 * The daemon for longer than a test lasts:
 * `npx tsx test/torture/soak.ts [--minutes 5] [--seed 1]`: a month in so many minutes, under small changes; its
 * memory, files and handles must stay as they are;
 * `npx tsx test/torture/soak.ts --lives 50 [--seed 1] [--deeds 15] [--at-once 2]`: lives of changes, faults and
 * kills, after each of which the warehouse must equal the world. Exits 1 when anything failed.
 */

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: '1' },
    lives: { type: 'string' },
    deeds: { type: 'string', default: '15' },
    'at-once': { type: 'string', default: '1' },
  },
})

const line = (text: string): boolean => process.stdout.write(`${text}\n`)

interface Counts {
  passed: number
  failed: number
}

async function liveMany(lives: number): Promise<Counts> {
  const counts = { passed: 0, failed: 0 }
  const seeds = Array.from({ length: lives }, (_, number) => Number(values.seed) + number)
  const work = async (): Promise<void> => {
    for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
      const began = performance.now()
      const { told, differences, rewritten, restMs } = await live(seed, { deeds: Number(values.deeds) })
      const isTrue = differences.length === 0 && rewritten.length === 0
      counts[isTrue ? 'passed' : 'failed'] += 1
      const seconds = (ms: number): string => (ms / 1000).toFixed(1)
      const all = seconds(performance.now() - began)
      line(
        `seed ${seed}: ${isTrue ? 'true' : 'FAILED'} ${seconds(restMs)} s after it rested, ${all} s in all`,
      )
      if (!isTrue)
        line([...told, ...differences, `rewritten: ${rewritten}`].map(text => `    ${text}`).join('\n'))
    }
  }
  await Promise.all(Array.from({ length: Number(values['at-once']) }, work))
  return counts
}

const { passed, failed } = await (values.lives === undefined
  ? longMonth({ minutes: Number(values.minutes), seed: Number(values.seed), line })
  : liveMany(Number(values.lives)))
line(`${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 ? 1 : 0
