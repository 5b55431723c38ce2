import { describe, expect, test } from 'vitest'
import { EXIT_STATUS, reasonWithHint, StopError } from '../../src/base/errors.ts'
import { RESOURCE_NAMES } from '../../src/declare/resource-names.ts'
import { checkStatus } from '../../src/health/check.ts'
import { completeSentence } from '../../src/health/completeness.ts'
import { databaseProblem, lastingProblems, problemsOf } from '../../src/health/problems.ts'
import { problemVerdict, verdictOf } from '../../src/health/verdict.ts'
import { writeError } from '../../src/store/migrations/foreign-objects.ts'
import type { TrafficSpan } from '../../src/store/status/overview.ts'
import type { ResourceReport, StatusReport } from '../../src/store/status/report.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { FRESH, NOW, RUNNING, report, SINCE, WRITER } from './report.ts'

const problems = (changes?: Partial<StatusReport>, row?: Partial<ResourceReport>) =>
  problemsOf(report(changes, row), NOW).map(({ id, kind, since }) => `${kind} ${id} ${since}`)

const REFUSED = { kind: 'refused', reason: 'The API answers 403', since: SINCE, next_try_at: FRESH } as const
const STOPPED = { ...WRITER, running: false }

describe('the problems of a warehouse', () => {
  test('a warehouse that is up to date has none', () => {
    expect(problems()).toEqual([])
  })

  test('items that could not be stored are one, which needs a person after an hour', () => {
    const at = (minutes: number) => new Date(NOW - minutes * 60_000).toISOString()
    expect(
      [1, 59, 60].flatMap(minutes => problems({}, { rejected: 2, rejected_since: at(minutes) })),
    ).toEqual([
      `wait rejected:members ${at(1)}`,
      `wait rejected:members ${at(59)}`,
      `act rejected:members ${at(60)}`,
    ])
    const row = { rejected: 1, rejected_since: at(60) }
    expect(problemsOf(report({}, row), NOW)[0]?.what).toBe('1 item of members could not be stored')
    const uncounted = report({}, row).resources.map(({ rejected: _, ...facts }) => facts)
    expect(problemsOf({ ...report(), resources: uncounted }, NOW)[0]?.what).toBe(
      'Items of members could not be stored',
    )
  })

  test('a problem that needs a person stays one when more fails', () => {
    const at = (minutes: number) => new Date(NOW - minutes * 60_000).toISOString()
    const rejected = (minutes: number) => ({ rejected: 1, rejected_since: at(minutes), failing_since: SINCE })
    const failing = `wait failing:members ${SINCE}`
    expect(problems({}, rejected(59))).toEqual([failing])
    expect(problems({}, rejected(60))).toEqual([`act rejected:members ${at(60)}`, failing])

    const silent = { api: { ...REFUSED, kind: 'silent' } } as const
    expect(problems(silent, { failing_since: at(79) })).toEqual([`wait api:silent ${SINCE}`])
    expect(problems(silent, { failing_since: at(80) })).toEqual([
      `act failing:members ${at(80)}`,
      `wait api:silent ${SINCE}`,
    ])
  })

  test('a problem lasts while another one explains it', () => {
    const silent = { api: { ...REFUSED, kind: 'silent' } } as const
    const row = { rejected: 1, rejected_since: SINCE, failing_since: SINCE }
    expect(problems(silent, row)).toEqual([`wait api:silent ${SINCE}`])
    expect(lastingProblems(report(silent, row))).toEqual(['failing:members', 'rejected:members'])
    expect(lastingProblems(report())).toEqual([])
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
      'a route that the API limits',
      {
        closed_routes: [
          { ...REFUSED, kind: 'asked-to-wait', route: '/v1/meetings', resources: ['meetings'] },
        ],
      },
      `wait route:/v1/meetings ${SINCE}`,
    ],
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
      { purge_remains: [{ place: 'copies', path: '/x', reason: 'busy' }] },
      'act remains:/x null',
    ],
  ])('%s is one problem', (_, changes, expected) => {
    expect(problems(changes)).toEqual([expected])
  })

  const LATE = {
    target: '/lake',
    since: SINCE,
    due_at: FRESH,
    late_at: SINCE,
    running_since: null,
    is_late: true,
    lag_seconds: null,
    last: null,
    failing: { since: SINCE, times: 3, at: SINCE, code: 'x', reason: 'The disk is full. Free space.' },
  }

  test('a publication that fails is a problem once it is late', () => {
    expect(problems({ publication: { ...LATE, is_late: false } })).toEqual([])
    const found = problemsOf(report({ publication: LATE }), NOW)
    expect(found).toMatchObject([{ id: 'publication', kind: 'act', since: SINCE }])
    expect(found[0]?.detail).toBe('The disk is full. Free space. Next try: 11:59:00 UTC (now)')
    expect(
      checkStatus(report({ publication: LATE }), { now: NOW, maxAgeMs: undefined, resource: undefined }).line,
    ).toMatch(/^CRITICAL: Needs you since .*The warehouse is not published to \/lake\. The disk is full/)
  })

  test('a complete publication that could not remove earlier files is a warning until one can', () => {
    const last = {
      publication: 2,
      started_at: SINCE,
      finished_at: SINCE,
      published_at: SINCE,
      complete_as_of: null,
      fresh_as_of: null,
      tables_changed: 0,
      rows: 0,
      files_written: 0,
      files_removed: 0,
      bytes_written: 0,
      error: 'Publication 2 is complete; files of earlier ones could not be removed: no permission.',
    }
    const publication = { ...LATE, is_late: false, failing: null, last }
    expect(problems({ publication })).toEqual([`warn publication-files ${SINCE}`])
    expect(problems({ publication: { ...publication, last: { ...last, error: null } } })).toEqual([])
  })

  test('a late publication that did not fail may still end, and without a daemon there is another problem', () => {
    const publication = { ...LATE, failing: null }
    expect(problems({ publication })).toEqual([`wait publication ${SINCE}`])
    const old = { ...publication, late_at: '2026-03-04T11:00:00.000Z' }
    expect(problems({ publication: old })).toEqual([expect.stringMatching(/^act publication /)])
    expect(problems({ publication, writer: STOPPED })).toEqual([`act daemon:stopped ${SINCE}`])
  })

  test('a failing resource is retried at first, with its next try and the time when it needs a person, which it does after an hour', () => {
    const why = {
      state: 'failing',
      reason: 'The API answers 500',
      next_run_at: '2026-03-04T12:00:40.000Z',
    } as const
    expect(problemsOf(report({}, { ...why, failing_since: SINCE }), NOW)).toMatchObject([
      {
        id: 'failing:members',
        kind: 'wait',
        detail: 'The API answers 500. Next try: 12:00:40 UTC (in 40 s)',
        todo: 'Nothing to do yet. It needs you if it lasts until 12:40:00 UTC.',
      },
    ])
    const long = '2026-03-04T11:00:00.000Z'
    expect(problems({}, { ...why, failing_since: long })).toEqual([`act failing:members ${long}`])
    expect(problems({ api: { ...REFUSED, kind: 'silent', since: long } })).toEqual([`act api:silent ${long}`])
  })

  test.each([
    [
      'the proxy http://p:1 (api.proxy) refuses the user name and password (HTTP 407)',
      'Correct the user name and password of the proxy in api.proxy.',
    ],
    [
      'its certificate is not trusted (SELF_SIGNED_CERT_IN_CHAIN)',
      'If the certificate is one of your company, name its file by NODE_EXTRA_CA_CERTS.',
    ],
    ['its certificate has expired (CERT_HAS_EXPIRED)', 'Have the certificate renewed'],
  ])('an API that cannot be reached because %s needs a person at once', (fault, todo) => {
    const reason = `The API cannot be reached: ${fault}`
    expect(
      problemsOf(report({ api: { ...REFUSED, kind: 'silent', since: SINCE, reason } }), NOW),
    ).toMatchObject([{ id: 'api:silent', kind: 'act', todo: expect.stringContaining(todo) }])
  })

  test('a resource into which a trigger of other people refuses to write needs a person at once', () => {
    const store = temporaryStore()
    store.db.exec("CREATE TRIGGER picky BEFORE INSERT ON teams BEGIN SELECT RAISE(ABORT, 'no'); END")
    const refused = Object.assign(new Error('no'), { code: 'SQLITE_CONSTRAINT_TRIGGER' })
    const reason = reasonWithHint(writeError(refused, store.path) as StopError)
    const failing = { state: 'failing', failing_since: SINCE, reason } as const
    expect(problemsOf(report({}, failing), NOW)).toMatchObject([
      {
        id: 'failing:members',
        kind: 'act',
        detail: expect.stringMatching(/picky on teams.* Mend it, or drop it with .* in an sqlite3 shell$/),
        todo: 'When that is done, parley reads it again by itself within 15 minutes.',
      },
    ])
  })

  test('a resource that fails while no process tries again needs a person at once, and explains the end of the backfill', () => {
    const ended = { ...STOPPED, command: 'backfill' }
    const backfill = { ended_at: FRESH, exit_status: 69, reason: 'Some resources failed' }
    const failing = {
      state: 'failing',
      failing_since: SINCE,
      reason: 'Grant the key this permission again.',
    } as const
    const made = report({ writer: ended, daemon: null, backfill }, failing)
    expect(problemsOf(made, NOW)).toMatchObject([
      {
        id: 'failing:members',
        kind: 'act',
        detail: 'Grant the key this permission again',
        todo: expect.stringContaining('run parley backfill again'),
      },
    ])
  })

  test.each([
    [69, false],
    [77, false],
    [73, true],
    [75, true],
  ])(
    'a backfill that ended with %i is a separate problem next to a failing resource: %s',
    (status, isOwn) => {
      const ended = { ...STOPPED, command: 'backfill' }
      const backfill = { ended_at: FRESH, exit_status: status, reason: 'why' }
      const failing = { state: 'failing', failing_since: SINCE, reason: 'The API answers 403' } as const
      const found = problems({ writer: ended, daemon: null, backfill }, failing)
      expect(found).toEqual([
        ...(isOwn ? [`act backfill:ended ${FRESH}`] : []),
        `act failing:members ${SINCE}`,
      ])
    },
  )

  test.each([
    [undefined, 'Run parley backfill again; it continues where it stopped.'],
    ['Free space.', 'Free space. Run parley backfill again; it continues where it stopped.'],
    ['Restore a snapshot, then run parley backfill.', 'Restore a snapshot, then run parley backfill.'],
  ])('what to do about a backfill that ended begins with its hint: %s', (hint, todo) => {
    const backfill = { ended_at: FRESH, exit_status: 73, reason: 'why', ...(hint && { hint }) }
    const made = report({ writer: { ...STOPPED, command: 'backfill' }, daemon: null, backfill })
    expect(problemsOf(made, NOW)).toMatchObject([{ id: 'backfill:ended', detail: 'why', todo }])
  })

  test('settings that a reload refused are a warning while the daemon runs', () => {
    const invalid_settings = { since: SINCE, reason: 'Invalid settings, 2 problems:\n  a\n  b' }
    const made = report({ daemon: { ...RUNNING, invalid_settings } })
    const [problem] = problemsOf(made, NOW)
    expect(problem).toMatchObject({ id: 'settings:invalid', kind: 'warn', since: SINCE })
    expect(problem?.detail).toBe('Invalid settings, 2 problems: a; b')
    expect(checkStatus(made, { now: NOW, maxAgeMs: undefined, resource: undefined })).toMatchObject({
      status: 1,
      line: expect.stringMatching(/^WARNING: Needs a look since .+: The new settings are invalid/),
    })
    expect(problems({ daemon: { ...RUNNING, invalid_settings }, writer: STOPPED })).toEqual([
      `act daemon:stopped ${SINCE}`,
    ])
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

  test('deletions that are held back name the command that accepts them once', () => {
    const reason = 'Deletion of 40 rows is held back. To delete them now: parley accept-deletions members'
    const held = { state: 'failing', reason, failing_since: SINCE, deletions_held_since: SINCE } as const
    const [problem] = problemsOf(report({}, held), NOW)
    const { what, detail, todo } = problem ?? { what: '', detail: '', todo: '' }
    expect(`${what} ${detail} ${todo}`.match(/parley accept-deletions members/g)).toHaveLength(1)
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

test('a program that keeps a large write-ahead log from shrinking is a warning that names it', () => {
  const wal_readers = [{ pid: 812, program: 'sqlite3', state: 'stopped (SIGSTOP)' }]
  expect(problemsOf(report({ wal_bytes: 343_000_000, wal_readers }), NOW)).toMatchObject([
    {
      id: 'wal',
      kind: 'warn',
      what: 'The write-ahead log has 343 MB and cannot shrink while a program reads',
      detail: expect.stringContaining('process 812 (sqlite3), which is stopped (SIGSTOP)'),
    },
  ])
})

test.each([
  ['no problem in the first day', '2026-03-03T12:00:01.000Z', []],
  ['a warning after a day', '2026-03-03T12:00:00.000Z', ['Deletions of members are not recognised']],
])('a list that shows another number of rows than it states is %s', (_, since, expected) => {
  const found = problemsOf(report({}, { size_differs_since: since }), NOW)
  expect(found.map(({ what }) => what)).toEqual(expected)
  expect(found).toMatchObject(expected.map(() => ({ id: 'unrecognised:members', kind: 'warn', since })))
})

test('a program that keeps the writer from writing is a warning that names it', () => {
  const lock_holders = [{ pid: 812, program: 'sqlite3', state: 'running' }]
  expect(problemsOf(report({ lock_holders }), NOW)).toMatchObject([
    {
      id: 'daemon:database-busy',
      kind: 'warn',
      what: 'Another program has locked the database',
      detail: 'The lock is held by process 812 (sqlite3), which is running',
    },
  ])
})

test.each(['wal', 'free space'] as const)(
  'no problem asks for the removal of a file of the database: %s',
  place => {
    const purge_remains = [{ place, path: '/data/parley.db', reason: 'a program reads it' }]
    const [problem] = problemsOf(report({ purge_remains }), NOW)
    expect(problem?.todo).toMatch(/[Nn]ever remove (the file|it)/)
  },
)

test('the line of the check has whole sentences', () => {
  const daemon = {
    ...RUNNING,
    state: 'stopped' as const,
    reason: 'it was killed, or the machine or disk failed',
  }
  const stopped = report({ daemon, writer: { ...WRITER, running: false } })
  const question = { now: NOW, maxAgeMs: undefined, resource: undefined }
  expect(checkStatus(stopped, question).line).toMatch(/nothing is updated\. It was killed, or the machine/)
})

describe('the problem of a database that cannot be read', () => {
  const MISSING = new StopError('There is no warehouse at /data/parley.db', {
    code: 'no-warehouse',
    hint: 'Run parley backfill.',
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
  const waiting = (code: string) => ({ ...RUNNING, state: 'waiting', code, reason: 'It says why.' }) as const

  test('of a running daemon it is what the read reports, since an unknown instant', () => {
    const problem = databaseProblem(MISSING, { daemon: RUNNING, since: null })
    expect(problem).toEqual({
      id: 'database',
      kind: 'act',
      what: 'There is no warehouse at /data/parley.db',
      detail: null,
      todo: 'Run parley backfill.',
      since: null,
    })
    expect(problemVerdict(problem, 0, NOW)).toEqual({
      kind: 'act',
      text: 'Needs you: There is no warehouse at /data/parley.db',
      detail: null,
      todo: 'Run parley backfill.',
    })
  })

  test.each(['database-moved', 'rebuilding'])(
    'of a daemon that waits with the code %s it is the same problem as in a report',
    code => {
      expect([databaseProblem(MISSING, { daemon: waiting(code), since: null })]).toEqual(
        problemsOf(report({ daemon: waiting(code) }), NOW),
      )
    },
  )

  test.each(['unauthorized', 'access-gone'])(
    'of a daemon that waits with the code %s it is a second problem',
    code => {
      expect(databaseProblem(MISSING, { daemon: waiting(code), since: null }).id).toBe('database')
    },
  )
})

describe('the verdict', () => {
  const verdict = (changes?: Partial<StatusReport>, row?: Partial<ResourceReport>) => {
    const made = report(changes, row)
    return verdictOf(made, problemsOf(made, NOW), { now: NOW })
  }

  test('the verdict names the oldest instant before which everything is there', () => {
    expect(verdict({}, { complete_as_of: '2026-03-04T11:58:07.000Z' })).toEqual({
      kind: 'ok',
      text: 'Up to date: everything published before 11:58:07 UTC is here',
      detail: 'Nothing to do',
      todo: null,
    })
  })

  test('when older dates were read longer ago than the newest ones, both instants are named', () => {
    expect(verdict({}, { complete_as_of: '2026-02-28T10:00:00.000Z' })).toMatchObject({
      kind: 'ok',
      text: 'Up to date: what is new until 11:59:00 UTC is here',
      detail:
        'Nothing to do. Older dates are read again at intervals: everything published before 2026-02-28 10:00 UTC is here, whatever its date',
    })
  })

  const NARROWED = { since: '2026-01-01T00:00:00.000Z', complete_as_of: FRESH }
  const OLD = '2026-02-28T10:00:00.000Z'

  test('when sync.since has been narrowed, no older date is said to be read again', () => {
    const row = {
      resource: 'activities',
      complete_as_of: OLD,
      fresh_as_of: FRESH,
      read_since: NARROWED,
    } as const
    expect(verdict({}, row).detail).toBe(
      'Nothing to do. Items from before 2026-01-01 (sync.since) are not read again: everything published before 2026-02-28 10:00 UTC is here, whatever its date',
    )
  })

  test('a log that begins at some instant is no sync.since', () => {
    const [activities] = report(
      {},
      { resource: 'activities', complete_as_of: OLD, fresh_as_of: FRESH },
    ).resources
    const [log] = report({}, { resource: 'access_logs', complete_as_of: OLD, read_since: NARROWED }).resources
    const resources = [activities, log].flatMap(row => row ?? [])
    expect(verdict({ resources }).detail).toMatch(/^Nothing to do. Older dates are read again at intervals: /)
  })

  test('a sync.since in the future is a warning that names it', () => {
    const read_since = { since: '2027-06-01T00:00:00.000Z', complete_as_of: null }
    const what = 'sync.since is 2027-06-01, in the future, so no new activities and messages are read'
    expect(problemsOf(report({}, { read_since }), NOW)).toMatchObject([{ id: 'since', kind: 'warn', what }])
    const past = { ...read_since, since: '2026-03-04T11:00:00.000Z' }
    expect(problemsOf(report({}, { read_since: past }), NOW)).toEqual([])
  })

  test('a complete warehouse is not up to date when no process reads, and a backfill is reading what is new', () => {
    const backfill = { ended_at: FRESH, exit_status: 0, reason: null }
    const ended = { ...STOPPED, command: 'backfill' }
    expect(verdict({ writer: ended, daemon: null, backfill })).toMatchObject({
      kind: 'ok',
      text: 'Complete: everything published before 11:59:00 UTC is here',
      detail: expect.stringContaining('No process reads at the moment'),
    })
    expect(verdict({ writer: { ...ended, running: true }, daemon: null })).toMatchObject({
      kind: 'loading',
      text: 'Reading what is new: everything published before 11:59:00 UTC is already here',
    })
  })

  test('the verdict says what of the API it is about', () => {
    const text = (changes: Partial<StatusReport>, row?: Partial<ResourceReport>) => verdict(changes, row).text
    expect(text({ chosen_resources: ['members', 'teams'] })).toBe(
      'Up to date: everything published of members, teams before 11:59:00 UTC is here',
    )
    expect(text({ chosen_resources: ['members', 'teams', 'playbooks', 'messages'] })).toBe(
      'Up to date: everything published of 4 resources before 11:59:00 UTC is here',
    )
  })

  describe('the verdict where activities and messages have no instant', () => {
    const CUT = ['activities', 'messages'] as const
    const cut = (changes: Partial<ResourceReport>, ...names: readonly ResourceReport['resource'][]) =>
      report().resources.map(one =>
        names.includes(one.resource) ? { ...one, complete_as_of: null, ...changes } : one,
      )
    const read_since = { since: '2026-01-01T00:00:00.000Z', complete_as_of: FRESH }
    const text = (
      resources: readonly ResourceReport[],
      chosen_resources: readonly ResourceReport['resource'][] = RESOURCE_NAMES,
    ) => verdict({ resources, chosen_resources }).text

    test('with sync.since it says what is left out, also when nothing else was chosen', () => {
      const resources = cut({ read_since }, ...CUT)
      expect([text(resources), text(resources, CUT)]).toEqual([
        'Up to date: everything published before 11:59:00 UTC, except items from before 2026-01-01 (sync.since), is here',
        'Up to date: everything published of activities, messages before 11:59:00 UTC, except items from before 2026-01-01 (sync.since), is here',
      ])
    })

    test('where a span became due after the first read, it leaves the resource out', () => {
      expect([text(cut({}, 'messages'), CUT), text(cut({}, 'messages'), ['messages'])]).toEqual([
        'Up to date: everything published of activities before 11:59:00 UTC is here',
        'Not everything of messages is here yet',
      ])
    })

    test('where the workspace does not offer them, it says so', () => {
      expect(text(cut({ state: 'unavailable' }, ...CUT), CUT)).toBe(
        'This workspace does not offer activities, messages',
      )
    })
  })

  test('the sentence of a copy says what it is about, what sync.since leaves out, and what is not read', () => {
    const whole = { chosen: RESOURCE_NAMES, unread: [], since: null, fresh_as_of: null }
    const at = '2026-03-04T11:59:00.000Z'
    const since = '2026-01-01T00:00:00.000Z'
    expect([
      completeSentence({ ...whole, complete_as_of: at }),
      completeSentence({ ...whole, complete_as_of: at, since, chosen: ['activities', 'messages'] }),
      completeSentence({ ...whole, complete_as_of: null, unread: RESOURCE_NAMES }),
      completeSentence({ ...whole, complete_as_of: null, unread: ['meetings'] }),
    ]).toEqual([
      `The data are complete as of ${at}.`,
      `The data of activities, messages are complete as of ${at}, except items from before 2026-01-01 (sync.since).`,
      'The data are not complete yet: parley has not read the whole history of every resource.',
      'The data are not complete yet: parley has not read the whole history of meetings.',
    ])
  })

  test('a process that is stopped tries nothing again by itself', () => {
    const hint = 'Continue process 7 with kill -CONT 7, or end it with kill -KILL 7.'
    const halted = {
      state: 'waiting',
      code: 'halted',
      reason: 'Process 7 is stopped',
      hint,
      since: SINCE,
      until: null,
    } as const
    expect(verdict({ daemon: halted })).toMatchObject({ kind: 'act', todo: hint })
  })

  test('a history that no process reads further is not loading', () => {
    const unread = { state: 'backfilling', complete_as_of: null } as const
    expect(verdict({}, unread).kind).toBe('loading')
    expect(verdict({ writer: { ...STOPPED, command: 'backfill' }, daemon: null }, unread)).toMatchObject({
      kind: 'warn',
      detail: 'No process reads at the moment',
      todo: 'Run parley backfill, or start parley daemon.',
    })
  })

  test('a resource whose first read is over is not loading when a part of it is not read yet', () => {
    expect(verdict({}, { state: 'ok', complete_as_of: null }).kind).toBe('ok')
    expect(verdict({}, { state: 'waiting', complete_as_of: null }).kind).toBe('ok')
  })

  test('resources that the settings leave out are not loading', () => {
    const unread = { state: 'backfilling', complete_as_of: null } as const
    const chosen = RESOURCE_NAMES.filter(name => name !== 'members')
    expect(verdict({ chosen_resources: chosen }, unread).kind).toBe('ok')
  })

  test('a refused key is named, with where it was read, where the new one belongs and what happens next', () => {
    const reason = 'The API refuses the key from systemd credential api_key'
    const hint =
      'Write the new key to the file that the unit names (LoadCredential=), and restart the service.'
    const until = '2026-03-04T12:00:30.000Z'
    const daemon = { ...RUNNING, state: 'waiting', code: 'unauthorized', reason, hint, until } as const
    expect(problems({ daemon })).toEqual(problems({ daemon, api: REFUSED }))
    expect(verdict({ daemon })).toMatchObject({
      text: 'Needs you since 11:40:00 UTC: The API refuses the key',
      detail: `${reason}. Next try: 12:00:30 UTC (in 30 s)`,
      todo: `${hint} A refusal at the next try ends the daemon.`,
    })
  })

  test('a daemon that waits for the disk says what the error says to do', () => {
    const why = { code: 'database-unavailable', reason: 'The disk is full.', hint: 'Free disk space.' }
    expect(verdict({ daemon: { ...RUNNING, state: 'waiting', ...why } })).toMatchObject({
      text: 'Needs you since 11:40:00 UTC: The daemon cannot use the database',
      detail: 'The disk is full',
      todo: 'Free disk space. parley tries again by itself every minute.',
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
  const loading = (others: Partial<ResourceReport>, minutes: TrafficSpan[], read = 620) => {
    const rows = report().resources.map(row => ({
      ...row,
      ...(row.resource === 'messages' && others),
      ...(row.resource === 'message_bodies' && { ...texts, backfill_done: read, pending_tasks: 1000 - read }),
    }))
    return verdictOf(report({ resources: rows }), [], { now: NOW, minutes })
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

  test('before a tenth is read, no time is stated', () => {
    const left = (read: number) => loading({}, [minute(2), minute(2)], read).loading?.leftMs
    expect([left(99), left(100)]).toEqual([undefined, expect.any(Number)])
  })

  test('while a list is being read, no share is stated, since lists state no total', () => {
    const { text, loading: progress } = loading(texts, [minute(2), minute(2)])
    expect(text).toBe(
      `Loading history: ${RESOURCE_NAMES.length - 2} of ${RESOURCE_NAMES.length} resources are complete`,
    )
    expect(progress?.share).toBeUndefined()
  })

  test.each([
    [FRESH, 0.62],
    [null, undefined],
  ])('a single object that was read at %s leaves the share of the texts at %s', (at, share) => {
    const resources = report().resources.map(row => {
      if (row.resource === 'message_bodies')
        return { ...row, ...texts, backfill_done: 619, pending_tasks: 380 }
      if (row.resource !== 'integrations') return row
      return { ...row, ...texts, fresh_as_of: at, backfill_done: 1, pending_tasks: 0 }
    })
    expect(verdictOf(report({ resources }), [], { now: NOW, minutes: [] }).loading?.share).toBe(share)
  })

  test('the worst problem is named, and the others are counted', () => {
    const snapshot = { made_at: null, path: null, bytes: null, failed_at: SINCE, reason: 'no space.' }
    expect(verdict({ api: REFUSED, snapshot }).text).toBe(
      'Needs you since 11:40:00 UTC: The API refuses access (and 1 more problem)',
    )
  })
})

describe('the check', () => {
  const check = (
    changes: Partial<StatusReport>,
    row: Partial<ResourceReport>,
    maxAgeMs?: number,
    resource?: 'members' | 'messages' | 'transcripts',
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

  test('a resource without a list is as old as its last complete read', () => {
    const age = (changes: Partial<ResourceReport>) => {
      const resources = report().resources.map(row => ({ ...row, fresh_as_of: null, ...changes }))
      return check({ resources }, {}, 900_000, 'transcripts')
    }
    expect(age({}).status).toBe(0)
    expect(age({ complete_as_of: '2026-03-04T09:00:00.000Z' }).line).toContain('transcripts is 3 h old')
  })

  test('the age of a resource that was not chosen does not count, unless it is named', () => {
    const changes: Partial<StatusReport> = {
      chosen_resources: ['activities'],
      resources: report().resources.map(row =>
        row.resource === 'messages' ? { ...row, fresh_as_of: null } : row,
      ),
    }
    expect(check(changes, {}, 900_000).status).toBe(0)
    expect(check(changes, {}, 900_000, 'messages').line).toContain('messages has never been read')
  })

  test.each([{}, { state: 'backfilling', complete_as_of: null }, { state: 'unavailable' }] as const)(
    'a named resource that was not chosen is a warning (%o)',
    row => {
      const changes: Partial<StatusReport> = {
        chosen_resources: ['activities'],
        resources: report().resources.map(one => (one.resource === 'members' ? { ...one, ...row } : one)),
      }
      const { status, line } = check(changes, {}, undefined, 'members')
      expect([status, line]).toEqual([
        1,
        expect.stringContaining('members is not read, since sync.resources, --only or --skip leave it out'),
      ])
      expect(check(changes, {}).status).toBe(0)
    },
  )

  test('a resource that was never read is too old', () => {
    expect(check({}, { fresh_as_of: null }, 900_000, 'members').line).toContain('members has never been read')
  })

  test('the problems of other resources do not count when one is named', () => {
    const failing = { state: 'failing', failing_since: '2026-03-04T09:00:00.000Z' } as const
    expect(check({}, failing, undefined, 'messages').status).toBe(0)
    expect(check({}, failing).status).toBe(2)
  })
})
