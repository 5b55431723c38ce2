import { existsSync, readFileSync } from 'node:fs'
import { Option } from 'commander'
import { createAsker } from '../api/ask.ts'
import { createGovernor } from '../api/governor.ts'
import { createApiClient } from '../app.ts'
import { isoInstant, systemClock } from '../clock.ts'
import { type ApiSettings, type LoadedSettings, loadSettings } from '../config.ts'
import { checkApi, ignoredProxy } from '../engine/doctor/api.ts'
import { type Finding, finder } from '../engine/doctor/check.ts'
import { lookAtDatabase, MACHINE_CHECKS } from '../engine/doctor/machine.ts'
import { EXIT_STATUS, type ExitStatus, StopError } from '../errors.ts'
import { harmlessLines, jsonLine } from '../harmless.ts'
import { RESOURCE_NAMES } from '../resource.ts'
import type { Sqlite } from '../store/open.ts'
import { requestsNoted } from '../store/requests-today.ts'
import { createState } from '../store/state.ts'
import { statementCache } from '../store/statements.ts'
import { isWarehouse } from '../store/status.ts'
import {
  type CommandContext,
  type CommandDefinition,
  type CommandInput,
  mayColour,
  READING,
  settingsIn,
} from './command.ts'

interface DoctorOptions {
  json?: boolean
}

export const doctorCommand: CommandDefinition<DoctorOptions> = {
  description:
    'Checks the settings, the key, the workspace, every endpoint of the API, the clock, the disk and the database, and says for what is wrong what to do. It writes nothing and reads a record or two of each kind. Warnings do not change the exit status.',
  settings: settingsIn('api', 'database', 'sync', 'access_log'),
  options: [new Option('--json', 'print one JSON document on standard output')],
  examples: [
    ['parley doctor', 'checks all there is'],
    ['parley doctor --json', 'the same for programs'],
  ],
  async run(context, input) {
    const json = input.options.json === true
    const report = createReport(context, json)
    const { loaded, settings } = checkSettings(context, input, report.add)
    const usedToday = settings ? checkMachine(settings, report.add) : 0
    if (loaded) {
      for (const finding of ignoredProxy(context.env, loaded.settings.api.baseUrl)) report.add(finding)
      await checkTheApi(context, { settings: loaded.settings, usedToday }, report.add)
    }
    return report.end(nextStep(input.flags.config, settings?.database.path))
  },
}

/** What to do when nothing is wrong. */
function nextStep(config: string | undefined, database: string | undefined): string {
  const flag = config === undefined ? '' : ` --config ${config}`
  return database !== undefined && existsSync(database)
    ? `parley backfill${flag} brings the warehouse up to date once; parley daemon${flag} keeps it so.`
    : `parley backfill --plan${flag} says what reading everything costs; parley backfill${flag} reads it.`
}

type Add = (finding: Finding) => void

interface Checked {
  /** With all that asking the API needs. */
  loaded?: LoadedSettings<ApiSettings>
  /** What is enough to look at the database. */
  settings?: LoadedSettings['settings']
}

function checkSettings({ env, cwd }: CommandContext, { flags }: CommandInput<object>, add: Add): Checked {
  const line = finder('settings')
  const request = { flags, env, cwd, resourceNames: RESOURCE_NAMES }
  try {
    const loaded = loadSettings({ ...request, requireApi: true })
    add(line.ok(loaded.file ?? 'from the environment, flags and defaults; there is no settings file'))
    for (const warning of loaded.warnings) add(line.warning(warning))
    return { loaded, settings: loaded.settings }
  } catch (error) {
    if (!(error instanceof StopError)) throw error
    for (const problem of problemsIn(error.message))
      add(line.wrong(problem, error.exitStatus, error.hint ?? ''))
  }
  try {
    return { settings: loadSettings({ ...request, ...READING }).settings }
  } catch (error) {
    if (error instanceof StopError) return {}
    throw error
  }
}

/** One problem each, where the message tells several. */
function problemsIn(message: string): readonly string[] {
  const [first = message, ...others] = message.split('\n')
  return others.length === 0
    ? [first.replace(/^The settings are wrong: /, '')]
    : others.map(text => text.trim())
}

interface Manifest {
  version: string
  engines: { node: string }
}

