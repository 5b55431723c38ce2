import { DAY_MS, HOUR_MS, isoInstant } from '../base/clock.ts'
import { connectionTodo } from '../base/connection-faults.ts'
import { EXIT_STATUS, type StopError } from '../base/errors.ts'
import { singleLine } from '../base/safe-text.ts'
import { sizeText } from '../base/size-text.ts'
import { DATABASE_BUSY } from '../store/database/sqlite-errors.ts'
import { isOfForeignObject } from '../store/migrations/foreign-objects.ts'
import { type DaemonReport, type DaemonState, SOME_RESOURCES_FAILED } from '../store/status/processes.ts'
import type {
  OtherProgram,
  PlaceOfRemains,
  ResourceFacts,
  StatusReport,
  UnreachableReport,
} from '../store/status/report.ts'
import { GATE_KINDS } from '../store/sync/gates.ts'
import { clockText, countText, dueText } from '../terminal/wording.ts'

/** What is wrong with a warehouse, for people: the page, `parley status --check` and hooks share it. Pure. */

/**
 * `act`: a person has to do something. `warn`: everything goes on, but a person should do something. `wait`: parley
 * waits and goes on by itself. The most serious first.
 */
const PROBLEM_KINDS = ['act', 'warn', 'wait'] as const
export type ProblemKind = (typeof PROBLEM_KINDS)[number]

export interface HealthProblem {
  /** Stable while the problem lasts, such as `failing:messages`. */
  id: string
  kind: ProblemKind
  /** A short sentence without its full stop. Like the other texts, it has names, counts and times only. */
  what: string
  /** What the API or the system answered, without a full stop; null when `what` says all. */
  detail: string | null
  /** What to do, as sentences. */
  todo: string
  /** Null when unknown. */
  since: string | null
}

/** The most serious first. */
export function problemsOf(report: StatusReport<ResourceFacts>, now: number): HealthProblem[] {
  const causes = [
    ...apiProblems(report, now),
    ...routeProblems(report, now),
    ...report.resources.flatMap(row => failingProblems(row, report, now)),
    ...report.resources.flatMap(heldProblems),
    ...report.resources.flatMap(row => rejectedProblems(row, now)),
    ...report.resources.flatMap(row => unrecognisedProblems(row, now)),
  ]
  const problems = [
    ...causes.filter(({ id }) => id.startsWith('api:')),
    ...processProblems(report, causes),
    ...causes.filter(({ id }) => !id.startsWith('api:')),
    ...settingsProblems(report),
    ...boundProblems(report, now),
    ...snapshotProblems(report),
    ...publicationProblems(report, now),
    ...remainingFilesProblems(report),
    ...lockProblems(report),
    ...walProblems(report),
    ...report.purge_remains.map(remainsProblem),
  ]
  return PROBLEM_KINDS.flatMap(kind => problems.filter(one => one.kind === kind))
}

/**
 * @returns the ids of problems that last, also of those that `problemsOf` leaves out because another problem explains
 * them
 */
export function lastingProblems({ resources, publication }: StatusReport<ResourceFacts>): string[] {
  const ofResources = resources.flatMap(({ resource, failing_since: failing, rejected_since: rejected }) => [
    ...(failing === null ? [] : [`failing:${resource}`]),
    ...(rejected === null ? [] : [`rejected:${resource}`]),
  ])
  return publication?.is_late ? [...ofResources, 'publication'] : ofResources
}

/**
 * The problem of a process that cannot read its database, so that there is no report.
 * @param daemon undefined for a process that is no daemon
 * @param since when the process first failed to read the database
 */
export function databaseProblem(
  { message, hint }: StopError,
  { daemon, since }: { daemon: DaemonState | undefined; since: string | null },
): HealthProblem {
  // A daemon that has access to the API usually waits for the database. A report would show the same problem.
  if (daemon?.state === 'waiting' && !isWithoutAccess(daemon)) return waitingProblem(daemon)
  const todo = hint ?? 'Run parley doctor: it says what is wrong with the database.'
  return { id: 'database', kind: 'act', what: withoutStop(message), detail: null, todo, since }
}

/** State codes of a daemon that waits because it lost its access to the API. A report shows `api:refused` for them. */
const ACCESS_CODES = ['unauthorized', 'access-gone']

