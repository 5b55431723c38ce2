import { describe, expect, test } from 'vitest'
import { accessGone, unauthorized } from '../../src/api/access-errors.ts'
import { systemClock } from '../../src/base/clock.ts'
import { EXIT_STATUS, StopError } from '../../src/base/errors.ts'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import { MAINTENANCE, nextOccurrence } from '../../src/config/calendar.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { livenessProblem, readinessProblem } from '../../src/daemon/readiness.ts'
import { recoveryFrom, type SessionsBefore, sessionsUntil } from '../../src/daemon/recovery.ts'
import { changedSettings } from '../../src/daemon/settings-changes.ts'
import { type CurrentState, waitingState } from '../../src/daemon/state.ts'
import { readsFor } from '../../src/daemon/webhook-reads.ts'
import { RESOURCE_NAMES } from '../../src/declare/resource-names.ts'

const ACCESS = {
  baseUrl: 'https://api.example.com',
  workspaceId: 'acme',
  keySource: { by: 'environment', text: 'environment PARLEY_API_KEY' } as const,
}
const stop = (exitStatus: StopError['exitStatus'], code = 'x') => new StopError('why', { code, exitStatus })
const AT = Date.parse('2026-03-04T12:00:00.000Z')
const EARLIER = '2026-03-04T11:00:00.000Z'

test.each([
  ['a wait for the same reason', 'waiting', 'database-full', EARLIER],
  ['a wait for another reason', 'waiting', 'database-busy', '2026-03-04T12:00:00.000Z'],
  ['no wait', 'running', undefined, '2026-03-04T12:00:00.000Z'],
] as const)('a daemon that waits after %s waits since then', (_, state, code, since) => {
  const clock = { ...systemClock(), now: () => AT }
  const before = { state, reason: 'why', since: EARLIER, until: null, ...(code && { code }) }
  const recovery = {
    kind: 'wait',
    ms: 60_000,
    reason: 'why',
    hint: undefined,
    code: 'database-full',
  } as const
  expect(waitingState(clock, recovery, before)).toMatchObject({ since, until: '2026-03-04T12:01:00.000Z' })
})

const wait = (reason: string, code = 'x', hint?: string) => ({ kind: 'wait', ms: 60_000, reason, hint, code })

test('the reason that no API answers says since when', () => {
  const state = { state: 'running', reason: null, since: EARLIER, until: null } as const
  const trouble = {
    kind: 'silent',
    reason: 'HTTP status 502',
    since: AT,
    nextTryAt: AT,
    givesUpAt: undefined,
  }
  const session = { progress: () => ({ trouble: () => trouble }) }
  expect(readinessProblem({ state, session } as unknown as CurrentState)).toBe(
    'no request to the API succeeds since 2026-03-04 12:00 UTC: HTTP status 502',
  )
})

test.each([
  [
    { by: 'credential', text: 'systemd credential api_key' },
    'Write the new key to the file that the unit names (LoadCredential=), and restart the service.',
  ],
  [
    { by: 'environment', text: 'environment PARLEY_API_KEY' },
    'Set PARLEY_API_KEY to the new key, and start parley again.',
  ],
  [
    { by: 'file', text: '/etc/key (flag --api-key-file)' },
    'Write the new key to /etc/key (flag --api-key-file).',
  ],
] as const)('a key from %o that is refused is replaced there', (keySource, todo) => {
  expect(unauthorized({ ...ACCESS, keySource }, 'Invalid API key').hint).toBe(
    `The key is wrong, expired or revoked, or belongs to another workspace. ${todo}`,
  )
})

test.each([
  [0, undefined],
  [299_999, undefined],
  [300_000, 'no commit or checkpoint of the database has ended for 5 minutes'],
  [3_600_000, 'no commit or checkpoint of the database has ended for 60 minutes'],
])('a daemon whose write has been under way for %i ms is stuck: %s', (blockedMs, problem) => {
  expect(livenessProblem(blockedMs)).toBe(problem)
})

