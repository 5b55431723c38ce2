import { describe, expect, test } from 'vitest'
import { RESOURCE_NAMES } from '../../src/catalog/resource-names.ts'
import { EXIT_STATUS, StopError } from '../../src/errors.ts'
import { checkStatus } from '../../src/health/check.ts'
import { databaseProblem, problemsOf } from '../../src/health/problems.ts'
import { verdictOf, verdictOfProblem } from '../../src/health/verdict.ts'
import type { ResourceReport, StatusReport } from '../../src/store/status/report.ts'
import type { TrafficSpan } from '../../src/store/status/traffic-history.ts'

const NOW = Date.parse('2026-03-04T12:00:00.000Z')
const SINCE = '2026-03-04T11:40:00.000Z'
const FRESH = '2026-03-04T11:59:00.000Z'

const WRITER = { command: 'daemon', pid: 7, since: SINCE, running: true, died: false }
const RUNNING = { state: 'running', reason: null, since: SINCE, until: null } as const

const healthy = (resource: ResourceReport['resource']): ResourceReport => ({
  resource,
  state: 'ok',
  reason: null,
  rows_live: 10,
  rows_deleted: 0,
  newest_at: FRESH,
  fresh_as_of: FRESH,
  complete_as_of: FRESH,
  backfill_done: 10,
  backfill_total: 10,
  pending_tasks: 0,
  rejected: 0,
  last_success_at: FRESH,
  next_run_at: null,
  failing_since: null,
  failed_in_a_row: null,
  deletions_held_since: null,
  by_state: null,
  arrival_lag: null,
})

/** A warehouse that is up to date, with these differences; `members` has those of `row`. */
function report(changes: Partial<StatusReport> = {}, row: Partial<ResourceReport> = {}): StatusReport {
  return {
    database: '/data/parley.db',
    workspace: null,
    database_bytes: 1,
    wal_bytes: 0,
    writer: WRITER,
    daemon: RUNNING,
    backfill: null,
    api: null,
    learned_rate: null,
    snapshot: null,
    purge_remains: [],
    requests: [],
    resources: RESOURCE_NAMES.map(name => ({ ...healthy(name), ...(name === 'members' && row) })),
    ...changes,
  }
}

const problems = (changes?: Partial<StatusReport>, row?: Partial<ResourceReport>) =>
  problemsOf(report(changes, row), NOW).map(({ id, kind, since }) => `${kind} ${id} ${since}`)

const REFUSED = { kind: 'refused', reason: 'The API answers 403', since: SINCE, next_try_at: FRESH } as const
const STOPPED = { ...WRITER, running: false }