/** The problem of a daemon that ends, and that is not started again before a person has done something. */
export function endedProblem({ reason, hint, since }: DaemonState): HealthProblem {
  return { ...stoppedText(reason, hint), id: 'daemon:ended', kind: 'act', since }
}

/** @param hint how to remove the cause */
function stoppedText(reason: string | null | undefined, hint: string | undefined) {
  return {
    what: 'The daemon is not running, so nothing is updated',
    detail: reason ? withoutStop(reason) : null,
    todo: hint === undefined ? 'Start parley daemon again.' : `${hint} The daemon has to be started again.`,
  }
}

type ProblemText = Pick<HealthProblem, 'kind' | 'what' | 'todo'>
type Todo = Omit<ProblemText, 'what'>

/** A problem that parley waits out needs a person after this time. */
const PATIENCE_MS = HOUR_MS

const actsAfter = (since: string): number => Date.parse(since) + PATIENCE_MS

/** @param todo what a person should do after `PATIENCE_MS` */
function waitThenAct(since: string, now: number, todo: string): Todo {
  const actsAt = actsAfter(since)
  if (now >= actsAt) return { kind: 'act', todo }
  const until = clockText(isoInstant(actsAt), now)
  return { kind: 'wait', todo: `Nothing to do yet. It needs you if it lasts until ${until}.` }
}

type TodoOfApi = (since: string, now: number, reason: string) => Todo

/** What to do about a closed API. */
const API_TODOS: Readonly<Record<UnreachableReport['kind'], TodoOfApi>> = {
  silent(since, now, reason) {
    const todo = connectionTodo(reason)
    if (todo !== undefined)
      return {
        kind: 'act',
        todo: `${todo} After a change of settings, reload the daemon; after one of its environment, restart it.`,
      }
    return waitThenAct(since, now, 'Run parley doctor: it finds the fault.')
  },
  refused: () => ({
    kind: 'act',
    todo: 'Correct api.key or api.workspace_id; parley doctor says which of them is wrong.',
  }),
  'asked-to-wait': () => ({ kind: 'wait', todo: 'Nothing to do: the wait ends by itself.' }),
  'day-used-up': () => ({
    kind: 'wait',
    todo: 'Nothing to do: parley goes on tomorrow. Raise api.max_requests_per_day to read more today.',
  }),
}

const apiProblem = (
  kind: UnreachableReport['kind'],
  since: string,
  now: number,
  reason = '',
): ProblemText => ({
  what: GATE_KINDS[kind].is,
  ...API_TODOS[kind](since, now, reason),
})

/** @param hint says where the new key belongs */
const refusedKey = (hint = 'Replace the key.'): ProblemText => ({
  kind: 'act',
  what: 'The API refuses the key',
  todo: `${hint} A refusal at the next try ends the daemon.`,
})

/** The problem of a daemon without access is the same before and after the API's refusal is stored. */
function apiProblems({ api, daemon }: StatusReport<ResourceFacts>, now: number): HealthProblem[] {
  if (daemon && isWithoutAccess(daemon)) {
    const { reason, since, until, hint, code } = daemon
    const text =
      code === 'unauthorized' ? refusedKey(hint) : apiProblem('refused', since ?? isoInstant(now), now)
    return [{ id: 'api:refused', ...text, detail: withNextTry(reason ?? text.what, until, now), since }]
  }
  if (api === null) return []
  const { kind, reason, since, next_try_at: nextTry } = api
  const text = apiProblem(kind, since, now, reason)
  return [{ id: `api:${kind}`, ...text, detail: withNextTry(reason, nextTry, now), since }]
}

function routeProblems({ closed_routes }: StatusReport<ResourceFacts>, now: number): HealthProblem[] {
  return closed_routes.map(({ route, reason, since, next_try_at: nextTry, resources }) => ({
    id: `route:${route}`,
    what: `The API throttles ${resources.join(', ')}`,
    detail: withNextTry(`${reason} for ${route}`, nextTry, now),
    since,
    ...waitThenAct(since, now, 'Ask the provider of the API for a higher limit of these requests.'),
  }))
}

/** Whether a daemon waits for a key or for access. */
export const isWithoutAccess = ({ state, code = '' }: Pick<DaemonState, 'state' | 'code'>): boolean =>
  state === 'waiting' && ACCESS_CODES.includes(code)

