import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { runFeatures } from './features.ts'
import { featureFigures } from './features-report.ts'
import { runFleet } from './fleet.ts'
import { fleetFigures } from './fleet-report.ts'
import { runFreshness } from './freshness.ts'
import { freshnessFigures } from './freshness-report.ts'
import { runIdle } from './idle.ts'
import { idleFigures, idleTables } from './idle-report.ts'
import { runLatency } from './latency.ts'
import { latencyTable } from './latency-report.ts'
import { runLimits } from './limits.ts'
import { limitFigures, limitTable } from './limits-report.ts'
import { livesTable, measureLives } from './lives.ts'
import { describeMachine } from './machine.ts'
import { runPage } from './page.ts'
import { pageFigures } from './page-report.ts'
import { measurePeers } from './peers/measure.ts'
import { peersTable } from './peers/report.ts'
import { runPublish } from './publish.ts'
import { publishFigures } from './publish-report.ts'
import { runQuestions } from './questions.ts'
import { questionsAbout, questionsTable } from './questions-report.ts'
import { figuresOf, markdownOf, partsOf, type SizedTrial, simulatorFigure } from './report.ts'
import { runReports } from './reports.ts'
import { reportsAbout, reportsFigures, reportsTable } from './reports-report.ts'
import { runScopes, scopesFigures } from './scopes.ts'
import { runTrial, type TrialOptions } from './trial.ts'
import { wholeWorkspace } from './whole-workspace.ts'
import { startWorkspace } from './workspace.ts'

/**
 * Measures the built program against the simulator, each in a separate process, and compares the figures with the
 * wanted ones. It fails only if a run fails.
 */

const USAGE = `npm run bench -- [what] [options]
  backfill        how fast an empty warehouse is filled (default)
  freshness       how soon the daemon has what is published while a history loads under a tight limit
  idle            what the daemon asks for while nothing changes
  limits          how much of a rate limit that it does not know the daemon uses
  latency         requests a second by how many are sent at once, without a limit
  features        what full-text search and the typed tables of CRM objects cost a backfill of everything
  page            what the page of a large warehouse costs the daemon (with --messages 1000000: ten minutes)
  publish         what publications cost, and writing the same rows as bare Parquet files
  fleet           what one more workspace on a machine costs: many idle daemons, and all of them started at once
  scopes          what a list costs for each of 500 and of 5000 collections
  lives           processor time of simulated lives by its parts, for a request and for a day at rest
  peers           the same lists with dlt and with Airbyte's CDK, which pip installs, and what is wrong a week later
  questions       how long the questions of drizzle/questions take while a daemon writes
  reports         what the tables for reports cost: a backfill, a full build, and each kind of change
backfill and features:
  --repeat N      runs of each kind, of which the fastest counts (default 2)
backfill:
  --large         also a workspace of 1000000 messages, without texts
backfill and reports:
  --no-texts      leave out the run that reads every text
backfill, freshness, latency, features, page, peers, publish, questions and reports:
  --messages N    size of the workspace (default 100000)
fleet:
  --daemons N     how many (default 50)
lives:
  --lives N       how many (default 10)
freshness, idle, limits and fleet:
  --minutes N     how long is measured (default 5)
freshness, idle, limits, latency, publish, fleet, questions and reports:
  --keep FOLDER   leaves the databases and the daemons' logs there; publish, questions and reports then fill one only once
  --log-level L   of the daemons (default info)
all:
  --program FILE  measure another build than this one
  --json          print everything as JSON
`

