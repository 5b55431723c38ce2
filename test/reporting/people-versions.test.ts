import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openReader } from '../../src/store/database/connections.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { purgedContentTest } from '../../src/store/deletions/purged-content.ts'
import {
  newFolder,
  openAt,
  type TemporaryStore,
  temporaryStore,
  withShortcuts,
} from '../store/temporary-store.ts'
import { runs } from '../support/effort.ts'

const day = (number: number): string => new Date(Date.UTC(2026, 0, number)).toISOString()

const aiko = { id: 'mem_1', name: 'Aiko Tanaka', email: 'aiko@example.com', role: 'admin' }

const members = (store: TemporaryStore) =>
  store
    .all('SELECT * FROM member_versions ORDER BY member_id, from_at')
    .map(({ from_at, to_at, name, is_member }) => [from_at, to_at, name, is_member])

const teams = (store: TemporaryStore) =>
  store
    .all('SELECT * FROM team_versions ORDER BY team_id, member_id, from_at')
    .map(({ member_id, from_at, to_at, team }) => [member_id, from_at, to_at, team])

const remove = (store: TemporaryStore, table: string, key: string, now: string) =>
  store.atomically(() => store.tombstone(table, [[key]], now))

function purge(store: TemporaryStore, now: string) {
  return store.atomically(() => store.purger.purge({ before: now, limit: 100, now }))
}

describe('the versions of a member', () => {
  test('a name and an address begin a version, and a role does not', () => {
    const store = temporaryStore()
    store.put('members', [aiko], { now: day(1) })
    store.put('members', [{ ...aiko, role: 'member' }], { now: day(2) })
    store.put('members', [{ ...aiko, name: 'Aiko Sato' }], { now: day(3) })
    store.put('members', [{ ...aiko, name: 'Aiko Sato', email: 'sato@example.com' }], { now: day(4) })
    expect(members(store)).toEqual([
      [day(1), day(3), 'Aiko Tanaka', 1],
      [day(3), day(4), 'Aiko Sato', 1],
      [day(4), null, 'Aiko Sato', 1],
    ])
    expect(store.column('SELECT email FROM member_versions WHERE to_at IS NULL')).toEqual([
      'sato@example.com',
    ])
  })

  test('someone who leaves and comes back was away meanwhile', () => {
    const store = temporaryStore()
    store.put('members', [aiko], { now: day(1) })
    remove(store, 'members', 'mem_1', day(5))
    store.put('members', [aiko], { now: day(6) })
    expect(members(store)).toEqual([
      [day(1), day(5), 'Aiko Tanaka', 1],
      [day(5), day(6), 'Aiko Tanaka', 0],
      [day(6), null, 'Aiko Tanaka', 1],
    ])
  })

  test('a clock that was set back leaves neither a gap nor an overlap', () => {
    const store = temporaryStore()
    store.put('members', [aiko], { now: day(5) })
    store.put('members', [{ ...aiko, name: 'Early' }], { now: day(3) })
    store.put('members', [{ ...aiko, name: 'Late' }], { now: day(7) })
    expect(members(store)).toEqual([
      [day(5), day(7), 'Early', 1],
      [day(7), null, 'Late', 1],
    ])
  })

  test('a purge takes the names of someone who left and of a deleted team, and leaves ids and times', () => {
    const store = temporaryStore()
    store.put('members', [aiko, { ...aiko, id: 'mem_2', name: 'Rosa' }], { now: day(1) })
    store.put('members', [{ ...aiko, name: 'Aiko Sato' }], { now: day(2) })
    store.put('teams', [{ id: 't', name: 'East', member_ids: ['mem_1'] }], { now: day(2) })
    remove(store, 'members', 'mem_1', day(3))
    remove(store, 'teams', 't', day(3))
    purge(store, day(10))
    expect(members(store)).toEqual([
      [day(1), day(2), null, 1],
      [day(2), day(3), null, 1],
      [day(3), null, null, 0],
      [day(1), null, 'Rosa', 1],
    ])
    expect(store.column("SELECT email FROM member_versions WHERE member_id = 'mem_1'")).toEqual([
      null,
      null,
      null,
    ])
    expect(teams(store)).toEqual([['mem_1', day(2), day(3), null]])
  })

  test('a copy with the names of someone whose content was purged is recognised', () => {
    const store = temporaryStore()
    store.put('members', [aiko, { ...aiko, id: 'mem_2' }], { now: day(1) })
    remove(store, 'members', 'mem_1', day(3))
    purge(store, day(10))
    const test = purgedContentTest(store.db, 'member_versions', ['member_id', 'from_at', 'name'])
    expect(test?.(['mem_1', day(1), 'Aiko Tanaka'])).toBe(true)
    expect(test?.(['mem_1', day(1), null])).toBe(false)
    expect(test?.(['mem_2', day(1), 'Aiko Tanaka'])).toBe(false)
  })

  test('a file of an earlier version gets one version for each member, and an opening adds none', () => {
    const store = temporaryStore()
    store.put('members', [aiko, { ...aiko, id: 'mem_2', name: 'Rosa' }], { now: day(1) })
    store.put('teams', [{ id: 't', name: 'East', member_ids: ['mem_1'] }], { now: day(2) })
    remove(store, 'members', 'mem_2', day(3))
    store.exec('DELETE FROM member_versions; DELETE FROM team_versions')
    const { path } = store
    store.close()
    for (const _ of [1, 2]) {
      const again = openAt(path)
      const opened = withShortcuts(again, store.folder, path)
      expect(members(opened)).toEqual([
        [day(1), null, 'Aiko Tanaka', 1],
        [day(3), null, 'Rosa', 0],
      ])
      expect(teams(opened)).toEqual([['mem_1', day(2), null, 'East']])
      again.close()
    }
  })
})

