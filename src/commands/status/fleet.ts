import { readdirSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { type CheckStatus, EXIT_STATUS, errorCode, StopError } from '../../base/errors.ts'
import { sizeText } from '../../base/size-text.ts'
import { loadSettings } from '../../config/load-settings.ts'
import type { Environment, SettingFlags } from '../../config/loaded-settings.ts'
import { RESOURCE_NAMES } from '../../declare/resource-names.ts'
import { declaredTableNames } from '../../export/chosen-tables.ts'
import {
  CHECK_LABELS,
  type CheckQuestion,
  checkStatusOf,
  checkVerdict,
  verdictSentences,
} from '../../health/check.ts'
import { TIMELINES } from '../../health/completeness.ts'
import { databaseProblem, type HealthProblem } from '../../health/problems.ts'
import { unusableSettings, workspaceProblems } from '../../health/unusable-settings.ts'
import { type HealthVerdict, problemVerdict } from '../../health/verdict.ts'
import { PROBLEM_LABELS } from '../../health/wording.ts'
import { type ResourceFacts, readUncountedReport, type StatusReport } from '../../store/status/report.ts'
import { readStateOf } from '../../store/status/status.ts'
import { fitTable, indentedNote, type RankedColumn } from '../../terminal/table.ts'
import { countText, relativeTime, wrapText } from '../../terminal/wording.ts'
import { DATABASE_ONLY } from '../base/command.ts'
import { databasePath, ENABLED_FOLDER, servicesIn, settingsPath } from '../service/steps.ts'
import { hiddenColumnsSentence, type StatusPageOptions } from './status-text.ts'

/** `parley status --all`: the warehouses of one machine, one row for each. */

/** A workspace that a daemon of this machine reads. */
export interface FleetMember {
  name: string
  /** Where its settings come from. */
  from: { flags: SettingFlags; env: Environment }
  /** The systemd unit of the workspace, for advice to a person. */
  unit: string | undefined
}

export interface FleetRow {
  name: string
  settings: string
  /** The path of the database; null when the settings are unreadable. */
  database: string | null
  health: HealthVerdict
  /** The exit status of `parley status --check` for this workspace. */
  check: CheckStatus
  /** The output of `parley status --json`, without the columns that need a count of rows; null when unreadable. */
  report: StatusReport<ResourceFacts> | null
}

/**
 * The workspaces that have a service on this machine, or a settings file in the folder.
 * @throws StopError when there is no workspace
 */
export function fleetMembers(folder: string | undefined, cwd: string): FleetMember[] {
  if (folder === undefined) {
    const members = serviceMembers(entriesOf(ENABLED_FOLDER))
    if (members.length > 0) return members
    throw noFleet('No workspace has a service on this machine', SERVICES_HINT)
  }
  const absolute = resolve(cwd, folder)
  const files = entriesOf(absolute).filter(entry => entry.endsWith('.toml'))
  if (files.length > 0) return files.sort().map(entry => fileMember(join(folder, entry)))
  throw noFleet(`There is no settings file (*.toml) in ${absolute}`, FOLDER_HINT)
}

const FOLDER_HINT =
  'Name the folder that has a settings file for each workspace, or no folder for the services of this machine.'
const SERVICES_HINT =
  'Install one with parley service install NAME, or name the folder of other settings files: parley status --all FOLDER.'

const noFleet = (message: string, hint: string) =>
  new StopError(message, { code: 'no-fleet', hint, exitStatus: EXIT_STATUS.databaseUnavailable })

/**
 * The unit sets the path of the database, which wins over the settings.
 * @param enabled the entries of `ENABLED_FOLDER`
 */
export const serviceMembers = (enabled: readonly string[]): FleetMember[] =>
  servicesIn(enabled).map(name => ({
    name,
    from: { flags: { config: settingsPath(name) }, env: { PARLEY_DATABASE: databasePath(name) } },
    unit: `parley@${name}.service`,
  }))

const fileMember = (path: string): FleetMember => ({
  name: basename(path, '.toml'),
  from: { flags: { config: path }, env: {} },
  unit: undefined,
})

/** @returns the names of the entries that are no folders */
function entriesOf(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true })
    return entries.filter(entry => !entry.isDirectory()).map(({ name }) => name)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw noFleet(
      `The folder ${folder} cannot be read (${errorCode(error) ?? 'unknown'})`,
      'Check its path and mode.',
    )
  }
}

/** The rows with the most serious first, then by name. A workspace that cannot be read is a row like the others. */
export function readFleet(members: readonly FleetMember[], cwd: string, question: CheckQuestion): FleetRow[] {
  return members
    .map(member => readMember(member, cwd, question))
    .sort((a, b) => rankOf(a) - rankOf(b) || (a.name < b.name ? -1 : 1))
}

const RANKS: readonly HealthVerdict['kind'][] = ['act', 'warn', 'wait', 'loading', 'ok']
const rankOf = ({ health }: FleetRow) => RANKS.indexOf(health.kind)

function readMember(member: FleetMember, cwd: string, question: CheckQuestion): FleetRow {
  const { name, from } = member
  const { path, workspaceId, problems } = readUsedSettings(member, cwd)
  const row = (health: HealthVerdict, report: FleetRow['report']): FleetRow => ({
    name,
    settings: from.flags.config ?? '',
    database: path ?? null,
    health,
    check: checkStatusOf(health),
    report,
  })
  if (path === undefined) return row(firstVerdict(problems, question.now), null)
  try {
    const report = readUncountedReport({ path, now: question.now })
    const causes = [...problems, ...workspaceProblems(report, workspaceId)]
    return row(checkVerdict(report, question, causes), report)
  } catch (error) {
    return row(firstVerdict([...problems, unreadableProblem(member, error)], question.now), null)
  }
}