export function withNextTry(reason: string, at: string | null, now: number): string {
  const next = at === null ? '' : `. Next try: ${clockText(at, now)} (${dueText(at, now)})`
  return `${withoutStop(reason)}${next}`
}

/**
 * Reports that the daemon waits, or that no process updates the warehouse although one did before.
 * @param causes why the API may have ended a backfill; the end is not reported separately if one of them needs a person
 */
function processProblems(
  { daemon, backfill, writer, api }: StatusReport<ResourceFacts>,
  causes: readonly HealthProblem[],
): HealthProblem[] {
  if (daemon?.state === 'waiting')
    return isWithoutAccess(daemon) || api?.kind === 'refused' ? [] : [waitingProblem(daemon)]
  if (writer?.running !== false) return []
  if (writer.command === 'daemon') {
    const text = stoppedText(daemon?.reason, daemon?.hint)
    return [{ ...text, id: 'daemon:stopped', kind: 'act', since: daemon?.since ?? null }]
  }
  // After `accept-deletions` no resource fails any more, though no backfill has run since.
  const isSettled = backfill?.reason === SOME_RESOURCES_FAILED && causes.length === 0
  const isExplained = isSettled || (isEndedByApi(backfill) && causes.some(({ kind }) => kind === 'act'))
  if (writer.died || (backfill !== null && backfill.exit_status !== 0 && !isExplained)) {
    const detail = backfill?.reason ? withoutStop(backfill.reason) : null
    const what = 'The last backfill ended before it had read everything'
    const todo = runAgainText(backfill?.hint)
    return [{ id: 'backfill:ended', kind: 'act', what, detail, todo, since: backfill?.ended_at ?? null }]
  }
  return []
}

/** @param hint how to remove the cause; it may already say what to run */
function runAgainText(hint = ''): string {
  if (/run (parley backfill|the command again)/.test(hint)) return hint
  return `${hint} Run parley backfill again; it continues where it stopped.`.trimStart()
}

const isEndedByApi = (backfill: StatusReport['backfill']): boolean =>
  backfill?.exit_status === EXIT_STATUS.apiUnavailable || backfill?.exit_status === EXIT_STATUS.refused

const RETRIES = 'parley tries again by itself every minute.'

const LOCKED = 'Another program has locked the database'

/** What a waiting daemon cannot do, by the code of its state. */
const WAITS: Readonly<Record<string, string>> = {
  'database-unavailable': 'The daemon cannot use the database',
  [DATABASE_BUSY]: LOCKED,
  'foreign-object': 'A trigger or index that parley did not create keeps it from writing',
  'other-workspace': 'The database at this path belongs to another workspace',
  'not-writing': 'The daemon does not write the database',
  halted: 'The process that writes the database is stopped',
  'not-opened': 'The process that holds the lock does not have this database open',
}

function waitingProblem({ code = 'waiting', reason, hint, since }: DaemonReport): HealthProblem {
  const id = `daemon:${code}`
  const detail = reason === null ? null : withoutStop(reason)
  if (code === 'rebuilding') {
    const todo = 'Nothing to do: this takes some minutes.'
    return { id, kind: 'wait', what: 'The daemon rebuilds the database file', detail, todo, since }
  }
  const acting = hint ?? 'Remove the cause.'
  const todo = code === 'halted' ? acting : `${acting} ${RETRIES}`
  return { id, kind: 'act', what: WAITS[code] ?? 'The daemon cannot go on', detail, todo, since }
}

/** An API at fault explains a failure, unless the failure needed a person before. */
function failingProblems(
  {
    resource,
    reason,
    failing_since: since,
    deletions_held_since: heldSince,
    next_run_at: nextRun,
  }: ResourceFacts,
  { api, writer }: StatusReport<ResourceFacts>,
  now: number,
): HealthProblem[] {
  // A resource whose deletions are held back counts as failing too. `heldProblems` reports it.
  if (since === null || heldSince !== null) return []
  if (api && GATE_KINDS[api.kind].isFault && actsAfter(since) > Date.parse(api.since)) return []
  const why = reason ?? 'The last run failed'
  const problem = { id: `failing:${resource}`, what: `Reading ${resource} fails`, since }
  if (writer?.running !== true) {
    const todo = 'Remove the cause, then run parley backfill again; it continues where it stopped.'
    return [{ ...problem, kind: 'act', detail: withoutStop(why), todo }]
  }
  if (isOfForeignObject(why)) {
    const todo = 'When that is done, parley reads it again by itself within 15 minutes.'
    return [{ ...problem, kind: 'act', detail: withoutStop(why), todo }]
  }
  const acting = 'Run parley doctor: it requests each endpoint and says what is wrong.'
  return [{ ...problem, ...waitThenAct(since, now, acting), detail: withNextTry(why, nextRun, now) }]
}