describe('the recovery from a failed session', () => {
  test.each([
    [
      'the daemon waits while the database of another workspace is in the place of its own',
      stop(EXIT_STATUS.settings, 'other-workspace'),
      true,
      true,
      wait('why', 'other-workspace'),
    ],
    [
      'the database of another workspace at the start ends the daemon',
      stop(EXIT_STATUS.settings, 'other-workspace'),
      false,
      false,
      { kind: 'end' },
    ],
    [
      'the daemon waits while the disk is full',
      stop(EXIT_STATUS.databaseUnavailable),
      true,
      true,
      wait('why'),
    ],
    [
      'a full disk at the start ends the daemon',
      stop(EXIT_STATUS.databaseUnavailable),
      false,
      false,
      { kind: 'end' },
    ],
    [
      'the daemon waits for another process that has taken the database',
      stop(EXIT_STATUS.unfinished),
      true,
      false,
      wait('why'),
    ],
    [
      'the daemon waits at its start while another program has locked the database',
      stop(EXIT_STATUS.unfinished, 'database-busy'),
      false,
      false,
      wait('why', 'database-busy'),
    ],
    [
      'the daemon waits at its start until a trigger of other people is dropped',
      stop(EXIT_STATUS.databaseUnavailable, 'foreign-object'),
      false,
      false,
      wait('why', 'foreign-object'),
    ],
    [
      'the daemon continues at once when a damaged full-text index is built again',
      stop(EXIT_STATUS.unfinished, 'search-rebuilt'),
      true,
      true,
      { kind: 'continue' },
    ],
    [
      'another writer at the start ends the daemon',
      stop(EXIT_STATUS.unfinished),
      false,
      false,
      { kind: 'end' },
    ],
    [
      'a key that is refused once after it was accepted is read again; the reason names its source, and the hint says what to do',
      unauthorized(ACCESS, 'Invalid API key'),
      true,
      true,
      wait(
        `The API at ${ACCESS.baseUrl} refuses the key from ${ACCESS.keySource.text} (workspace ${ACCESS.workspaceId}): Invalid API key`,
        'unauthorized',
        'The key is wrong, expired or revoked, or belongs to another workspace. Set PARLEY_API_KEY to the new key, and start parley again.',
      ),
    ],
    [
      'a key that is refused at the start, or again, ends the daemon',
      unauthorized(ACCESS, 'Invalid API key'),
      true,
      false,
      { kind: 'end' },
    ],
    [
      'a defect of the program ends the daemon',
      new TypeError('x is not a function'),
      true,
      true,
      { kind: 'end' },
    ],
  ])('%s', (_, error, hasStarted, wasAnswered, recovery) => {
    const before = { wasAnsweredBefore: false, isKeyTrusted: wasAnswered, timesLost: 0 }
    expect(recoveryFrom({ error, hasStarted, wasAnswered, ...before })).toEqual(recovery)
  })

  const lost = {
    error: stop(EXIT_STATUS.refused, 'access-gone'),
    hasStarted: true,
    wasAnswered: false,
    wasAnsweredBefore: true,
    isKeyTrusted: true,
  }

  test.each<[string, readonly ('answered' | 'silent' | 'refused')[], boolean]>([
    ['a process that has sent nothing', [], false],
    ['a session with an answer', ['answered'], true],
    ['an answer, then a session without one, such as after a reload', ['answered', 'silent'], true],
    ['a refusal after an answer', ['answered', 'refused'], false],
    ['a refusal after an answer, and then a session without one', ['answered', 'refused', 'silent'], false],
    ['an answer after a refusal', ['answered', 'refused', 'answered'], true],
  ])('after %s, a refusal of the key is waited out: %s', (_, sessions, expected) => {
    let before: SessionsBefore = {
      hasStarted: false,
      wasAnsweredBefore: false,
      isKeyTrusted: false,
      timesLost: 0,
    }
    for (const session of sessions) {
      const wasAnswered = session === 'answered'
      const isKeyTrusted = before.isKeyTrusted || wasAnswered
      const error = session === 'refused' ? unauthorized(ACCESS, 'Invalid API key') : undefined
      before = sessionsUntil({ ...before, isKeyTrusted, error, hasStarted: true, wasAnswered })
    }
    const error = unauthorized(ACCESS, 'Invalid API key')
    const end = { ...before, error, hasStarted: true, wasAnswered: false }
    expect(recoveryFrom(end).kind === 'wait').toBe(expected)
  })

  test('the daemon waits from a minute up to an hour after it has lost access', () => {
    const waits = [1, 2, 3, 6, 7, 100].map(timesLost => recoveryFrom({ ...lost, timesLost }))
    const minutes = waits.map(recovery => (recovery.kind === 'wait' ? recovery.ms / 60_000 : recovery.kind))
    expect(minutes).toEqual([1, 2, 4, 32, 60, 60])
  })

  test('the hint of a wait for lost access says what a person can do about it', () => {
    expect(recoveryFrom({ ...lost, error: accessGone(ACCESS, false), timesLost: 1 })).toMatchObject({
      reason: expect.stringMatching(/key from .+\)$/),
      hint: expect.stringMatching(/^Check api\.workspace_id and the key's permissions\./),
    })
  })

  test('access that was never granted ends the daemon', () => {
    expect(recoveryFrom({ ...lost, wasAnsweredBefore: false, timesLost: 1 })).toEqual({ kind: 'end' })
  })
})

