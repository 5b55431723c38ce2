import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import PQueue from 'p-queue'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { type Life, type Lived, lifeOf, live } from './life.ts'
import { simulateLimits } from './limit-runs.ts'

/** `npm run simulate`: lives by their seeds, the life of a file that an earlier run has written, or limits. */

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: '1' },
    lives: { type: 'string', default: '1' },
    days: { type: 'string', default: '2' },
    deeds: { type: 'string', default: '14' },
    rest: { type: 'string', default: '1' },
    poll: { type: 'string' },
    cases: { type: 'string', default: '26' },
    trace: { type: 'boolean', default: false },
    'until-failed': { type: 'boolean', default: false },
    'in-process': { type: 'boolean', default: false },
  },
})

const say = (...lines: readonly string[]) => process.stdout.write(`${lines.join('\n')}\n`)

function number(name: 'seed' | 'lives' | 'days' | 'deeds' | 'rest' | 'poll' | 'cases'): number {
  const found = Number(values[name])
  if (Number.isSafeInteger(found) && found >= 0) return found
  process.stderr.write(`--${name} is ${values[name]}: expected a whole number\n`)
  process.exit(EXIT_STATUS.usage)
}

/** The life without the deeds that its failure does not need. */
async function shrunk(life: Life): Promise<Life> {
  let least = life
  for (let at = least.deeds.length - 1; at >= 0; at -= 1) {
    const fewer = { ...least, deeds: least.deeds.filter((_, index) => index !== at) }
    if ((await live(fewer)).findings.length > 0) least = fewer
  }
  return least
}

async function report(failed: Life): Promise<void> {
  const life = await shrunk(failed)
  const { findings, trace } = await live(life)
  const file = join(tmpdir(), `parley-life-${life.seed}.json`)
  writeFileSync(file, JSON.stringify({ life, findings, trace }, null, 2))
  say(`  ${life.resources.join(', ')}; polls of ${life.pollSeconds} s`)
  say(...life.deeds.map(deed => `  ${JSON.stringify(deed)}`.slice(0, 300)))
  say(...findings.slice(0, 3).map(finding => `  ${finding}`))
  say(`  again: npm run simulate -- ${file}`)
}

const told = (life: Life, { findings, requests, days, digests }: Lived) =>
  [
    findings.length === 0 ? 'passed' : 'FAILED',
    `seed ${life.seed}`,
    `${days.toFixed(1)} days`,
    `${requests} requests`,
    `trace ${digests.requests.slice(0, 8)}`,
    `rows ${digests.rows.slice(0, 8)}`,
  ].join('  ')

/** A killed program keeps its memory, so a process has no more lives than this. */
const MOST_LIVES = 50

const SUMMARY = /^(\d+) passed, (\d+) failed$/

/** One process for each processor at a time. Whether all lives passed. */
async function simulateInProcesses(first: number, count: number): Promise<boolean> {
  const processors = availableParallelism()
  const processes = new PQueue({ concurrency: processors })
  const most = Math.min(MOST_LIVES, Math.ceil(count / processors))
  let [passed, failed] = [0, 0]
  for (let at = 0; at < count; at += most) {
    const lives = Math.min(most, count - at)
    void processes.add(async () => {
      const [node = '', ...argv] = process.argv
      // The last of repeated options counts.
      argv.push(`--seed=${first + at}`, `--lives=${lives}`, '--in-process')
      const child = spawn(node, [...process.execArgv, ...argv], { stdio: ['ignore', 'pipe', 'inherit'] })
      const exited = once(child, 'exit')
      let summary: RegExpExecArray | null = null
      for await (const line of createInterface(child.stdout)) {
        summary = SUMMARY.exec(line)
        if (summary === null) say(line)
      }
      await exited
      if (summary === null) say(`the process of the seeds from ${first + at} ended too early`)
      passed += Number(summary?.[1] ?? 0)
      failed += Number(summary?.[2] ?? lives)
      if (failed > 0 && values['until-failed']) processes.clear()
    })
  }
  await processes.onIdle()
  say(`${passed} passed, ${failed} failed`)
  return failed === 0
}

/** Whether all passed. */
async function simulateLives(first: number, file: string | undefined): Promise<boolean> {
  const shape = {
    days: number('days'),
    deeds: number('deeds'),
    rest: number('rest'),
    ...(values.poll !== undefined && { poll: number('poll') }),
  }
  const lives: readonly Life[] =
    file === undefined
      ? Array.from({ length: number('lives') }, (_, index) => lifeOf(first + index, shape))
      : [JSON.parse(readFileSync(file, 'utf8')).life]
  let failed = 0
  for (const life of lives) {
    const lived = await live(life)
    say(told(life, lived))
    if (values.trace) say(...lived.trace)
    if (lived.findings.length === 0) continue
    failed += 1
    if (file === undefined && !values['until-failed']) await report(life)
    else say(...lived.findings)
    if (values['until-failed']) break
  }
  say(`${lives.length - failed} passed, ${failed} failed`)
  return failed === 0
}

const [what] = positionals
const first = number('seed')
const simulate = () => {
  if (what === 'limits') return simulateLimits(first, number('cases'), say)
  const count = number('lives')
  return what === undefined && count > 1 && !values['in-process']
    ? simulateInProcesses(first, count)
    : simulateLives(first, what)
}
process.exitCode = (await simulate()) ? 0 : 1
