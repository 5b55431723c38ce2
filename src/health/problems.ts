import type { StopError } from '../errors.ts'
import type {
  DaemonReport,
  DaemonState,
  ResourceReport,
  StatusReport,
  UnreachableReport,
} from '../store/status/report.ts'

/** What is wrong with a warehouse, for people: the page, `parley status --check` and hooks share it. Pure. */

export interface HealthProblem {
  /** Stable while the problem lasts, such as `failing:messages`. */
  id: string
  /** `wait`: parley goes on by itself. `act`: a person has to do something. */
  kind: 'wait' | 'act'
  /** A sentence without its full stop. It has names, counts and times only, and what the API or the system answered. */
  what: string
  /** What to do, as a sentence. */
  todo: string
  /** Null when unknown. */
  since: string | null
}

/** The most serious first. */
export function problemsOf(report: StatusReport, now: number): HealthProblem[] {
  const problems = [
    ...apiProblems(report),
    ...processProblems(report),
    ...report.resources.flatMap(row => failingProblems(row, report, now)),
    ...report.resources.flatMap(heldProblems),
    ...snapshotProblems(report),
    ...report.purge_remains.map(remainsProblem),
  ]
  return [...problems.filter(({ kind }) => kind === 'act'), ...problems.filter(({ kind }) => kind === 'wait')]
}

/** The problem of a daemon that cannot read its database, so that there is no report. */
export function databaseProblem({ message, hint }: StopError, daemon: DaemonState): HealthProblem {
  // Such a daemon usually waits for the database. A report would show the same problem.
  if (daemon.state === 'waiting' && !ACCESS_CODES.includes(daemon.code ?? '')) return waitingProblem(daemon)
  const todo = hint ?? 'Run parley doctor: it says what is wrong with the database.'
  return { id: 'database', kind: 'act', what: withoutStop(message), todo, since: null }
}

/** Why a daemon waits that has lost its access to the API. A report shows `api:refused` instead. */
const ACCESS_CODES = ['unauthorized', 'access-gone']

const API_PROBLEMS: Readonly<
  Record<UnreachableReport['kind'], Pick<HealthProblem, 'kind' | 'todo'> & { what: string }>
> = {
  refused: {
    kind: 'act',
    what: 'The API refuses access',
    todo: 'Correct api.key or api.workspace_id; parley doctor says which of them is wrong.',
  },
  silent: {
    kind: 'wait',
    what: 'No request to the API succeeds',
    todo: 'Nothing, if the API is down; parley doctor says whether this machine reaches it.',
  },
  'asked-to-wait': {
    kind: 'wait',
    what: 'The API asked parley to wait',
    todo: 'Nothing; the wait ends by itself.',
  },
  'day-used-up': {
    kind: 'wait',
    what: 'The requests of this day are used up',
    todo: 'Nothing, or raise api.max_requests_per_day.',
  },
}

function apiProblems({ api }: StatusReport): HealthProblem[] {
  if (api === null) return []
  const { what, kind, todo } = API_PROBLEMS[api.kind]
  return [
    { id: `api:${api.kind}`, kind, what: `${what}: ${withoutStop(api.reason)}`, todo, since: api.since },
  ]
}

/** The daemon waits, or no process updates the warehouse although one did before. */
function processProblems({ daemon, backfill, writer, api }: StatusReport): HealthProblem[] {
  if (daemon?.state === 'waiting') {
    if (api?.kind === 'refused') return []
    return [waitingProblem(daemon)]
  }
  if (writer?.running !== false) return []
  if (writer.command === 'daemon') {
    const why = daemon?.reason ? `: ${withoutStop(daemon.reason)}` : ''
    const what = `The daemon is not running, so nothing is updated${why}`
    const since = daemon?.since ?? null
    return [{ id: 'daemon:stopped', kind: 'act', what, todo: 'Start parley daemon again.', since }]
  }
  if (writer.died || (backfill !== null && backfill.exit_status !== 0)) {
    const why = backfill?.reason ? `: ${withoutStop(backfill.reason)}` : ''
    const what = `The last backfill ended before it had read everything${why}`
    const todo = 'Run parley backfill again; it continues where it stopped.'
    return [{ id: 'backfill:ended', kind: 'act', what, todo, since: backfill?.ended_at ?? null }]
  }
  return []
}

function waitingProblem({ code, reason, since }: DaemonReport): HealthProblem {
  const what = `The daemon waits: ${withoutStop(reason ?? 'it gave no reason')}`
  return code === 'rebuilding'
    ? { id: 'daemon:rebuilding', kind: 'wait', what, todo: 'Nothing; this takes some minutes.', since }
    : { id: `daemon:${code ?? 'waiting'}`, kind: 'act', what, todo: WAITING_TODO, since }
}

const WAITING_TODO = 'Remove the cause; the daemon tries again by itself.'

/** A failing resource is retried by itself. After this time a person should look at it. */
const FAILING_MS = 60 * 60 * 1000

function failingProblems(
  { resource, reason, failing_since: since, deletions_held_since: heldSince }: ResourceReport,
  { api }: StatusReport,
  now: number,
): HealthProblem[] {
  // A hold of the mass-deletion guard is a failure of its resource too, and has a problem of its own.
  if (since === null || heldSince !== null) return []
  if (api?.kind === 'refused' || api?.kind === 'silent') return []
  const isLong = now - Date.parse(since) >= FAILING_MS
  return [
    {
      id: `failing:${resource}`,
      kind: isLong ? 'act' : 'wait',
      what: `Reading ${resource} fails: ${withoutStop(reason ?? 'the last run failed')}`,
      todo: isLong
        ? 'Run parley doctor: it requests each endpoint and says what is wrong.'
        : 'Nothing yet; parley tries again with a growing wait.',
      since,
    },
  ]
}

function heldProblems({ resource, deletions_held_since: since }: ResourceReport): HealthProblem[] {
  if (since === null) return []
  return [
    {
      id: `held:${resource}`,
      kind: 'act',
      what: `An unusual number of ${resource} is missing at the API; their deletion is held back`,
      todo: `If they were really deleted, run parley accept-deletions ${resource}. Otherwise a second complete read decides.`,
      since,
    },
  ]
}

function snapshotProblems({ snapshot }: StatusReport): HealthProblem[] {
  if (snapshot?.failed_at == null) return []
  const what = `The last snapshot failed: ${withoutStop(snapshot.reason ?? 'no reason is known')}`
  const todo = 'Remove the cause; the next snapshot is made at its usual time.'
  return [{ id: 'snapshot', kind: 'act', what, todo, since: snapshot.failed_at }]
}

function remainsProblem({ path, reason }: StatusReport['purge_remains'][number]): HealthProblem {
  const what = `Purged content may remain in ${path}: ${withoutStop(reason)}`
  return {
    id: `remains:${path}`,
    kind: 'act',
    what,
    todo: 'Remove it yourself, or remove the cause; parley tries again every night.',
    since: null,
  }
}

const withoutStop = (sentence: string) => sentence.replace(/\.$/, '')
