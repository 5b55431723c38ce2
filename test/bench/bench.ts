import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { describeMachine } from './machine.ts'
import { figuresOf, markdownOf, partsOf, type SizedTrial, simulatorFigure } from './report.ts'
import { runTrial, type TrialOptions } from './trial.ts'
import { startWorkspace } from './workspace.ts'

/**
 * Measures the built program against the simulator, each in a process of its own, and says whether the figures are
 * those that are wanted. It fails only where a run fails.
 */

const USAGE = `npm run bench -- [options]
  --messages N    size of the workspace (default 100000)
  --large         also a workspace of 1000000 messages, without texts
  --no-texts      leave out the run that reads every text
  --repeat N      runs of each kind, of which the fastest counts (default 2)
  --program FILE  measure another build than this one
  --json          print everything as JSON
`

const { values: given } = parseArgs({
  options: {
    messages: { type: 'string', default: '100000' },
    large: { type: 'boolean', default: false },
    'no-texts': { type: 'boolean', default: false },
    repeat: { type: 'string', default: '2' },
    program: { type: 'string', default: new URL('../../dist/cli.js', import.meta.url).pathname },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const LARGE = 1_000_000

interface Size {
  messages: number
  trials: readonly Pick<TrialOptions, 'withTexts' | 'withBare' | 'repeat'>[]
}

interface Measured {
  trials: readonly SizedTrial[]
  simulator: { messages: number; peakKiB: number }
}

function plan(): Size[] {
  const repeat = Number(given.repeat)
  const trial = (withTexts: boolean) => ({ withTexts, withBare: true, repeat })
  const usual = {
    messages: Number(given.messages),
    trials: given['no-texts'] ? [trial(false)] : [trial(false), trial(true)],
  }
  const large = { messages: LARGE, trials: [{ withTexts: false, withBare: false, repeat: 1 }] }
  return given.large ? [usual, large] : [usual]
}

async function measure(folder: string, { messages, trials }: Size): Promise<Measured> {
  const workspace = await startWorkspace(messages)
  const done: SizedTrial[] = []
  for (const options of trials) {
    const { withTexts, repeat } = options
    process.stderr.write(`${messages} messages ${withTexts ? 'with' : 'without'} texts, ${repeat} times\n`)
    const trial = await runTrial(workspace, { ...options, folder, program: given.program })
    done.push({ messages, withTexts, trial })
  }
  const { peakKiB } = await workspace.close()
  return { trials: done, simulator: { messages, peakKiB } }
}

function print(machine: readonly string[], measured: readonly Measured[]): void {
  const trials = measured.flatMap(each => each.trials)
  if (given.json) {
    process.stdout.write(`${JSON.stringify({ machine, measured }, null, 2)}\n`)
    return
  }
  const figures = [
    ...trials.flatMap(figuresOf),
    ...measured.map(({ simulator }) => simulatorFigure(simulator)),
  ]
  const largest = trials.find(({ withTexts }) => withTexts) ?? trials[0]
  const sections = [
    machine.map(line => `- ${line}`).join('\n'),
    'Activities and messages, without a rate limit, into an empty warehouse, from the start of the process to its end. Of repeated runs the fastest counts, and of their memory the most.',
    markdownOf(figures),
    largest ? partsOf(largest.trial) : '',
  ]
  process.stdout.write(`${sections.join('\n\n')}\n`)
}

async function main(): Promise<void> {
  if (given.help) {
    process.stdout.write(USAGE)
    return
  }
  const folder = mkdtempSync(join(tmpdir(), 'parley-bench-'))
  try {
    const machine = describeMachine(folder)
    const measured: Measured[] = []
    for (const size of plan()) measured.push(await measure(folder, size))
    print(machine, measured)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

await main()
