import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { resourceNamed, TABLES } from '../../src/catalog/catalog.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { createPurgeQueue } from '../../src/store/deletions/purge-queue.ts'
import { openDatabase } from '../../src/store/file/open.ts'
import { rebuildFile } from '../../src/store/maintenance/maintenance.ts'
import { newFolder, openAt, type TemporaryStore, temporaryStore, withShortcuts } from './temporary-store.ts'
import {
  createMarker,
  isContentAt,
  markedWorld,
  markersIn,
  putTranscript,
  storedMarkers,
  type World,
} from './unique-texts.ts'

const WRITTEN = '2026-01-01T00:00:00.000Z'
const DELETED_AT = '2026-01-10T00:00:00.000Z'
const LATER = '2026-02-10T00:00:00.000Z'

/** Every place where text or JSON of people can be stored and is not purged. */
function contentPlaces(): string[] {
  return [...TABLES.values()].flatMap(({ table }) =>
    Object.entries(table.columns)
      .filter(([column, { kind, source }]) => {
        const isText = kind === 'text' || kind === 'json'
        return isText && source.from !== 'parent' && isContentAt(`${table.name}.${column}`)
      })
      .map(([column]) => `${table.name}.${column}`),
  )
}

function deleteAll(store: TemporaryStore, rows: readonly { table: string; key: string[] }[]): void {
  store.db.transaction(() => {
    for (const { table, key } of rows) store.tombstone(table, [key], DELETED_AT)
  })()
}

function purge(store: TemporaryStore, before = LATER, limit = 1000) {
  return store.db.transaction(() => store.purger.purge({ before, limit, now: before }))()
}

/** Markers that are anywhere in the files of a database. */
function markersInFiles(path: string): Set<string> {
  const files = ['', '-wal', '-shm'].map(suffix => `${path}${suffix}`).filter(file => existsSync(file))
  const bytes = Buffer.concat(files.map(file => readFileSync(file)))
  return markersIn(bytes.toString('latin1'))
}