function firstVerdict([first, ...others]: readonly HealthProblem[], now: number): HealthVerdict {
  if (first === undefined) throw new Error('a workspace without a path has a problem')
  return problemVerdict(first, others.length, now)
}

interface UsedSettings {
  path: string | undefined
  workspaceId: string | undefined
  problems: readonly HealthProblem[]
}

/** Settings that are wrong end the daemon at its next start, so they are a problem even while it runs. */
function readUsedSettings({ from }: FleetMember, cwd: string): UsedSettings {
  const read = (need: Partial<Parameters<typeof loadSettings>[0]>) => {
    const { database, api } = loadSettings({ ...from, cwd, requireApi: false, ...need }).settings
    return { path: database.path, workspaceId: api.workspaceId }
  }
  try {
    return { ...read({ resourceNames: RESOURCE_NAMES, tableNames: declaredTableNames() }), problems: [] }
  } catch (error) {
    const problems = [unusableSettings(error)]
    try {
      return { ...read(DATABASE_ONLY), problems }
    } catch {
      return { path: undefined, workspaceId: undefined, problems }
    }
  }
}

function unreadableProblem({ unit }: FleetMember, error: unknown): HealthProblem {
  const known =
    error instanceof StopError
      ? error
      : new StopError('The warehouse cannot be read', {
          code: 'fault',
          exitStatus: EXIT_STATUS.databaseUnavailable,
        })
  const problem = databaseProblem(known, { daemon: undefined, since: null })
  // The usual advice is to create the warehouse by hand, but a service creates its warehouse itself.
  if (unit === undefined || known.code !== 'no-database') return problem
  return { ...problem, todo: `The service has not created it; systemctl status ${unit} says why.` }
}

/** Such as `50 workspaces: 2 need you, 48 ok`. */
function fleetSummary(rows: readonly FleetRow[]): string {
  const parts = RANKS.flatMap(kind => {
    const number = rows.filter(({ health }) => health.kind === kind).length
    const words = number === 1 ? KIND_WORDS[kind] : KIND_WORDS[kind].replace(/^needs/, 'need')
    return number === 0 ? [] : [`${number} ${words}`]
  })
  return `${countText(rows.length, 'workspace')}: ${parts.join(', ')}`
}

const KIND_WORDS: Readonly<Record<HealthVerdict['kind'], string>> = {
  ok: 'ok',
  loading: 'loading',
  wait: PROBLEM_LABELS.wait.toLowerCase(),
  warn: PROBLEM_LABELS.warn.toLowerCase(),
  act: PROBLEM_LABELS.act.toLowerCase(),
}

/** The line of `parley status --check --all`: the worst workspace in full, and the names of the others. */
export function fleetCheck(rows: readonly FleetRow[]): { status: CheckStatus; line: string } {
  const [worst, ...others] = rows.filter(({ check }) => check > 0)
  const summary = fleetSummary(rows)
  if (worst === undefined) return { status: 0, line: `${CHECK_LABELS[0]}: ${summary}` }
  const names = others.map(({ name }) => name).join(', ')
  const more = names === '' ? '' : ` Also: ${names}`
  return {
    status: worst.check,
    line: `${CHECK_LABELS[worst.check]}: ${summary}. ${worst.name}: ${verdictSentences(worst.health)}${more}`,
  }
}

export function fleetPage(rows: readonly FleetRow[], { now, columns }: StatusPageOptions): string {
  const width = columns ?? Number.POSITIVE_INFINITY
  const { lines, left } = fitTable(fleetColumns(now), rows, width)
  const notes = rows.flatMap(({ name, health }) =>
    health.kind === 'ok' ? [] : indentedNote(name, verdictSentences(health), width),
  )
  const sentences = [`${fleetSummary(rows)}.`, hiddenColumnsSentence(left)]
  return `${[...lines, ...notes, ...sentences.flatMap(sentence => wrapText(sentence, width))].join('\n')}\n`
}

function fleetColumns(now: number): RankedColumn<FleetRow>[] {
  const chosen = ({ report }: FleetRow) =>
    (report?.resources ?? []).filter(({ resource }) => report?.chosen_resources.includes(resource))
  const newest = (row: FleetRow) =>
    readStateOf(chosen(row).filter(({ resource }) => TIMELINES.includes(resource)))
  const troubled = (row: FleetRow) =>
    chosen(row).filter(({ state }) => state === 'failing' || state === 'on hold')
  return [
    { title: 'workspace', cell: ({ name }) => name },
    { title: 'state', cell: ({ health }) => KIND_WORDS[health.kind] },
    { title: 'daemon', cell: ({ report }) => report?.daemon?.state ?? '-' },
    { title: 'fresh as of', cell: row => relativeTime(newest(row).fresh_as_of, now) },
    {
      title: 'complete as of',
      cell: row => relativeTime(readStateOf(chosen(row)).complete_as_of, now),
      rank: 1,
    },
    {
      title: 'resources',
      cell: row => stateCounts(troubled(row)),
      isEmpty: row => troubled(row).length === 0,
      rank: 2,
    },
    {
      title: 'size',
      align: 'right',
      cell: ({ report }) => (report === null ? '-' : sizeText(report.database_bytes + report.wal_bytes)),
      rank: 3,
    },
  ]
}

/** Such as `3 ok, 1 unavailable`. */
function stateCounts(resources: readonly Pick<ResourceFacts, 'state'>[]): string {
  const states = [...new Set(resources.map(({ state }) => state))].sort()
  const counts = states.map(state => `${resources.filter(row => row.state === state).length} ${state}`)
  return counts.join(', ')
}
