import { existsSync, readFileSync } from 'node:fs'
import { Option } from 'commander'
import type { LearnedRate } from '../api/governor/pace.ts'
import { type ApiReaderOptions, withApiReader } from '../app/api-client.ts'
import { systemClock, utcDay } from '../base/clock.ts'
import { EXIT_STATUS, type ExitStatus, StopError } from '../base/errors.ts'
import { jsonLine, safeMultilineText, shellWord } from '../base/safe-text.ts'
import { loadSettings } from '../config/load-settings.ts'
import type { ApiSettings, LoadedSettings } from '../config/loaded-settings.ts'
import { RESOURCE_NAMES } from '../declare/resource-names.ts'
import { checkApi, routeFindings } from '../doctor/api.ts'
import { dataFindings } from '../doctor/data.ts'
import { type Finding, findingsOf } from '../doctor/finding.ts'
import {
  checkMachine,
  databaseFile,
  isEmpty,
  type MachineContext,
  openForChecks,
  uncheckedFinding,
} from '../doctor/machine.ts'
import { publishingFindings } from '../doctor/publishing.ts'
import { type RunningWriter, runningWriter } from '../doctor/writer.ts'
import { declaredTableNames } from '../export/chosen-tables.ts'
import { nextTurn } from '../export/partitions.ts'
import { needsToken } from '../server/access.ts'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { META, readMeta, readNote } from '../store/sync/meta.ts'
import { publishedTargets } from '../store/sync/publications.ts'
import { readRequestsToday } from '../store/sync/requests-today.ts'
import { hasColours, styledText } from '../terminal/output.ts'
import { countText } from '../terminal/wording.ts'
import {
  type CommandContext,
  type CommandDefinition,
  type CommandInput,
  DATABASE_ONLY,
  loadCommandSettings,
  settingsOfSections,
} from './base/command.ts'

interface DoctorOptions {
  json?: boolean
  data?: boolean
}

export const doctorCommand: CommandDefinition<DoctorOptions> = {
  description:
    'Checks the settings, the API key, the workspace, every endpoint of the API, the clock, the disk, the database and the target of publications, and suggests a fix for each problem. It changes no data and sends a few requests to each endpoint. Warnings do not change the exit status. With --data it tests the content of the database instead and sends nothing: keys, listed values, references and sums. What fails is named by keys, never by content.',
  settings: settingsOfSections('api', 'database', 'sync', 'access_log', 'publish'),
  options: [
    new Option('--data', 'test the content of the database, and nothing else'),
    new Option('--json', 'print one JSON document on standard output'),
  ],
  examples: [
    ['parley doctor', 'checks everything'],
    ['parley doctor --json', 'the same for programs'],
    ['parley doctor --data --database copy.db', 'tests the content of a copy, without settings and a key'],
  ],
  async run(context, input) {
    const json = input.options.json === true
    const report = createReport(context, json)
    if (input.options.data === true) return checkData(context, input, report)
    const { loaded, settings } = checkSettings(context, input, report.add)
    const { usedToday, writer, identity, published, learned } = settings
      ? runMachineChecks(settings, context.version, report.add)
      : NOTHING_KNOWN
    if (loaded) {
      const { proxies, api } = loaded.settings
      report.add(...routeFindings(proxies, context.env, api.baseUrl))
      report.add(...statusServerFindings(loaded.settings.http))
      const publishing = { settings: loaded.settings, identity, published }
      const { signal } = context
      report.add(...(await publishingFindings({ ...publishing, clock: systemClock(), signal })))
      if (usedToday === undefined) report.add(findingsOf('API').note(DAY_UNKNOWN))
      else {
        const limits = { usedToday, initial: learned }
        await runApiChecks(context, { settings: loaded.settings, limits }, report.add)
      }
    }
    return report.end(nextStep(input.flags.config, settings?.database.path, writer))
  },
}

/** Tests the content of the database. Of the settings, only the path of the database matters. */
async function checkData(
  context: CommandContext,
  input: CommandInput<object>,
  report: Report,
): Promise<ExitStatus> {
  const { path } = loadCommandSettings(context, input, DATABASE_ONLY).settings.database
  const { db, openError } = openForChecks(path)
  const line = findingsOf('database')
  try {
    if (openError) report.add(...databaseFile({ database: path, db, openError }, line))
    else if (!db || isEmpty(db))
      report.add(
        line.wrong(
          `${path} ${db ? 'is empty' : 'does not exist'}, so nothing was tested`,
          EXIT_STATUS.databaseUnavailable,
          'Check the path in --database or database.path. parley backfill creates and fills a new database.',
        ),
      )
    else {
      const isWritten = runningWriter({ database: path, db }) !== undefined
      for (const finding of dataFindings({ db, isWritten })) {
        report.add(finding)
        await nextTurn()
        context.signal.throwIfAborted()
      }
    }
  } catch (error) {
    if (context.signal.aborted) throw error
    report.add(uncheckedFinding(line, error, { database: path, openError }))
  } finally {
    db?.close()
  }
  return report.end(
    'parley doctor checks the settings, the API and the machine.',
    'Do as suggested, then run parley doctor --data again.',
  )
}