describe('the content of deleted rows', () => {
  test('purged content is in no file of the database, while keys and states stay', async () => {
    const { path, store, worlds } = openWorlds(1)
    const before = storedMarkers(store)
    const filled = new Set(before.map(({ place }) => place))
    // Otherwise the test would not cover the columns that are missing here.
    expect(contentPlaces().filter(place => !filled.has(place))).toEqual([])
    deleteAll(store, worlds[0]?.rows ?? [])
    const kept = new Set(before.filter(({ place }) => !isContentAt(place)).map(({ marker }) => marker))
    const gone = new Set(before.map(({ marker }) => marker).filter(marker => !kept.has(marker)))
    expect(purge(store).more).toBe(false)
    expect(await store.purger.clean({ rebuild: false })).toBe(false)
    expect(store.purger.remains().inLog).toBe(false)
    store.close()
    const left = markersInFiles(path)
    expect(gone.size).toBeGreaterThan(80)
    expect([...gone].filter(marker => left.has(marker))).toEqual([])
    expect(left).toContain(`${worlds[0]?.meeting.split('-').slice(0, 2).join('-')}-`)
  })

  test('a rebuild of the file removes copies that moving rows has made', async () => {
    const { path, store, worlds } = openWorlds(60)
    const purged = worlds.filter((_, index) => index % 3 === 0)
    const before = storedMarkers(store)
    for (const { rows } of purged) deleteAll(store, rows)
    purge(store)
    const after = new Set(storedMarkers(store).map(({ marker }) => marker))
    const gone = before.map(({ marker }) => marker).filter(marker => !after.has(marker))
    expect(await store.purger.clean({ rebuild: true, signal: new AbortController().signal })).toBe(true)
    expect(store.purger.remains().inLog).toBe(false)
    store.close()
    const left = markersInFiles(path)
    expect(gone.length).toBeGreaterThan(1000)
    expect(gone.filter(marker => left.has(marker))).toEqual([])
  })

  test('the file is not rebuilt while another program writes', async () => {
    const { path, store } = openWorlds(1)
    const other = openSqlite(path)
    onTestFinished(() => void other.close())
    other.exec('BEGIN IMMEDIATE')
    expect(await rebuildFile(store.db, new AbortController().signal)).toBe(false)
  })

  test('purged content is not in pages that were freed before its deletion', async () => {
    const { path, store } = openWorlds(0)
    const mark = createMarker()
    const meeting = (attendees: number) => ({
      meeting_id: 'm',
      title: mark('title'),
      attendees: Array.from({ length: attendees }, () => ({ attendee_user_name: mark('name') })),
    })
    for (const attendees of [200, 3, 100]) store.put('meetings', [meeting(attendees)])
    const last = new Set(storedMarkers(store).map(({ marker }) => marker))
    expect(last.size).toBe(101)
    await store.purger.clean({ rebuild: false })
    store.close()
    expect(markersInFiles(path)).toEqual(last)
  })

  test('purged content is not in the samples of an ANALYZE by hand', async () => {
    const { path, store } = openWorlds(0)
    const mark = createMarker()
    const attendees = Array.from({ length: 100 }, () => ({ attendee_user_email: mark('mail') }))
    store.put('meetings', [{ meeting_id: 'm', attendees }])
    store.db.exec('ANALYZE')
    expect(store.column('SELECT count(*) > 0 FROM sqlite_stat4')).toEqual([1])
    store.tombstone('meetings', [['m']], DELETED_AT)
    purge(store)
    await store.purger.clean({ rebuild: false })
    store.close()
    expect(markersInFiles(path)).toEqual(new Set())
  })

  test.each([
    ['an older state', false],
    ['the newest state', true],
  ])(
    'purged content stays in the WAL as long as a reader of %s holds it, and no one waits for the reader',
    async (_, readsNewest) => {
      const { path, store, worlds } = openWorlds(1)
      const reader = openDatabase({ path, readonly: true })
      const hold = () => reader.exec('BEGIN; SELECT count(*) FROM members')
      if (!readsNewest) hold()
      deleteAll(store, worlds[0]?.rows ?? [])
      purge(store)
      if (readsNewest) hold()
      // Longer than any test may take.
      store.db.pragma('busy_timeout = 1500000')
      await store.purger.clean({ rebuild: false })
      expect(store.db.pragma('busy_timeout', { simple: true })).toBe(1_500_000)
      expect(store.purger.remains().inLog).toBe(true)
      expect(statSync(`${path}-wal`).size).toBeGreaterThan(0)
      reader.close()
      await store.purger.clean({ rebuild: false })
      expect(store.purger.remains().inLog).toBe(false)
      store.close()
    },
  )
})

test('the purge records in its transaction which files of SQLite still hold content, until each is clean', async () => {
  const { path, store, worlds } = openWorlds(1)
  const remains = () => {
    const { inLog, inFile } = store.purger.remains()
    return { inLog, inFile }
  }
  expect(remains()).toEqual({ inLog: false, inFile: false })
  deleteAll(store, worlds[0]?.rows ?? [])
  expect(() =>
    store.db.transaction(() => {
      purge(store)
      throw new Error('undone')
    })(),
  ).toThrow('undone')
  expect(remains()).toEqual({ inLog: false, inFile: false })
  purge(store)
  expect(remains()).toEqual({ inLog: true, inFile: true })
  const reader = openDatabase({ path, readonly: true })
  reader.exec('BEGIN; SELECT count(*) FROM members')
  store.put('members', [{ id: 'later' }])
  await store.purger.clean({ rebuild: true, signal: new AbortController().signal })
  expect(remains()).toEqual({ inLog: true, inFile: false })
  reader.close()
  await store.purger.clean({ rebuild: false })
  expect(remains()).toEqual({ inLog: false, inFile: false })
  store.close()
})

