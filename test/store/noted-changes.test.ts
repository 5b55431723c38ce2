import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { DAY_MS } from '../../src/base/clock.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { type Compared, comparisonWith, partsToCompare } from '../../src/publish/comparison.ts'
import {
  type ChangePoint,
  changesSince,
  currentPoint,
  isInHistory,
  keyNote,
  type Opening,
  withOpening,
} from '../../src/store/changes/changes-since.ts'
import { readDatabase } from '../../src/store/file/open.ts'
import { NOTHING_CARRIED, updateNotes } from '../../src/store/restore/swap.ts'
import { API_GATE } from '../../src/store/sync/gates.ts'
import { openAt, type TemporaryStore, temporaryStore, withShortcuts } from './temporary-store.ts'

const NOW = '2026-03-04T05:06:07.123Z'

const setMember = (store: TemporaryStore, id: string) => store.put('members', [{ id, name: 'N' }])

/** The present point, which a reader finds. */
function pointIn(path: string): ChangePoint {
  const point = readDatabase({ path }, currentPoint)
  if (!point) throw new Error('no writer has opened the warehouse')
  return point
}

const notedSince = (path: string, point: ChangePoint) => readDatabase({ path }, db => changesSince(db, point))

/** Opens a copy of the warehouse, as it is now, as its writer. */
function openCopy(store: TemporaryStore): TemporaryStore {
  const path = join(store.folder, 'copy.db')
  store.db.prepare('VACUUM INTO ?').run(path)
  const copy = openAt(path)
  onTestFinished(() => copy.close())
  return withShortcuts(copy, store.folder, path)
}

describe('the notes of a transaction', () => {
  test('a reader sees the notes with the rows, and neither when the transaction fails', async () => {
    const store = temporaryStore()
    const start = pointIn(store.path)
    const failed = store.transaction(() => {
      store.db.exec(
        `INSERT INTO members (id, _first_seen_at, _synced_at) VALUES ('gone', '${NOW}', '${NOW}')`,
      )
      store.db.exec('DROP TABLE missing')
    })
    await expect(failed).rejects.toThrow('missing')
    expect(store.column('SELECT id FROM members')).toEqual([])
    setMember(store, 'm')
    expect(notedSince(store.path, start)?.get('members')).toContain('["m"]')
    expect(notedSince(store.path, pointIn(store.path))).toEqual(new Map())
  })

  test('rows that are stored again after a failed commit, with the same internal ids, are noted', () => {
    const store = temporaryStore()
    const start = pointIn(store.path)
    const put = () => store.put('activities', [{ id: 'a', occurred_at: NOW }])
    store.db.exec('BEGIN IMMEDIATE')
    put()
    store.db.exec('ROLLBACK')
    put()
    expect(notedSince(store.path, start)?.get('activities')).toEqual(['2026-03'])
  })

  test('a new row that gets the internal id of a deleted one is noted', () => {
    const store = temporaryStore()
    store.put('activities', [{ id: 'a', occurred_at: '2025-01-02T00:00:00.000Z' }])
    const start = pointIn(store.path)
    store.exec(
      `DELETE FROM activities; INSERT INTO activities (id, occurred_at, _first_seen_at, _synced_at) VALUES ('b', '${NOW}', '${NOW}', '${NOW}')`,
    )
    expect(notedSince(store.path, start)?.get('activities')).toEqual(['', '2025-01', '2026-03'])
  })

  test('a row that moves to another month is noted in both, with the rows that it owns', () => {
    const store = temporaryStore()
    const put = (receivedAt: string) =>
      store.put('message_copies', [
        {
          id: 'c',
          header_message_id: '<1>',
          received_at: receivedAt,
          participants: [{ handle: 'x', role: 'TO' }],
        },
      ])
    put('2026-01-02T00:00:00.000Z')
    const start = pointIn(store.path)
    put('2026-02-03T00:00:00.000Z')
    const noted = notedSince(store.path, start)
    for (const table of ['message_copies', 'message_copy_participants', 'messages', 'message_participants'])
      expect([table, noted?.get(table)]).toEqual([table, ['2026-01', '2026-02']])
  })

  test('a new owner notes its month for rows that were stored before it, and its deletion rows without a time', () => {
    const store = temporaryStore()
    const since = (sql: string) => {
      const start = pointIn(store.path)
      store.exec(sql)
      return notedSince(store.path, start)?.get('transcript_entries')
    }
    const columns = `(id, start_time, _first_seen_at, _synced_at) VALUES ('m', '${NOW}', '${NOW}', '${NOW}')`
    expect(since("INSERT INTO transcript_entries (meeting_id, position) VALUES ('m', 0)")).toEqual([''])
    expect(since(`INSERT INTO meetings ${columns}`)).toEqual(['2026-03'])
    expect(since("UPDATE meetings SET title = 'changed'")).toBeUndefined()
    expect(since('DELETE FROM meetings')).toEqual(['', '2026-03'])
  })

  test('columns that are not published are not noted', () => {
    const store = temporaryStore()
    store.put('message_copies', [{ id: 'c', header_message_id: '<1>', received_at: NOW }])
    const start = pointIn(store.path)
    store.exec('UPDATE message_copies SET _text_due = NULL')
    expect(notedSince(store.path, start)).toEqual(new Map())
  })

  test('however often rows change, a part has one note', () => {
    const store = temporaryStore()
    for (let time = 0; time < 20; time += 1) store.put('members', [{ id: 'member', name: `${time}` }])
    expect(store.column("SELECT part FROM sync_changed_parts WHERE table_name = 'members'")).toEqual([
      '["me"]',
    ])
  })
})