const DAY_UNKNOWN =
  'not checked: api.max_requests_per_day is set, but the number of requests used today cannot be read from the database'

/** What to run next when nothing is wrong. */
function nextStep(
  config: string | undefined,
  database: string | undefined,
  writer: RunningWriter | undefined,
): string {
  const flag = config === undefined ? '' : ` --config ${shellWord(config)}`
  if (writer) return stepDuring(writer, flag)
  return database !== undefined && existsSync(database)
    ? `parley backfill${flag} brings the warehouse up to date once; parley daemon${flag} keeps it up to date.`
    : `parley backfill --plan${flag} estimates the requests and time; parley backfill${flag} reads everything once, and parley daemon${flag} keeps it up to date.`
}

/** The next step to suggest while a process writes the warehouse: no other backfill or daemon can start then. */
function stepDuring({ pid, recorded, waiting }: RunningWriter, flag: string): string {
  if (waiting) return `Do as suggested about process ${pid}, then run parley doctor${flag} again.`
  const status = `parley status${flag} shows`
  if (recorded?.command === 'daemon')
    return `the daemon (process ${pid}) keeps the warehouse up to date; ${status} how fresh it is.`
  const who = recorded ? `process ${pid} (parley ${recorded.command})` : `process ${pid}`
  return `${who} writes the warehouse: wait until it ends; ${status} its progress.`
}

type Add = (...findings: readonly Finding[]) => void

interface SettingsForChecks {
  /** Complete settings for the API checks; undefined when they are wrong. */
  loaded?: LoadedSettings<ApiSettings>
  /** Settings for the database checks; undefined when even the path is wrong. */
  settings?: LoadedSettings['settings']
}

function checkSettings(
  { env, cwd }: CommandContext,
  { flags }: CommandInput<object>,
  add: Add,
): SettingsForChecks {
  const line = findingsOf('settings')
  const names = { resourceNames: RESOURCE_NAMES, tableNames: declaredTableNames() }
  const request = { flags, env, cwd, ...names }
  try {
    const loaded = loadSettings({ ...request, requireApi: true })
    add(line.ok(loaded.file ?? 'from the environment, flags and defaults (no settings file)'))
    add(...loaded.warnings.map(warning => line.warning(warning)))
    return { loaded, settings: loaded.settings }
  } catch (error) {
    if (!(error instanceof StopError)) throw error
    for (const problem of problemList(error.message))
      add(line.wrong(problem, error.exitStatus, error.hint ?? ''))
  }
  try {
    return { settings: loadSettings({ ...request, ...DATABASE_ONLY }).settings }
  } catch (error) {
    if (error instanceof StopError) return {}
    throw error
  }
}

/** Splits the message of a settings error into its problems. */
function problemList(message: string): readonly string[] {
  const [first = message, ...others] = message.split('\n')
  return others.length === 0 ? [first.replace(/^Invalid settings: /, '')] : others.map(text => text.trim())
}

/** What the other checks and the next step need to know from the database. */
type DatabaseFacts = ReturnType<typeof runMachineChecks>

const NOTHING_KNOWN: DatabaseFacts = {
  identity: undefined,
  published: new Set(),
  usedToday: 0,
  writer: undefined,
  learned: undefined,
}

function runMachineChecks(settings: LoadedSettings['settings'], version: string, add: Add) {
  const { api, database } = settings
  const { engines }: { engines: { node: string } } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  )
  const looked = openForChecks(database.path)
  const context = {
    ...looked,
    database: database.path,
    workspace:
      api.workspaceId !== undefined && api.baseUrl !== undefined
        ? { id: api.workspaceId, baseUrl: api.baseUrl }
        : undefined,
    mode: database.mode,
    reports: settings,
    version,
    engines: engines.node,
    node: process.versions.node,
  }
  try {
    for (const finding of checkMachine(context)) add(finding)
    return {
      /** The warehouse's identity; undefined when it cannot be read. */
      identity: stored(context, db => readMeta(db, META.identity)),
      /** The names of the targets that have had a complete publication. */
      published: stored(context, publishedTargets) ?? new Set<string>(),
      /** How fast the API allows requests, as the last backfill or daemon found out. */
      learned: stored(context, db => readNote<LearnedRate>(key => readMeta(db, key), META.learnedRate)),
      /** How many requests were sent today; 0 without a daily ceiling; undefined when the number cannot be read. */
      usedToday: api.maxRequestsPerDay === undefined ? 0 : usedToday(context, add),
      writer: looked.openError ? undefined : runningWriter(context),
    }
  } finally {
    looked.db?.close()
  }
}