describe('the versions of a team', () => {
  test('they say who was in it when, under which name', () => {
    const store = temporaryStore()
    const team = { id: 't', name: 'East', member_ids: ['mem_1', 'mem_2'] }
    store.put('teams', [team], { now: day(1) })
    store.put('teams', [{ ...team, member_ids: ['mem_2', 'mem_3'] }], { now: day(2) })
    store.put('teams', [{ ...team, name: 'Far East', member_ids: ['mem_2'] }], { now: day(3) })
    remove(store, 'teams', 't', day(4))
    expect(teams(store)).toEqual([
      ['mem_1', day(1), day(2), 'East'],
      ['mem_2', day(1), day(3), 'East'],
      ['mem_2', day(3), day(4), 'Far East'],
      ['mem_3', day(2), day(3), 'East'],
    ])
  })
})

// ------------------------------------------------------------------------------------------------ random histories

interface Step {
  kind: 'member' | 'team' | 'memberGone' | 'teamGone' | 'purge'
  id: number
  name: string
  inTeam: readonly number[]
  /** Days since the step before; some of them are of a clock that was set back. */
  passed: number
}

const aStep: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('member', 'member', 'team', 'team', 'memberGone', 'teamGone', 'purge'),
  id: fc.nat(2),
  name: fc.constantFrom('A', 'B', 'C'),
  inTeam: fc.uniqueArray(fc.nat(2)),
  passed: fc.integer({ min: -1, max: 3 }),
})

function take(store: TemporaryStore, { kind, id, name, inTeam }: Step, now: string): void {
  if (kind === 'member') store.put('members', [{ id: `m${id}`, name, email: `${name}@example.com` }], { now })
  if (kind === 'team')
    store.put('teams', [{ id: `t${id}`, name, member_ids: inTeam.map(each => `m${each}`) }], { now })
  if (kind === 'memberGone') remove(store, 'members', `m${id}`, now)
  if (kind === 'teamGone') remove(store, 'teams', `t${id}`, now)
  if (kind === 'purge') purge(store, now)
}

interface Version {
  key: string
  from_at: string
  to_at: string | null
}

/** Whether the versions of each key follow each other, each longer than nothing. A member's leave no gap either. */
function misplaced(versions: readonly Version[], mayHaveGaps: boolean): Version[] {
  return versions.filter((version, index) => {
    const next = versions[index + 1]
    const isLast = next?.key !== version.key
    if (version.to_at !== null && version.to_at <= version.from_at) return true
    if (isLast) return !mayHaveGaps && version.to_at !== null
    return (
      version.to_at === null || (mayHaveGaps ? version.to_at > next.from_at : version.to_at !== next.from_at)
    )
  })
}