describe('the purge of content', () => {
  test('a row is purged once, in bounded batches, and only after its deletion', () => {
    const { store, worlds } = openHere(1)
    deleteAll(store, worlds[0]?.rows ?? [])
    const noted = store.column('SELECT count(*) FROM sync_purge_queue')[0] as number
    expect(noted).toBeGreaterThan(10)
    expect(purge(store, DELETED_AT)).toEqual({ purged: 0, more: false })
    expect(purge(store, LATER, 1)).toEqual({ purged: 1, more: true })
    expect(purge(store)).toEqual({ purged: noted - 1, more: false })
    const changes = store.column('SELECT total_changes()')
    expect(purge(store)).toEqual({ purged: 0, more: false })
    expect(store.column('SELECT total_changes()')).toEqual(changes)
  })

  test('a live row is not purged, whatever was noted about it', () => {
    const store = temporaryStore()
    store.put('members', [{ id: 'a', name: 'x' }], { now: WRITTEN })
    createPurgeQueue(store.prepare).note('members', ['a'], DELETED_AT)
    expect(purge(store)).toEqual({ purged: 0, more: false })
    expect(store.column('SELECT name FROM members')).toEqual(['x'])
  })

  test('a batch counts the rows below a row, so that meetings with long transcripts make small batches', () => {
    const store = temporaryStore()
    const meetings = ['a', 'b', 'c', 'd']
    store.put(
      'meetings',
      meetings.map(meeting_id => ({ meeting_id })),
    )
    const entries = Array.from({ length: 30 }, () => ({ text: 'x' }))
    for (const meeting of meetings) putTranscript(store, meeting, entries)
    store.tombstone(
      'meetings',
      meetings.map(meeting => [meeting]),
      DELETED_AT,
    )
    expect(purge(store, LATER, 40)).toEqual({ purged: 2, more: true })
    expect(store.column('SELECT count(*) FROM transcript_entries')).toEqual([60])
    expect(purge(store, LATER, 40)).toEqual({ purged: 2, more: false })
    expect(store.column('SELECT count(*) FROM transcript_entries')).toEqual([0])
  })

  test('purging one copy leaves the e-mail the content of its other copy, and purging both leaves none', () => {
    const store = temporaryStore()
    const copy = (id: string) => ({ id, header_message_id: 'h', subject: `of ${id}`, received_at: WRITTEN })
    store.put('message_copies', [copy('a'), copy('b')])
    store.merge.applyText('a', { state: 'present', text: 'text of a' }, WRITTEN)
    store.tombstone('message_copies', [['a']], DELETED_AT)
    expect(store.all('SELECT table_name, key FROM sync_purge_queue')).toEqual([
      { table_name: 'message_copies', key: 'a' },
    ])
    purge(store)
    expect(store.all('SELECT id, subject FROM message_copies ORDER BY id')).toEqual([
      { id: 'a', subject: null },
      { id: 'b', subject: 'of b' },
    ])
    expect(store.all('SELECT subject, text FROM messages')).toEqual([{ subject: 'of b', text: null }])
    store.tombstone('message_copies', [['b']], DELETED_AT)
    expect(store.column('SELECT table_name FROM sync_purge_queue ORDER BY 1')).toEqual([
      'message_copies',
      'messages',
    ])
    purge(store)
    expect(store.all('SELECT header_message_id, subject, text_state FROM messages')).toEqual([
      { header_message_id: 'h', subject: null, text_state: 'pending' },
    ])
  })

  test('purging keeps the fact that a record changed, and removes the values', () => {
    const store = temporaryStore()
    const put = (fields: unknown, now: string) =>
      store.put('crm_records', [{ id: 'r', object: 'deal', fields }], { requested: 'deal', now })
    put({ stage: 'a' }, WRITTEN)
    put({ stage: 'b' }, '2026-01-02T00:00:00.000Z')
    store.tombstone('crm_records', [['deal', 'r']], DELETED_AT)
    expect(store.all('SELECT table_name, scope, key, withdrawn_at FROM sync_purge_queue')).toEqual([
      { table_name: 'crm_records', scope: 'deal', key: 'r', withdrawn_at: DELETED_AT },
    ])
    purge(store)
    const changes = 'SELECT field, old_value, new_value FROM crm_record_changes'
    expect(store.all(changes)).toEqual([{ field: 'stage', old_value: null, new_value: null }])
    put({ stage: 'b' }, LATER)
    // Its content before the purge is not known, so no change is detected.
    expect(store.all(changes)).toHaveLength(1)
    expect(store.column('SELECT fields FROM live_crm_records')).toEqual(['{"stage":"b"}'])
  })

  test('a purged withheld meeting is still marked as withheld', () => {
    const { store, worlds } = openHere(1)
    const meeting = worlds[0]?.meeting ?? ''
    withhold(store, meeting)
    purge(store)
    expect(store.all('SELECT access, transcript_state, title FROM meetings')).toEqual([
      { access: 'withheld', transcript_state: 'withheld', title: null },
    ])
    expect(store.column('SELECT count(*) FROM transcript_entries')).toEqual([0])
    expect(store.column('SELECT count(*) FROM meeting_attendees')).toEqual([0])
    expect(store.column('SELECT record_id IS NOT NULL FROM meeting_crm_records')).toEqual([1])
  })
})