describe('the problems of a warehouse', () => {
  test('a warehouse that is up to date has none', () => {
    expect(problems()).toEqual([])
  })

  test.each<[string, Partial<StatusReport>, string]>([
    ['an API that refuses access', { api: REFUSED }, `act api:refused ${SINCE}`],
    ['an API that is silent', { api: { ...REFUSED, kind: 'silent' } }, `wait api:silent ${SINCE}`],
    [
      'a pause that the API asked for',
      { api: { ...REFUSED, kind: 'asked-to-wait' } },
      `wait api:asked-to-wait ${SINCE}`,
    ],
    ['a used-up day', { api: { ...REFUSED, kind: 'day-used-up' } }, `wait api:day-used-up ${SINCE}`],
    [
      'a daemon that waits for a disk',
      { daemon: { ...RUNNING, state: 'waiting', code: 'database-full', reason: 'The disk is full' } },
      `act daemon:database-full ${SINCE}`,
    ],
    [
      'a daemon that rebuilds the file',
      { daemon: { ...RUNNING, state: 'waiting', code: 'rebuilding', reason: 'it rebuilds the file' } },
      `wait daemon:rebuilding ${SINCE}`,
    ],
    [
      'a daemon that was killed',
      { writer: STOPPED, daemon: { ...RUNNING, state: 'stopped', since: null } },
      'act daemon:stopped null',
    ],
    [
      'a backfill that gave up',
      {
        writer: { ...STOPPED, command: 'backfill' },
        daemon: null,
        backfill: { ended_at: FRESH, exit_status: 69, reason: 'The API does not answer' },
      },
      `act backfill:ended ${FRESH}`,
    ],
    [
      'a failed snapshot',
      { snapshot: { made_at: null, path: null, bytes: null, failed_at: SINCE, reason: 'no space' } },
      `act snapshot ${SINCE}`,
    ],
    [
      'purged content that may remain',
      { purge_remains: [{ path: '/x', reason: 'busy' }] },
      'act remains:/x null',
    ],
  ])('%s is one problem', (_, changes, expected) => {
    expect(problems(changes)).toEqual([expected])
  })

  test('a failing resource is retried at first, and needs a person after an hour', () => {
    const failing = { state: 'failing', reason: 'The API answers 500' } as const
    expect(problems({}, { ...failing, failing_since: SINCE })).toEqual([`wait failing:members ${SINCE}`])
    const long = '2026-03-04T11:00:00.000Z'
    expect(problems({}, { ...failing, failing_since: long })).toEqual([`act failing:members ${long}`])
  })

  test('an API that is away is one problem, not one for each resource', () => {
    const failing = { state: 'failing', failing_since: SINCE } as const
    expect(problems({ api: { ...REFUSED, kind: 'silent' } }, failing)).toEqual([`wait api:silent ${SINCE}`])
  })

  test('deletions that are held back are one problem, although the resource is failing too', () => {
    expect(problems({}, { state: 'failing', failing_since: SINCE, deletions_held_since: SINCE })).toEqual([
      `act held:members ${SINCE}`,
    ])
  })

  test('a complete backfill that has ended is no problem', () => {
    const backfill = { ended_at: FRESH, exit_status: 0, reason: null }
    expect(problems({ writer: { ...STOPPED, command: 'backfill' }, daemon: null, backfill })).toEqual([])
  })

  test('a problem for a person comes before one that ends by itself', () => {
    const api = { ...REFUSED, kind: 'silent' } as const
    const snapshot = { made_at: null, path: null, bytes: null, failed_at: SINCE, reason: 'no space' }
    expect(problems({ api, snapshot })).toEqual([`act snapshot ${SINCE}`, `wait api:silent ${SINCE}`])
  })
})