/** What the present versions do not say as the rows do. */
function differences(db: Sqlite): unknown[] {
  const different = (one: string, other: string) => [
    ...db.prepare(`${one} EXCEPT ${other}`).all(),
    ...db.prepare(`${other} EXCEPT ${one}`).all(),
  ]
  return [
    ...different(
      'SELECT member_id, name, email, is_member FROM member_versions WHERE to_at IS NULL',
      'SELECT id, name, email, _deleted_at IS NULL FROM members',
    ),
    ...different(
      'SELECT team_id, member_id, team FROM team_versions WHERE to_at IS NULL',
      'SELECT m.team_id, m.member_id, t.name FROM team_members m JOIN teams t ON t.id = m.team_id WHERE t._deleted_at IS NULL',
    ),
  ]
}

/** What each member was called at the end of each step; null for someone who was no member. */
type Told = Map<string, Map<number, string | null>>

describe('any history of members and teams', () => {
  test('the versions tile the time, the last are the present, and the earlier are as they were', () => {
    fc.assert(
      fc.property(fc.array(aStep, { minLength: 1, maxLength: 25 }), steps => {
        const store = temporaryStore()
        const told: Told = new Map()
        let latest = 10
        let now = latest
        for (const step of steps) {
          now += step.passed
          take(store, step, day(now))
          expect(differences(store.db)).toEqual([])
          // A version never begins before the one that it follows.
          latest = Math.max(latest, now)
          for (const { id, name, is_member } of store.all(
            'SELECT id, name, _deleted_at IS NULL AS is_member FROM members',
          )) {
            const days = told.get(String(id)) ?? new Map()
            if (now === latest) days.set(now, is_member === 1 ? String(name) : null)
            told.set(String(id), days)
          }
        }
        const memberVersions = store.all(
          'SELECT member_id AS key, from_at, to_at, name, is_member FROM member_versions ORDER BY 1, 2',
        )
        const teamVersions = store.all(
          "SELECT team_id || ' ' || member_id AS key, from_at, to_at FROM team_versions ORDER BY 1, 2",
        )
        expect(misplaced(memberVersions as unknown as Version[], false)).toEqual([])
        expect(misplaced(teamVersions as unknown as Version[], true)).toEqual([])
        if (steps.some(({ kind, passed }) => kind === 'purge' || passed < 0)) return
        for (const [id, days] of told)
          for (const [number, name] of days) {
            const at = day(number)
            const version = memberVersions.find(
              ({ key, from_at, to_at }) =>
                key === id && String(from_at) <= at && (to_at === null || String(to_at) > at),
            )
            expect(version?.['is_member'] === 1 ? version['name'] : null, `${id} ${at}`).toBe(name)
          }
      }),
      { numRuns: runs(150) },
    )
  })

  test('a kill at any statement leaves members, teams and their versions of one state', () => {
    const store = temporaryStore()
    const folder = newFolder()
    let copies = 0
    store.db.function('kill', { varargs: true }, () => {
      copies += 1
      for (const suffix of ['', '-wal'])
        if (existsSync(store.path + suffix))
          copyFileSync(store.path + suffix, join(folder, `${copies}.db${suffix}`))
      return null
    })
    for (const table of ['members', 'teams', 'team_members', 'member_versions', 'team_versions'])
      for (const event of ['INSERT', 'UPDATE', 'DELETE'])
        store.db.exec(
          `CREATE TEMP TRIGGER kill_${table}_${event} AFTER ${event} ON main.${table} BEGIN SELECT kill(); END`,
        )
    const team = { id: 't', name: 'East', member_ids: ['mem_1', 'mem_2'] }
    store.put('members', [aiko, { ...aiko, id: 'mem_2' }], { now: day(1) })
    store.put('teams', [team], { now: day(1) })
    store.put('members', [{ ...aiko, name: 'Aiko Sato' }], { now: day(2) })
    store.put('teams', [{ ...team, name: 'West', member_ids: ['mem_2'] }], { now: day(2) })
    remove(store, 'members', 'mem_1', day(3))
    remove(store, 'teams', 't', day(3))
    purge(store, day(10))
    expect(copies).toBeGreaterThan(20)
    const states = new Set<string>()
    for (let copy = 1; copy <= copies; copy += 1) {
      const db = openReader(join(folder, `${copy}.db`), 1000)
      expect(differences(db)).toEqual([])
      states.add(JSON.stringify(db.prepare('SELECT * FROM member_versions').all()))
      db.close()
    }
    expect(states.size).toBeGreaterThan(2)
  })
})
