import { describe, expect, test } from 'vitest'
import { accessGone, unauthorized } from '../../src/api/access.ts'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import { RESOURCE_NAMES } from '../../src/catalog/resource.ts'
import { loadSettings } from '../../src/config/config.ts'
import { livenessAfter } from '../../src/daemon/liveness.ts'
import { readsFor } from '../../src/daemon/nudged.ts'
import { recoveryFrom } from '../../src/daemon/recovery.ts'
import { changedSettings } from '../../src/daemon/settings-changes.ts'
import { EXIT_STATUS, StopError } from '../../src/errors.ts'
import { CALENDAR, nextOccurrence } from '../../src/retention/calendar.ts'

const ACCESS = {
  baseUrl: 'https://api.example.com',
  workspaceId: 'acme',
  keySource: 'environment PARLEY_API_KEY',
}
const stop = (exitStatus: StopError['exitStatus'], code = 'x') => new StopError('why', { code, exitStatus })
const wait = (reason: string) => ({ kind: 'wait', ms: 60_000, reason })

test.each([
  [0, true],
  [299_999, true],
  [300_000, 'no commit or checkpoint of the database has ended for 5 minutes'],
  [3_600_000, 'no commit or checkpoint of the database has ended for 60 minutes'],
])('a daemon whose write has been under way for %i ms is alive: %s', (stuckMs, alive) => {
  expect(livenessAfter(stuckMs)).toBe(alive)
})

describe('after a session that could not go on', () => {
  test.each([
    [
      'the database of another workspace in the place of its own is waited for',
      stop(EXIT_STATUS.settings, 'other-workspace'),
      true,
      true,
      wait('why'),
    ],
    [
      'the database of another workspace at the very start ends it',
      stop(EXIT_STATUS.settings, 'other-workspace'),
      false,
      false,
      { kind: 'end' },
    ],
    ['a full disk is waited for', stop(EXIT_STATUS.databaseUnavailable), true, true, wait('why')],
    [
      'a full disk at the very start ends it',
      stop(EXIT_STATUS.databaseUnavailable),
      false,
      false,
      { kind: 'end' },
    ],
    [
      'another process that has taken the database is waited for',
      stop(EXIT_STATUS.unfinished),
      true,
      false,
      wait('why'),
    ],
    [
      'another process at the very start ends it',
      stop(EXIT_STATUS.unfinished),
      false,
      false,
      { kind: 'end' },
    ],
    [
      'a key that was taken a moment ago is read again, and the reason says where it is from and what to do',
      unauthorized(ACCESS, 'Invalid API key'),
      true,
      true,
      wait(
        `The API at ${ACCESS.baseUrl} refuses the key from ${ACCESS.keySource} (workspace ${ACCESS.workspaceId}): Invalid API key. Check api.key: it is wrong, expired or revoked, or belongs to another workspace.`,
      ),
    ],
    [
      'a key that was refused at the first request ends it',
      unauthorized(ACCESS, 'Invalid API key'),
      true,
      false,
      { kind: 'end' },
    ],
    ['a fault of the program ends it', new TypeError('x is not a function'), true, true, { kind: 'end' }],
  ])('%s', (_, error, hasStarted, wasAnswered, recovery) => {
    const before = { wasAnsweredBefore: false, timesLost: 0 }
    expect(recoveryFrom({ error, hasStarted, wasAnswered, ...before })).toEqual(recovery)
  })

  const lost = {
    error: stop(EXIT_STATUS.refused, 'access-gone'),
    hasStarted: true,
    wasAnswered: false,
    wasAnsweredBefore: true,
  }

  test('access that was lost is waited for from a minute up to an hour', () => {
    const waits = [1, 2, 3, 6, 7, 100].map(timesLost => recoveryFrom({ ...lost, timesLost }))
    const minutes = waits.map(recovery => (recovery.kind === 'wait' ? recovery.ms / 60_000 : recovery.kind))
    expect(minutes).toEqual([1, 2, 4, 32, 60, 60])
  })

  test('access that was lost is waited for with what a person can do about it', () => {
    expect(recoveryFrom({ ...lost, error: accessGone(ACCESS, false), timesLost: 1 })).toMatchObject({
      reason: expect.stringMatching(/key from .+\)\. Check api\.workspace_id and the key's permissions\./),
    })
  })

  test('access that was never granted ends it', () => {
    expect(recoveryFrom({ ...lost, wasAnsweredBefore: false, timesLost: 1 })).toEqual({ kind: 'end' })
  })
})

describe('settings that were read again', () => {
  const settings = (env: Record<string, string>) =>
    loadSettings({ flags: {}, env, cwd: '/nowhere', requireApi: false, resourceNames: RESOURCE_NAMES })
      .settings

  test('that are the same have not changed', () => {
    expect(
      changedSettings(settings({ PARLEY_DATABASE: 'a.db' }), settings({ PARLEY_DATABASE: 'a.db' })),
    ).toEqual([])
  })

  test('are named one by one, whatever their kind', () => {
    const before = settings({
      PARLEY_SYNC_RESOURCES: 'members,teams',
      PARLEY_API_MAX_REQUESTS_PER_SECOND: '3',
    })
    const after = settings({
      PARLEY_SYNC_RESOURCES: 'members',
      PARLEY_HTTP_LISTEN: 'off',
      PARLEY_RETENTION_WITHDRAWN_DAYS: 'never',
    })
    expect(changedSettings(before, after).sort()).toEqual([
      'api.max_requests_per_second',
      'http.listen',
      'retention.withdrawn_days',
      'sync.resources',
    ])
  })
})

test('what a webhook has read are feeds that the catalogue declares', () => {
  const { lists, keys } = readsFor({
    kind: 'meeting.completed.beta',
    meetings: ['m1'],
    playbooks: ['p1'],
    records: [
      { object: 'deal', id: 'C2A1E6B4-0D8E-4F57-9B3A-5E7F1A2B3C4D' },
      { object: 'deal', id: 'no-uuid-is-asked-for' },
    ],
    activities: true,
  })
  expect(
    keys.map(({ feed, scope, key }: { feed: string; scope?: string; key: string }) => [feed, scope, key]),
  ).toEqual([
    ['meetings.detail', undefined, 'm1'],
    ['playbook_results.read', undefined, 'm1'],
    ['playbooks.detail', undefined, 'p1'],
    ['crm_records.list.changed', 'deal', 'c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d'],
  ])
  for (const name of [...lists, ...keys.map(({ feed }) => feed)]) {
    const [resource, feed = ''] = name.split('.')
    const known = RESOURCE_NAMES.find(candidate => candidate === resource)
    expect(known && Object.keys(resourceNamed(known).feeds)).toContain(feed)
  }
})

test('maintenance is done once in a night, on the day that the clocks are set as well', () => {
  const hours: number[] = []
  let at = Date.parse('2026-03-27T12:00:00Z')
  for (let night = 0; night < 4; night += 1) {
    const next = nextOccurrence(CALENDAR.maintenance, at)
    hours.push(Math.round((next - at) / 3_600_000))
    at = next
  }
  expect(hours.slice(1).every(passed => passed >= 23 && passed <= 25)).toBe(true)
})
