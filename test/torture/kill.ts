import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { startTrial } from '../support/trial.ts'
import { createDraw } from './draw.ts'
import { MODES, type Mode } from './modes.ts'

/**
 * Kills and disturbs backfills, and compares their warehouses with what the simulator publishes:
 * `npx tsx test/torture/kill.ts --runs 100 [--seed 1] [--at-once 1] [--MODE …]`. The same seed gives the same trial,
 * except for the exact moment of a kill within a request. `modes.ts` and `hostile-modes.ts` say what each mode does; several
 * may be given, and the default is `--once`. A failure shows its seed, its actions, the database, which is kept, and the first
 * differences. `PARLEY_PROGRAM` names a build other than `dist/`. The exit status is 1 when a trial failed.
 */

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    'at-once': { type: 'string', default: '1' },
    ...Object.fromEntries(Object.keys(MODES).map(name => [name, { type: 'boolean' as const }])),
  },
})
const chosen = Object.entries(MODES).filter(([name]) =>
  Object.entries(values).some(([flag, on]) => flag === name && on),
)
const modes = chosen.length > 0 ? chosen : Object.entries(MODES).filter(([name]) => name === 'once')

/** Returns the failure; undefined when the trial passed. */
async function attempt(mode: Mode, seed: number): Promise<string | undefined> {
  const draw = createDraw(seed)
  const trial = await startTrial({ seed, ...mode.options?.(draw) }, mode.env)
  try {
    const told = await mode.play(trial, draw)
    const differences = await trial.differences().catch(error => [String(error)])
    const isDone = told.endsWith('exit 0') || told.endsWith(', 0')
    if (isDone && differences.length === 0) {
      rmSync(dirname(trial.database), { recursive: true })
      return undefined
    }
    return [told, trial.database, ...differences].join('\n    ')
  } finally {
    await trial.close()
  }
}

const line = (text: string): boolean => process.stdout.write(`${text}\n`)
const counts = { passed: 0, failed: 0 }
for (const [name, mode] of modes) {
  const first = Number(values.seed)
  const seeds = Array.from({ length: Number(values.runs) }, (_, number) => first + number)
  const work = async (): Promise<void> => {
    for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
      const failure = await attempt(mode, seed).catch(error => String(error))
      counts[failure === undefined ? 'passed' : 'failed'] += 1
      if (failure !== undefined) line(`${name} seed ${seed}: ${failure}`)
    }
  }
  await Promise.all(Array.from({ length: Number(values['at-once']) }, work))
  line(`${name} (${mode.about}): so far ${counts.passed} passed, ${counts.failed} failed`)
}
line(`${counts.passed} passed, ${counts.failed} failed`)
process.exitCode = counts.failed > 0 ? 1 : 0