/** The lines of several problems, separated as in a sentence. */
const inOneSentence = (text: string): string =>
  singleLine(text.replace(/:\n\s*/, ': ').replace(/\n\s*/g, '; '))

function settingsProblems({ daemon, writer }: StatusReport<ResourceFacts>): HealthProblem[] {
  const invalid = daemon?.invalid_settings
  if (invalid === undefined || writer?.running !== true) return []
  return [
    {
      id: 'settings:invalid',
      kind: 'warn',
      what: 'The new settings are invalid, so the daemon keeps the earlier ones',
      detail: withoutStop(inOneSentence(invalid.reason)),
      todo: 'Correct them, and reload the daemon (SIGHUP, or systemctl reload). A daemon that starts with them ends at once.',
      since: invalid.since,
    },
  ]
}

/** With a bound in the future, as by a wrong year, nothing new is read either. */
function boundProblems({ resources }: StatusReport<ResourceFacts>, now: number): HealthProblem[] {
  const bounds = resources.flatMap(({ read_since: bounded }) => bounded?.since ?? [])
  const future = bounds.find(since => Date.parse(since) > now)
  if (future === undefined) return []
  return [
    {
      id: 'since',
      kind: 'warn',
      what: `sync.since is ${future.replace('T00:00:00.000Z', '')}, in the future, so no new activities and messages are read`,
      detail: null,
      todo: 'Correct it, and reload the daemon (SIGHUP, or systemctl reload).',
      since: null,
    },
  ]
}

function heldProblems({ resource, reason, deletions_held_since: since }: ResourceFacts): HealthProblem[] {
  if (since === null) return []
  const command = `parley accept-deletions ${resource}`
  const isSaid = reason?.includes(command) === true
  return [
    {
      id: `held:${resource}`,
      kind: 'act',
      what: `An unusual number of ${resource} is missing at the API; these deletions wait`,
      detail: reason === null ? null : withoutStop(reason),
      todo: `Look in the product. If they are gone there, do nothing: a later complete read confirms it. If not, correct the key or the workspace before.${isSaid ? '' : ` To delete them now: ${command}.`}`,
      since,
    },
  ]
}

/**
 * A failing resource may have a reject for each item that could not be read, and the failure says so. So its rejects
 * are left out until they need a person.
 */
function rejectedProblems(
  { resource, rejected, rejected_since: since, failing_since: failingSince }: ResourceFacts,
  now: number,
): HealthProblem[] {
  if (since === null || (failingSince !== null && actsAfter(since) > now)) return []
  const acting =
    'The table sync_rejects has each item and its reason: look there, and report it to the provider of the API.'
  return [
    {
      id: `rejected:${resource}`,
      what: `${rejected === undefined ? 'Items' : countText(rejected, 'item')} of ${resource} could not be stored`,
      detail: null,
      ...waitThenAct(since, now, acting),
      since,
    },
  ]
}

/** A list that changes while it is read may not show its number of rows once, so only a lasting difference counts. */
function unrecognisedProblems(
  { resource, size_differs_since: since }: ResourceFacts,
  now: number,
): HealthProblem[] {
  if (since === null || now - Date.parse(since) < DAY_MS) return []
  return [
    {
      id: `unrecognised:${resource}`,
      kind: 'warn',
      what: `Deletions of ${resource} are not recognised`,
      detail:
        'The list shows another number of rows than it states, so a row that it does not show may still exist',
      todo: 'Report it to the provider of the API. Deletions are recognised again after a complete read in which both numbers agree.',
      since,
    },
  ]
}