const { values: given, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    messages: { type: 'string', default: '100000' },
    large: { type: 'boolean', default: false },
    'no-texts': { type: 'boolean', default: false },
    repeat: { type: 'string', default: '2' },
    minutes: { type: 'string', default: '5' },
    daemons: { type: 'string', default: '50' },
    lives: { type: 'string', default: '10' },
    keep: { type: 'string' },
    'log-level': { type: 'string', default: 'info' },
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
  const workspace = await startWorkspace({ messages })
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

async function backfill(folder: string): Promise<Outcome> {
  const measured: Measured[] = []
  for (const size of plan()) measured.push(await measure(folder, size))
  const trials = measured.flatMap(each => each.trials)
  const figures = [
    ...trials.flatMap(figuresOf),
    ...measured.map(({ simulator }) => simulatorFigure(simulator)),
  ]
  const largest = trials.find(({ withTexts }) => withTexts) ?? trials[0]
  const about =
    'Activities and messages, without a rate limit, into an empty warehouse, from the start of the process to its end. Of repeated runs the fastest counts, and of their memory the most.'
  return { measured, sections: [about, markdownOf(figures), largest ? partsOf(largest.trial) : ''] }
}

async function freshness(folder: string): Promise<Outcome> {
  const messages = Number(given.messages)
  const measured = await runFreshness({ ...daemonTrial(folder), messages })
  const about = `From publishing to queryable, with a poll of 5 s, while a history of ${messages.toLocaleString('en')} messages loads into an empty warehouse and the API allows 10 requests/s.`
  return { measured, sections: [about, markdownOf(freshnessFigures(measured))] }
}

async function idle(folder: string): Promise<Outcome> {
  const measured = await runIdle(daemonTrial(folder))
  const about = 'A warehouse that is complete, while nothing changes, with a poll of 5 s.'
  return { measured, sections: [about, markdownOf(idleFigures(measured)), ...idleTables(measured)] }
}

async function limits(folder: string): Promise<Outcome> {
  const measured = await runLimits(daemonTrial(folder))
  const about = `Daemons that load for ${given.minutes} minutes and always have more to ask for, all at the same time. Utilisation is what was let in over what the limit allows; it and the share of 429 leave out the first 30 s or two windows, whichever is longer. Time to 90 % is from the first request to the beginning of the first 10 s (or window) in which so much was used.`
  return { measured, sections: [about, limitTable(measured), markdownOf(limitFigures(measured))] }
}

async function latency(folder: string): Promise<Outcome> {
  const measured = await runLatency({ ...daemonTrial(folder), messages: Number(given.messages) })
  const about = 'A daemon that loads a long history without a limit, one run after the other.'
  return { measured, sections: [about, latencyTable(measured)] }
}

async function fleet(folder: string): Promise<Outcome> {
  const daemons = Number(given.daemons)
  const measured = await runFleet({ ...daemonTrial(folder), daemons })
  const about = `${daemons} daemons with copies of one small warehouse and the usual settings, started at the same time. Then nothing changes for ${given.minutes} minutes.`
  return { measured, sections: [about, markdownOf(fleetFigures(measured))] }
}

async function scopes(folder: string): Promise<Outcome> {
  const measured = await runScopes({ folder, program: given.program })
  const about =
    'A backfill of collections without a meeting, from an API without a limit that answers at once.'
  return { measured: [...measured.usages], sections: [about, markdownOf(scopesFigures(measured))] }
}

async function lives(): Promise<Outcome> {
  const measured = await measureLives(Number(given.lives))
  const about =
    'Lives of the simulation (test/README.md), one after the other: the whole command line, its HTTP and its database in one process with the simulator, on a virtual clock.'
  return { measured, sections: [about, livesTable(measured)] }
}

async function questions(folder: string): Promise<Outcome> {
  const measured = await runQuestions({ ...daemonTrial(folder), messages: Number(given.messages) })
  return { measured, sections: [questionsAbout(measured), questionsTable(measured)] }
}

async function reports(folder: string): Promise<Outcome> {
  const { program, messages } = given
  const withTexts = given['no-texts'] !== true
  const measured = await runReports({ folder, program, messages: Number(messages), withTexts })
  const figures = reportsFigures(measured)
  const backfills = figures.length > 0 ? [markdownOf(figures)] : []
  return { measured, sections: [reportsAbout(measured), ...backfills, reportsTable(measured)] }
}

async function withPeers(folder: string): Promise<Outcome> {
  const messages = Number(given.messages)
  const measured = await measurePeers({ folder, program: given.program, messages })
  const about = `Activities, messages, members and collections of a workspace with ${messages.toLocaleString('en')} messages: into an empty folder, and again after late arrivals, edits and deletions.`
  return { measured, sections: [about, peersTable(measured)] }
}

async function page(folder: string): Promise<Outcome> {
  const messages = Number(given.messages)
  const measured = await runPage({ ...daemonTrial(folder), messages })
  const about = `The page of a daemon with a warehouse of ${messages.toLocaleString('en')} messages in ten years, read every six seconds.`
  return { measured, sections: [about, markdownOf(pageFigures(measured))] }
}

async function publish(folder: string): Promise<Outcome> {
  const messages = Number(given.messages)
  const measured = await runPublish({ folder, program: given.program, messages })
  const about = `Publications of a warehouse with ${messages.toLocaleString('en')} messages in ten years to a folder, one after the other, each from the start of the process to its end.`
  return { measured, sections: [about, markdownOf(publishFigures(measured))] }
}

async function features(folder: string): Promise<Outcome> {
  const messages = Number(given.messages)
  const workspace = await startWorkspace(wholeWorkspace(messages))
  try {
    const { program, repeat } = given
    const measured = await runFeatures(workspace, { folder, program, repeat: Number(repeat) })
    const about = `A backfill of everything, without a rate limit, from a workspace of ${messages.toLocaleString('en')} messages and ${Math.ceil(messages / 10).toLocaleString('en')} meetings with transcripts, with both and without either.`
    return { measured, sections: [about, markdownOf(featureFigures(measured))] }
  } finally {
    await workspace.close()
  }
}

function daemonTrial(folder: string) {
  const { program, minutes } = given
  return { folder, program, minutes: Number(minutes), logLevel: given['log-level'] }
}

/** A measurement, and its report. */
interface Outcome {
  measured: unknown
  sections: readonly string[]
}

const BENCHMARKS: Readonly<Record<string, (folder: string) => Promise<Outcome>>> = {
  backfill,
  freshness,
  idle,
  limits,
  latency,
  features,
  page,
  publish,
  fleet,
  scopes,
  lives,
  peers: withPeers,
  questions,
  reports,
}

async function main(): Promise<void> {
  const run = BENCHMARKS[positionals[0] ?? 'backfill']
  if (given.help || run === undefined || positionals.length > 1) {
    process.stdout.write(USAGE)
    return
  }
  const folder = given.keep ?? mkdtempSync(join(tmpdir(), 'parley-bench-'))
  mkdirSync(folder, { recursive: true })
  try {
    const machine = describeMachine(folder)
    const { measured, sections } = await run(folder)
    const texts = [machine.map(line => `- ${line}`).join('\n'), ...sections]
    const asJson = () => JSON.stringify({ machine, measured }, null, 2)
    process.stdout.write(`${given.json ? asJson() : texts.join('\n\n')}\n`)
  } finally {
    if (given.keep === undefined) rmSync(folder, { recursive: true, force: true })
  }
}

await main()