describe('the settings that changed', () => {
  const settings = (env: Record<string, string>) =>
    loadSettings({ flags: {}, env, cwd: '/nowhere', requireApi: false, resourceNames: RESOURCE_NAMES })
      .settings

  test('equal settings have no changes', () => {
    expect(
      changedSettings(settings({ PARLEY_DATABASE: 'a.db' }), settings({ PARLEY_DATABASE: 'a.db' })),
    ).toEqual([])
  })

  test('each changed setting is named with both values, whatever its kind, and a secret without them', () => {
    const before = settings({
      PARLEY_SYNC_RESOURCES: 'members,teams',
      PARLEY_API_MAX_REQUESTS_PER_SECOND: '3',
      PARLEY_API_KEY: 'the-key',
      PARLEY_PUBLISH_LOCATION: 'https://user:password@example.com',
    })
    const after = settings({
      PARLEY_SYNC_RESOURCES: 'members',
      PARLEY_HTTP_LISTEN: 'off',
      PARLEY_RETENTION_WITHDRAWN_DAYS: 'never',
    })
    const changes = changedSettings(before, after)
    expect(changes.map(({ setting }) => setting).sort()).toEqual([
      'api.key',
      'api.max_requests_per_second',
      'http.listen',
      'publish.location',
      'retention.withdrawn_days',
      'sync.resources',
    ])
    expect(changes).toEqual(
      expect.arrayContaining([
        { setting: 'api.key' },
        { setting: 'publish.location' },
        { setting: 'api.max_requests_per_second', before: '3', after: 'null' },
        { setting: 'retention.withdrawn_days', before: '30', after: 'never' },
        { setting: 'sync.resources', before: '["members","teams"]', after: '["members"]' },
      ]),
    )
  })

  test.each([
    ['database.mode', 'PARLEY_DATABASE_MODE', '0600', '0640'],
    ['http.listen', 'PARLEY_HTTP_LISTEN', '127.0.0.1:8787', '[::1]:8788'],
    ['http.listen', 'PARLEY_HTTP_LISTEN', '127.0.0.1:8787', 'unix:/run/parley.sock'],
    ['http.listen', 'PARLEY_HTTP_LISTEN', '127.0.0.1:8787', 'off'],
    ['publish.every', 'PARLEY_PUBLISH_EVERY', '5m', '90s'],
    ['publish.every', 'PARLEY_PUBLISH_EVERY', '5m', '7d'],
    ['publish.every', 'PARLEY_PUBLISH_EVERY', '5m', 'daily'],
    ['publish.every', 'PARLEY_PUBLISH_EVERY', '5m', '30 */6 * * *'],
    ['publish.every', 'PARLEY_PUBLISH_EVERY', '5m', 'never'],
    ['snapshot.every', 'PARLEY_SNAPSHOT_EVERY', 'null', 'weekly'],
    ['api.max_response_bytes', 'PARLEY_API_MAX_RESPONSE_BYTES', '32MiB', '1536KiB'],
    ['reporting.work_from', 'PARLEY_REPORTING_WORK_FROM', '09:00', '07:05'],
  ] as const)(
    'a change of %s is named in the words of a settings file: %s, %s, %s',
    (setting, name, was, is) => {
      const changes = changedSettings(settings({}), settings({ [name]: is }))
      expect(changes).toEqual([{ setting, before: was, after: is }])
      expect(changedSettings(settings({}), settings(was === 'null' ? {} : { [name]: was }))).toEqual([])
    },
  )

  test('a change of the days of work has their names', () => {
    const days = (list: string) => settings({ PARLEY_REPORTING_WORKDAYS: list })
    expect(changedSettings(days('monday,sunday'), days('tuesday'))).toEqual([
      { setting: 'reporting.workdays', before: '["monday","sunday"]', after: '["tuesday"]' },
    ])
  })
})

test('a webhook makes declared feeds due, for UUIDs in lower case and other ids as they are', () => {
  const { lists, keys } = readsFor({
    kind: 'meeting.completed.beta',
    meetings: ['M1'],
    playbooks: ['D4C3F8D6-2FA0-4179-9D5C-70913C4D5E6F'],
    records: [
      { object: 'deal', id: 'C2A1E6B4-0D8E-4F57-9B3A-5E7F1A2B3C4D' },
      { object: 'deal', id: 'no-uuid-is-asked-for' },
    ],
    activities: true,
  })
  expect(
    keys.map(({ feed, scope, key }: { feed: string; scope?: string; key: string }) => [feed, scope, key]),
  ).toEqual([
    ['meetings.detail', undefined, 'M1'],
    ['playbook_results.read', undefined, 'M1'],
    ['playbooks.detail', undefined, 'd4c3f8d6-2fa0-4179-9d5c-70913c4d5e6f'],
    ['crm_records.list.changed', 'deal', 'c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d'],
  ])
  for (const name of [...lists, ...keys.map(({ feed }) => feed)]) {
    const [resource, feed = ''] = name.split('.')
    const known = RESOURCE_NAMES.find(candidate => candidate === resource)
    expect(known && Object.keys(resourceNamed(known).feeds)).toContain(feed)
  }
})

test('maintenance is due once in each night, also in nights of a clock change', () => {
  const hours: number[] = []
  let at = Date.parse('2026-03-27T12:00:00Z')
  for (let night = 0; night < 4; night += 1) {
    const next = nextOccurrence(MAINTENANCE, at)
    hours.push(Math.round((next - at) / 3_600_000))
    at = next
  }
  expect(hours.slice(1).every(passed => passed >= 23 && passed <= 25)).toBe(true)
})