function snapshotProblems({ snapshot }: StatusReport<ResourceFacts>): HealthProblem[] {
  if (snapshot?.failed_at == null) return []
  const detail = withoutStop(snapshot.reason ?? 'No reason is known')
  const todo = 'Remove the cause; the next snapshot is made at its usual time.'
  return [
    {
      id: 'snapshot',
      kind: 'act',
      what: 'The last snapshot failed',
      detail,
      todo,
      since: snapshot.failed_at,
    },
  ]
}

/** A target that is down for a short time is no problem: the next publication has everything. */
function publicationProblems(
  { publication, daemon, writer }: StatusReport<ResourceFacts>,
  now: number,
): HealthProblem[] {
  if (!publication?.is_late) return []
  const { target, last, since, failing, running_since: running } = publication
  const what = `The warehouse is not published to ${target}`
  const seen = last?.published_at ?? null
  if (failing !== null) {
    const detail = withNextTry(failing.reason, publication.due_at, now)
    const todo = 'Remove the cause; parley tries again by itself. parley publish tries at once.'
    return [{ id: 'publication', kind: 'act', what, detail, todo, since: failing.since }]
  }
  // A daemon that does not run or waits is a separate problem.
  if (writer?.running !== true || daemon?.state !== 'running') return []
  const detail = running === null ? null : `The publication that began ${clockText(running, now)} takes long`
  const acting = 'Check how fast the target is, or raise publish.every.'
  const text = waitThenAct(publication.late_at, now, acting)
  return [{ id: 'publication', ...text, what, detail, since: seen ?? since }]
}

function remainingFilesProblems({ publication }: StatusReport<ResourceFacts>): HealthProblem[] {
  const { target, last } = publication ?? {}
  if (!last?.error) return []
  return [
    {
      id: 'publication-files',
      kind: 'warn',
      what: `Files of earlier publications remain in ${target}, and may have content that was purged`,
      detail: withoutStop(last.error),
      todo: 'Remove the cause; the next publication removes the files.',
      since: last.finished_at,
    },
  ]
}

/** The daemon waits once it cannot store what it has read; then that is the problem. */
function lockProblems({ lock_holders: holders }: StatusReport<ResourceFacts>): HealthProblem[] {
  if (holders.length === 0) return []
  return [
    {
      id: `daemon:${DATABASE_BUSY}`,
      kind: 'warn',
      what: LOCKED,
      detail: `The lock is held by ${programsText(holders)}`,
      todo: 'Close that program, or end its transaction; parley stores nothing until then.',
      since: null,
    },
  ]
}

const programsText = (programs: readonly OtherProgram[]): string =>
  programs
    .map(({ pid, program, state }) => `process ${pid} (${program ?? 'unknown'}), which is ${state}`)
    .join(', and ')

function walProblems({
  wal_bytes: bytes,
  wal_readers: readers,
}: StatusReport<ResourceFacts>): HealthProblem[] {
  if (readers.length === 0) return []
  return [
    {
      id: 'wal',
      kind: 'warn',
      what: `The write-ahead log has ${sizeText(bytes)} and cannot shrink while a program reads`,
      detail: `An older state of the database is being read by ${programsText(readers)}`,
      todo: 'End its query or transaction; parley then shrinks the file by itself.',
      since: null,
    },
  ]
}

const TODO_ABOUT_REMAINS: Readonly<Record<PlaceOfRemains, string>> = {
  wal: 'End the query or transaction of the program that reads; parley then empties the file. Never remove the file: it has rows that the database has not yet.',
  'free space':
    'Remove the cause; parley tries again within a week. The file is the warehouse: never remove it. Or stop parley, make a copy with parley snapshot, which is without remains, and let parley restore put it in place.',
  copies: 'Remove it yourself, or remove the cause; parley tries again every night.',
}

function remainsProblem({ place, path, reason }: StatusReport['purge_remains'][number]): HealthProblem {
  return {
    id: `remains:${path}`,
    kind: 'act',
    what: `Purged content may remain in ${path}`,
    detail: withoutStop(reason),
    todo: TODO_ABOUT_REMAINS[place],
    since: null,
  }
}

/** Makes a sentence, without its full stop, of a reason that elsewhere follows a colon. */
export const withoutStop = (sentence: string) =>
  sentence.replace(/^(it|a|the) /, start => `${start[0]?.toUpperCase()}${start.slice(1)}`).replace(/\.$/, '')