test.each([
  [['m00015'], '["m0"]'],
  [['語彙集'], '["語彙"]'],
  [['😀😀😀'], '["😀😀"]'],
  [[''], '[""]'],
  [[5000], '[4096]'],
  [[-1], '[-4096]'],
  [['deal', 'c2a1e6b4'], '["deal","c2"]'],
  [[null], '*'],
  [['deal', null], '*'],
])('the key %j is noted as %s', (key, note) => {
  expect(keyNote(key)).toBe(note)
})

describe('the history of a warehouse', () => {
  test('a copy does not know the points after it, however much it has changed since', () => {
    const store = temporaryStore()
    setMember(store, 'a')
    const shared = pointIn(store.path)
    const copy = openCopy(store)
    setMember(store, 'b')
    const later = pointIn(store.path)
    for (const id of ['c', 'd', 'e']) setMember(copy, id)
    expect(notedSince(copy.path, shared)?.get('members')).toEqual(['["c"]', '["d"]', '["e"]'])
    expect(notedSince(copy.path, later)).toBeUndefined()
    expect(notedSince(store.path, later)).toEqual(new Map())
  })

  const restoredFrom = (path: string) =>
    updateNotes(path, {
      carried: NOTHING_CARRIED,
      writer: { pid: process.pid, command: 'restore', since: NOW },
      now: NOW,
    })

  test('a restored copy has nothing closed, also one of a version that noted it in sync_meta', () => {
    const store = temporaryStore()
    store.gates.set([
      { what: API_GATE, kind: 'silent', since: NOW, until: NOW, reason: 'x', resources: [], tries: 0 },
    ])
    store.state.setMeta('unreachable', '{}')
    store.close()
    restoredFrom(store.path)
    const again = openAt(store.path)
    expect([again.gates.closed(), again.state.meta('unreachable')]).toEqual([[], undefined])
    again.close()
  })

  test('a restored copy knows no point, since the restore changes rows itself', () => {
    const store = temporaryStore()
    const point = pointIn(store.path)
    store.close()
    restoredFrom(store.path)
    expect(notedSince(store.path, point)).toBeUndefined()
    expect(readDatabase({ path: store.path }, currentPoint)).toBeUndefined()
  })

  const openings: Opening[] = [
    ['first', 0],
    ['second', 5],
    ['third', 9],
  ]
  test.each<[opening: string, change: number, isKnown: boolean]>([
    ['first', 0, true],
    ['first', 5, true],
    ['first', 6, false],
    ['second', 9, true],
    ['second', 10, false],
    ['third', 12, true],
    ['third', 13, false],
    ['other', 1, false],
  ])('after change %2$i of the opening "%1$s": known is %3$s', (opening, change, isKnown) => {
    expect(isInHistory({ opening, change }, openings, 12)).toBe(isKnown)
  })

  test('only the newest openings are kept', () => {
    let kept: readonly Opening[] = []
    for (let number = 0; number < 300; number += 1) kept = withOpening(kept, [`${number}`, number])
    expect([kept.length, kept.at(-1)]).toEqual([100, ['299', 299]])
  })
})

describe('where a publication looks', () => {
  const VERSION = '1.2.3'
  const later = (ms: number) => new Date(Date.parse(NOW) + ms).toISOString()
  const look = { at: later(1000), version: VERSION, full: false }

  function compared(store: TemporaryStore): Compared {
    const found = readDatabase({ path: store.path }, db =>
      comparisonWith(db, { before: undefined, at: NOW, version: VERSION, full: false }),
    )
    if (!found.compared) throw new Error('nothing to keep')
    return found.compared
  }

  test('an unchanged warehouse has no part to look at, and keeps when everything was compared', () => {
    const store = temporaryStore()
    const before = compared(store)
    const found = readDatabase({ path: store.path }, db => comparisonWith(db, { ...look, before }))
    expect(found).toEqual({ changed: new Map(), compared: { ...before, fullAt: NOW } })
  })

  test.each<[reason: string, change: { before?: Partial<Compared> } & Partial<typeof look>]>([
    ['on request', { full: true }],
    ['a day later', { at: later(DAY_MS) }],
    ['when the clock was set back', { at: later(-1000) }],
    ['with another version of the program', { version: '1.2.4' }],
    ['after a migration', { before: { migration: 1 } }],
    ['of another warehouse', { before: { point: { opening: 'other', change: 0 } } }],
  ])('everything is compared %s', (_, { before, ...change }) => {
    const store = temporaryStore()
    const kept = { ...compared(store), ...before }
    const found = readDatabase({ path: store.path }, db =>
      comparisonWith(db, { ...look, ...change, before: kept }),
    )
    expect(found.changed).toBeUndefined()
    expect(found.compared?.fullAt).toBe(change.at ?? look.at)
  })

  test('a view is compared again only when a table that it reads may have changed', async () => {
    const store = temporaryStore()
    const config = loadSettings({ flags: {}, env: {}, cwd: '/', requireApi: false }).settings
    const write = async (role: string) => {
      const participants = ['FROM', role].map((as, index) => ({ role: as, handle: `${index}@own.example` }))
      store.put('message_copies', [{ id: 'a', header_message_id: '<1>', received_at: NOW, participants }])
      await store.reports.update(config)
    }
    await write('TO')
    const { point } = compared(store)
    const looked = (): unknown[] =>
      readDatabase({ path: store.path }, db =>
        ['conversation_people', 'record_conversations', 'contacts', 'periods'].map(name =>
          partsToCompare(db, { name, isView: true }, changesSince(db, point) ?? new Map()),
        ),
      )
    store.put('teams', [{ id: 't', name: 'Sales' }])
    // The time up to which the warehouse is complete is no row of a table whose changes are noted.
    expect(looked()).toEqual([[], [], [], 'all'])
    await write('CC')
    expect(looked()).toEqual(['all', 'all', [], 'all'])
  })
})