describe('a deleted row that comes back', () => {
  test('a row that comes back in time is not purged', () => {
    const { store, worlds } = openHere(1)
    const before = contents(store)
    deleteAll(store, worlds[0]?.rows ?? [])
    worlds[0]?.write(LATER)
    expect(store.column('SELECT table_name FROM sync_purge_queue')).toEqual([])
    expect(purge(store, '2027-01-01T00:00:00.000Z')).toEqual({ purged: 0, more: false })
    expect(contents(store)).toEqual(before)
  })

  test('a purged row that comes back has all its content when it is written again', () => {
    const { store, worlds } = openHere(1)
    const before = contents(store)
    deleteAll(store, worlds[0]?.rows ?? [])
    purge(store)
    expect(contents(store)).not.toEqual(before)
    worlds[0]?.write(LATER)
    worlds[0]?.reject(LATER)
    expect(contents(store)).toEqual(before)
    expect(store.column('SELECT table_name FROM sync_purge_queue')).toEqual([])
  })

  test('a row that comes back is read in full: postponed reads are due, and purged parts are pending', () => {
    const { store, worlds } = openHere(1)
    const { copy = '', otherCopy = '', meeting = '', rows = [] } = worlds[0] ?? {}
    store.tasks.add({ feed: 'message_bodies.read', key: copy, dueAt: '2027-01-01T00:00:00.000Z' })
    store.tasks.add({ feed: 'transcripts.read', key: meeting, dueAt: '2027-01-01T00:00:00.000Z' })
    deleteAll(store, rows)
    purge(store)
    expect(store.column('SELECT key FROM sync_tasks')).toEqual([])
    expect(pending(store)).toEqual({ bodies: [], transcripts: [] })
    worlds[0]?.writeRows(LATER)
    expect(pending(store)).toEqual({ bodies: [copy, otherCopy], transcripts: [meeting] })
  })

  test('another copy of the same e-mail makes the e-mail live again', () => {
    const store = temporaryStore()
    const copy = (id: string) => ({ id, header_message_id: 'h', subject: 's', received_at: WRITTEN })
    store.put('message_copies', [copy('a')])
    store.tombstone('message_copies', [['a']], DELETED_AT)
    store.put('message_copies', [copy('b')])
    expect(store.all('SELECT table_name, key FROM sync_purge_queue')).toEqual([
      { table_name: 'message_copies', key: 'a' },
    ])
  })

  test('a row that is deleted again is purged again', () => {
    const store = temporaryStore()
    const member = { id: 'a', name: 'x' }
    store.put('members', [member], { now: WRITTEN })
    store.tombstone('members', [['a']], DELETED_AT)
    purge(store)
    store.put('members', [member], { now: LATER })
    store.tombstone('members', [['a']], LATER)
    expect(purge(store)).toEqual({ purged: 0, more: false })
    expect(purge(store, '2026-03-10T00:00:00.000Z')).toEqual({ purged: 1, more: false })
    expect(store.column('SELECT name FROM members')).toEqual([null])
  })
})