/** Returns how many requests of the day are used already. */
function checkMachine({ api, database }: LoadedSettings['settings'], add: Add): number {
  const manifest: Manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const looked = lookAtDatabase(database.path)
  try {
    for (const check of MACHINE_CHECKS) {
      const context = {
        ...looked,
        database: database.path,
        workspace:
          api.workspaceId !== undefined && api.baseUrl !== undefined
            ? { id: api.workspaceId, baseUrl: api.baseUrl }
            : undefined,
        mode: database.mode,
        version: manifest.version,
        engines: manifest.engines.node,
        node: process.versions.node,
      }
      for (const finding of check(context)) add(finding)
    }
    return requestsNotedAt(looked.db)
  } finally {
    looked.db?.close()
  }
}

function requestsNotedAt(db: Sqlite | undefined): number {
  if (!db || !isWarehouse(db)) return 0
  const { meta } = createState(statementCache(db))
  return requestsNoted(meta, isoInstant(systemClock().now()).slice(0, 10))
}

/** Of a request whose answer stays unusable. */
const MOST_ATTEMPTS = 3

async function checkTheApi(
  { signal, stderr }: CommandContext,
  { settings, usedToday }: { settings: ApiSettings; usedToday: number },
  add: Add,
): Promise<void> {
  const clock = systemClock()
  const { api, accessLog } = settings
  const governor = createGovernor({
    clock,
    random: Math.random,
    ceilings: {
      requestsPerSecond: api.maxRequestsPerSecond,
      concurrency: api.maxConcurrency,
      requestsPerDay: api.maxRequestsPerDay,
    },
    usedToday,
  })
  const client = createApiClient(settings, clock)
  const asker = createAsker({
    client,
    governor,
    clock,
    random: Math.random,
    giveUpMs: api.giveUpSeconds * 1000,
    signal,
    mostAttempts: MOST_ATTEMPTS,
    onPause: until => stderr.write(`parley: the API asks to wait until ${isoInstant(until)}\n`),
  })
  const context = {
    asker,
    access: client.access,
    accessLogEndParameter: accessLog.endParameter,
    now: clock.now,
  }
  try {
    for await (const finding of checkApi(context)) add(finding)
  } finally {
    await client.close()
    governor.close()
  }
}

/** What a backfill would come upon first comes first. */
const FIRST_MET: readonly ExitStatus[] = [
  EXIT_STATUS.settings,
  EXIT_STATUS.databaseUnavailable,
  EXIT_STATUS.refused,
  EXIT_STATUS.apiUnavailable,
]

/** For people each finding is written as it is made, and each hint once; for programs all together at the end. */
function createReport({ stdout, env }: CommandContext, json: boolean) {
  const findings: Finding[] = []
  const hints = new Set<string>()
  const colour = mayColour(stdout, env)
  return {
    add(finding: Finding) {
      findings.push(finding)
      if (json) return
      const { hint = '' } = finding
      stdout.write(lineFor(finding, hints.has(hint) ? '' : hint, colour))
      hints.add(hint)
    },
    end(next: string): ExitStatus {
      const met = findings.flatMap(({ status }) => status ?? [])
      const status = FIRST_MET.find(each => met.includes(each)) ?? met[0] ?? EXIT_STATUS.done
      const count = (mark: Finding['mark']) => findings.filter(finding => finding.mark === mark).length
      const [wrong, warnings] = [count('wrong'), count('warning')]
      const step = wrong === 0 ? next : 'Do what the arrows say, then run parley doctor again.'
      const all = { ok: wrong === 0, exit_status: status, wrong, warnings, findings, next: step }
      if (json) stdout.write(jsonLine(all))
      else stdout.write(`\n${summaryOf(wrong, warnings)}\nNext: ${step}\n`)
      return status
    },
  }
}

const MARKS: Readonly<Record<Finding['mark'], { text: string; colour: number }>> = {
  ok: { text: 'ok', colour: 32 },
  note: { text: 'note', colour: 36 },
  warning: { text: 'warning', colour: 33 },
  wrong: { text: 'WRONG', colour: 31 },
}

function lineFor({ mark, check, found }: Finding, hint: string, colour: boolean): string {
  const { text, colour: code } = MARKS[mark]
  const padded = text.padEnd(7)
  const shown = colour ? `\u001b[${code}m${padded}\u001b[0m` : padded
  const arrow = hint === '' ? '' : `\n         → ${hint}`
  return `${shown}  ${harmlessLines(`${check}: ${found}${arrow}`)}\n`
}

function summaryOf(wrong: number, warnings: number): string {
  const counted = (count: number, one: string, more: string) => `${count} ${count === 1 ? one : more}`
  const warned = warnings === 0 ? '' : `, ${counted(warnings, 'warning', 'warnings')}`
  return wrong === 0
    ? `Nothing is wrong${warned}.`
    : `${counted(wrong, 'thing is', 'things are')} wrong${warned}.`
}