describe('the problem of a database that cannot be read', () => {
  const MISSING = new StopError('There is no warehouse at /data/parley.db', {
    code: 'no-warehouse',
    hint: 'Run parley backfill.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
  const waiting = (code: string) => ({ ...RUNNING, state: 'waiting', code, reason: 'It says why.' }) as const

  test('of a running daemon it is what the read reports, since an unknown instant', () => {
    const problem = databaseProblem(MISSING, RUNNING)
    expect(problem).toEqual({
      id: 'database',
      kind: 'act',
      what: 'There is no warehouse at /data/parley.db',
      todo: 'Run parley backfill.',
      since: null,
    })
    expect(verdictOfProblem(problem)).toEqual({
      kind: 'act',
      text: 'Needs you: There is no warehouse at /data/parley.db',
      todo: 'Run parley backfill.',
    })
  })

  test.each(['database-moved', 'rebuilding'])(
    'of a daemon that waits with the code %s it is the same problem as in a report',
    code => {
      expect([databaseProblem(MISSING, waiting(code))]).toEqual(
        problemsOf(report({ daemon: waiting(code) }), NOW),
      )
    },
  )

  test.each(['unauthorized', 'access-gone'])(
    'of a daemon that waits with the code %s it is a second problem',
    code => {
      expect(databaseProblem(MISSING, waiting(code)).id).toBe('database')
    },
  )
})

describe('the verdict', () => {
  const verdict = (changes?: Partial<StatusReport>, row?: Partial<ResourceReport>) => {
    const made = report(changes, row)
    return verdictOf(made, problemsOf(made, NOW))
  }

  test('the verdict names the oldest instant before which everything is there', () => {
    const old = '2026-03-04T10:00:00.000Z'
    expect(verdict({}, { complete_as_of: old })).toEqual({
      kind: 'ok',
      text: `Up to date: everything published before ${old} is here`,
      todo: null,
    })
  })

  test('a first read is loading, and resources that are not offered do not count', () => {
    expect(verdict({}, { state: 'backfilling', complete_as_of: null }).text).toBe(
      `Loading history: ${RESOURCE_NAMES.length - 1} of ${RESOURCE_NAMES.length} resources are complete; the newest is already here`,
    )
    expect(verdict({}, { state: 'unavailable', complete_as_of: null }).kind).toBe('ok')
  })

  /** `texts` is what still loads: 620 of its 1,000 texts are read. */
  const texts = { state: 'backfilling', complete_as_of: null, fresh_as_of: null } as const
  const loading = (others: Partial<ResourceReport>, minutes: TrafficSpan[]) => {
    const rows = report().resources.map(row => ({
      ...row,
      ...(row.resource === 'messages' && others),
      ...(row.resource === 'message_bodies' && { ...texts, backfill_done: 620, pending_tasks: 380 }),
    }))
    return verdictOf(report({ resources: rows }), [], minutes)
  }
  const minute = (answered: number): TrafficSpan => ({
    at: FRESH,
    minutes: 1,
    requests: answered + 3,
    throttled: 2,
    errors: 1,
    rows: answered,
    in_flight: 1,
    rate: 1,
    paused_seconds: 0,
  })

  test('with every list complete, a first read states its share, and the time left from the ended minutes', () => {
    const { text, loading: progress } = loading({}, [minute(2), minute(2), minute(900)])
    expect(text).toBe('Loading history: 62 %, about 3 h 10 min left; the newest is already here')
    expect(progress).toMatchObject({ share: 0.62, leftMs: 190 * 60_000 })
    expect(loading({}, []).text).toBe('Loading history: 62 %; the newest is already here')
  })

  test('while a list is being read, no share is stated, since lists state no total', () => {
    const { text, loading: progress } = loading(texts, [minute(2), minute(2)])
    expect(text).toBe(
      `Loading history: ${RESOURCE_NAMES.length - 2} of ${RESOURCE_NAMES.length} resources are complete`,
    )
    expect(progress?.share).toBeUndefined()
  })

  test('the worst problem is named, and the others are counted', () => {
    const snapshot = { made_at: null, path: null, bytes: null, failed_at: SINCE, reason: 'no space.' }
    expect(verdict({ api: REFUSED, snapshot }).text).toBe(
      `Needs you since ${SINCE}: The API refuses access: The API answers 403 (and 1 more)`,
    )
  })
})

describe('the check', () => {
  const check = (
    changes: Partial<StatusReport>,
    row: Partial<ResourceReport>,
    maxAgeMs?: number,
    resource?: 'members' | 'messages',
  ) => checkStatus(report(changes, row), { now: NOW, maxAgeMs, resource })

  test('the status is 0 when all is well, 1 when parley waits, 2 when a person has to act', () => {
    const silent = { ...REFUSED, kind: 'silent' } as const
    const results = [check({}, {}), check({ api: silent }, {}), check({ api: REFUSED }, {})]
    expect(results.map(({ status, line }) => [status, line.replace(/:.*/, '')])).toEqual([
      [0, 'OK'],
      [1, 'WARNING'],
      [2, 'CRITICAL'],
    ])
  })

  test('only resources in time order are checked for their age, unless one is named', () => {
    const old = { fresh_as_of: '2026-03-04T09:00:00.000Z' }
    expect(check({}, old, 900_000).status).toBe(0)
    expect(check({}, old, 900_000, 'members')).toEqual({
      status: 2,
      line: 'CRITICAL: Needs you: members is 3 h old (allowed: 15 min). Check that parley daemon is running and reaches the API: parley status, parley doctor.',
    })
  })

  test('a resource that was never read is too old', () => {
    expect(check({}, { fresh_as_of: null }, 900_000, 'members').line).toContain('members has never been read')
  })

  test('the problems of other resources do not count when one is named', () => {
    const failing = { state: 'failing', failing_since: '2026-03-04T09:00:00.000Z' } as const
    expect(check({}, failing, undefined, 'messages').status).toBe(0)
    expect(check({}, failing).status).toBe(2)
  })
})