describe('a message that moves to another e-mail', () => {
  test('the e-mail that the message has left is purged', () => {
    const store = temporaryStore()
    const copy = (header: string) => ({
      id: 'a',
      header_message_id: header,
      subject: 's',
      received_at: WRITTEN,
    })
    store.put('message_copies', [copy('h')])
    store.put('message_copies', [copy('other')], { now: DELETED_AT })
    expect(store.all('SELECT table_name, key FROM sync_purge_queue')).toEqual([
      { table_name: 'messages', key: 'h' },
    ])
    purge(store)
    expect(store.column('SELECT subject FROM messages ORDER BY header_message_id')).toEqual([null, 's'])
  })
})

describe('an answer that arrives late', () => {
  const entry = { speaker_name: 'x', text: 'late' }
  const result = { id: 'late', playbook_name: 'late' }
  const tombstone = (store: TemporaryStore, meeting: string) =>
    store.tombstone('meetings', [[meeting]], DELETED_AT)

  test.each([
    ['tombstoned', tombstone],
    ['withheld', withhold],
  ])('a late answer brings no transcript and no results to a meeting that is %s', (_state, change) => {
    const { store, worlds } = openHere(1)
    const meeting = worlds[0]?.meeting ?? ''
    change(store, meeting)
    purge(store)
    expect(putTranscript(store, meeting, [entry])).toBe(false)
    expect(store.put('playbook_results', [result], { requested: meeting })).toEqual([])
    expect(store.column('SELECT count(*) FROM transcript_entries')).toEqual([0])
    expect(store.column("SELECT count(*) FROM playbook_results WHERE id = 'late'")).toEqual([0])
  })

  test('a late answer brings no text to an e-mail whose copies are all deleted', () => {
    const { store, worlds } = openHere(1)
    const { copy = '', otherCopy = '' } = worlds[0] ?? {}
    store.tombstone('message_copies', [[copy], [otherCopy]], DELETED_AT)
    purge(store)
    store.merge.applyText(otherCopy, { state: 'present', text: 'late' }, LATER)
    store.merge.applyText(copy, { state: 'present', text: 'late' }, LATER)
    expect(store.column('SELECT text FROM messages')).toEqual([null])
    expect(store.column('SELECT text FROM message_copies')).toEqual([null, null])
    expect(store.column('SELECT _deleted_at FROM messages')).toEqual([DELETED_AT])
  })
})

/** Worlds in a store that the test closes itself. */
function openWorlds(count: number) {
  const path = join(newFolder(), 'parley.db')
  const store = withShortcuts(openAt(path), path, path)
  return { path, store, worlds: fill(store, count) }
}

/** Worlds in a store that is closed when the test ends. */
function openHere(count: number) {
  const store = temporaryStore()
  return { store, worlds: fill(store, count) }
}

function fill(store: TemporaryStore, count: number): World[] {
  const mark = createMarker()
  const worlds = Array.from({ length: count }, () => markedWorld(store, mark))
  for (const world of worlds) {
    world.write(WRITTEN)
    world.reject(WRITTEN)
  }
  return worlds
}

/** The rows of a meeting after a 403. */
function withhold(store: TemporaryStore, meeting: string): void {
  store
    .prepare("UPDATE meetings SET access = 'withheld', transcript_state = 'withheld' WHERE id = ?")
    .run(meeting)
  createPurgeQueue(store.prepare).note('meetings', [meeting], DELETED_AT)
}

/** Every stored text of users, by its place. */
function contents(store: TemporaryStore): string[] {
  return storedMarkers(store)
    .filter(({ place }) => !place.startsWith('crm_record_changes.'))
    .map(({ place, marker }) => `${place} ${marker}`)
    .sort()
}

function pending(store: TemporaryStore): { bodies: unknown[]; transcripts: unknown[] } {
  const keys = (name: string) => {
    const feed = resourceNamed(name === 'bodies' ? 'message_bodies' : 'transcripts').feeds['read']
    if (feed?.mode !== 'item' || !feed.pending) throw new Error('has no first reads')
    return store.column(`SELECT ${feed.pending.key} FROM ${feed.pending.table} WHERE ${feed.pending.where}`)
  }
  return { bodies: keys('bodies'), transcripts: keys('transcripts') }
}