function stored<T>({ db, openError }: MachineContext, read: (db: Sqlite) => T): T | undefined {
  try {
    return db && !openError ? read(db) : undefined
  } catch {
    // The checks of the database have reported why the database cannot be read.
    return undefined
  }
}

function usedToday({ database, db, openError }: MachineContext, add: Add): number | undefined {
  if (openError) return undefined
  try {
    return db ? readRequestsToday(key => readMeta(db, key), utcDay(systemClock().now())) : 0
  } catch (error) {
    add(uncheckedFinding(findingsOf('requests'), error, { database, openError }))
    return undefined
  }
}

/** A request whose response is unusable is sent at most this many times. */
const MAX_ATTEMPTS = 3

async function runApiChecks(
  { signal, stderr }: CommandContext,
  { settings, limits }: Pick<ApiReaderOptions, 'settings' | 'limits'>,
  add: Add,
): Promise<void> {
  const clock = systemClock()
  const options = { settings, clock, limits, signal, stderr, maxAttempts: MAX_ATTEMPTS }
  await withApiReader(options, async ({ reader, client }) => {
    const context = {
      api: reader,
      access: client.access,
      accessLogEndParameter: settings.accessLog.endParameter,
      now: clock.now,
    }
    for await (const finding of checkApi(context)) add(finding)
  })
}

/**
 * Of several problems, the one that a backfill would meet first decides the exit status. The statuses are in this
 * order.
 */
const STATUS_ORDER: readonly ExitStatus[] = [
  EXIT_STATUS.settings,
  EXIT_STATUS.databaseUnavailable,
  EXIT_STATUS.refused,
  EXIT_STATUS.apiUnavailable,
]

type Report = ReturnType<typeof createReport>

/** As text, each finding is printed immediately, and a hint only the first time. JSON is printed at the end. */
function createReport({ stdout, env }: CommandContext, json: boolean) {
  const findings: Finding[] = []
  const hints = new Set<string>()
  const colour = hasColours(stdout, env)
  return {
    add(...added: readonly Finding[]) {
      findings.push(...added)
      if (json) return
      for (const finding of added) {
        const { hint = '' } = finding
        stdout.write(findingText(finding, hints.has(hint) ? '' : hint, colour))
        hints.add(hint)
      }
    },
    end(next: string, again = 'Fix the problems as suggested, then run parley doctor again.'): ExitStatus {
      const met = findings.flatMap(({ status }) => status ?? [])
      const status = STATUS_ORDER.find(each => met.includes(each)) ?? met[0] ?? EXIT_STATUS.done
      const count = (mark: Finding['mark']) => findings.filter(finding => finding.mark === mark).length
      const [wrong, warnings] = [count('wrong'), count('warning')]
      const step = wrong === 0 ? next : again
      const all = { ok: wrong === 0, exit_status: status, wrong, warnings, findings, next: step }
      if (json) stdout.write(jsonLine(all))
      else stdout.write(`\n${summaryText(wrong, warnings)}\nNext: ${step}\n`)
      return status
    },
  }
}

const MARKS: Readonly<
  Record<Finding['mark'], { text: string; colour: 'green' | 'cyan' | 'yellow' | 'red' }>
> = {
  ok: { text: 'ok', colour: 'green' },
  note: { text: 'note', colour: 'cyan' },
  warning: { text: 'warning', colour: 'yellow' },
  wrong: { text: 'WRONG', colour: 'red' },
}

function findingText({ mark, check, found }: Finding, hint: string, hasColour: boolean): string {
  const { text, colour } = MARKS[mark]
  const padded = text.padEnd(7)
  const shown = hasColour ? styledText(colour, padded) : padded
  const arrow = hint === '' ? '' : `\n         → ${hint}`
  return `${shown}  ${safeMultilineText(`${check}: ${found}${arrow}`)}\n`
}

function summaryText(wrong: number, warnings: number): string {
  const warned = warnings === 0 ? '' : `, ${countText(warnings, 'warning')}`
  return wrong === 0 ? `No problems found${warned}.` : `${countText(wrong, 'problem')} found${warned}.`
}

/** A finding when the daemon would not start its status server. */
function statusServerFindings({ listen, token }: ApiSettings['http']): Finding[] {
  if (!needsToken(listen) || token !== undefined) return []
  return [
    findingsOf('status server').warning(
      `the daemon runs without it, since other machines can reach ${listen.host} and http.token is not set`,
      'Set http.token, or listen on 127.0.0.1 in http.listen.',
    ),
  ]
}
