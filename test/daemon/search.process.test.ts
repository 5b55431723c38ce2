import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { maintainSearch } from '../../src/daemon/search-maintenance.ts'
import { dueMaintenance, maintain, removePurgedRemains } from '../../src/retention/maintain.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { createSearchIndices } from '../../src/store/search/indices.ts'
import { META } from '../../src/store/sync/meta.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { placeFor, workspace } from '../cli/workspace.ts'
import { advance, ask, build, putMeeting, putMessage, say } from '../store/searchable.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { until } from '../support/until.ts'
import { column, startDaemon } from './cli-daemon.ts'

test('the daemon builds the indices while it reads, and drops them when they are turned off', async context => {
  const place = placeFor(await workspace(context))
  const daemon = startDaemon(context, place)
  await daemon.says(({ msg }) => msg === 'The full-text indices are built')
  expect(column(place.file, 'SELECT count(*) FROM search_indices WHERE indexed_up_to > 0')).toEqual([3])
  daemon.signal('SIGTERM')
  expect(await daemon.ended).toMatchObject({ status: 0 })
  expect(column(place.file, 'PRAGMA integrity_check')).toEqual(['ok'])
  const without = startDaemon(context, place, { PARLEY_SEARCH_ENABLED: 'false' })
  await without.says(({ msg }) => msg === 'The full-text indices are dropped')
  expect(column(place.file, "SELECT name FROM sqlite_master WHERE name LIKE 'search%'")).toEqual([])
})

const NOW = Date.parse('2026-03-04T03:17:00.000Z')

async function maintenanceOf(store: TemporaryStore) {
  return {
    store,
    clock: virtualClock(NOW),
    log: await createLog({ level: 'silent' }),
    settings: {
      database: { path: store.path, mode: 0o600 },
      retention: { withdrawnDays: 30, runsDays: 90 },
      search: { enabled: true },
      snapshot: { every: undefined, folder: undefined, keep: 7 },
    },
    signal: new AbortController().signal,
  }
}

test('the maintenance that purges content removes it from the indices too', async () => {
  const store = temporaryStore()
  putMessage(store, { id: 'a', subject: 'Zxqvkjwp', text: 'Nothing' })
  putMeeting(store, { id: 'm', title: 'Zxqvkjwp', said: ['Zxqvkjwp', 'and more'] })
  putMessage(store, { id: 'b', subject: 'Kept', text: 'Nothing' })
  await build(store)
  const deletedAt = new Date(NOW - 40 * 86_400_000).toISOString()
  await store.transaction(() => {
    // Ages count from a maintenance under a correct clock.
    store.state.setMeta(META.maintainedAt, deletedAt)
    store.tombstone('message_copies', [['a']], deletedAt)
    store.tombstone('meetings', [['m']], deletedAt)
  })
  const terms = () =>
    ['search_messages', 'search_transcripts', 'search_meetings'].flatMap(index => {
      store.db.exec(`CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, ${index}, row)`)
      const all = store.column('SELECT term FROM temp.terms')
      store.db.exec('DROP TABLE temp.terms')
      return all
    })
  const blocks = () =>
    ['search_messages', 'search_transcripts', 'search_meetings']
      .flatMap(index => store.column(`SELECT block FROM ${index}_data`))
      .map(block => Buffer.from(block as Uint8Array).toString('latin1'))
      .join()
  expect(terms()).toContain('vkj')
  await maintain(await maintenanceOf(store))
  expect(terms()).not.toContain('vkj')
  expect(blocks()).not.toContain('vkj')
  expect(createSearchIndices(store).isDue(true)).toBe(false)
  expect(ask(store, 'kept').rows).toHaveLength(1)
})

test('the next maintenance removes edited texts from every byte of the files, once no reader needs the old state', async () => {
  const store = temporaryStore()
  const secret = '鬱鬲鱻龘麤爨齉饕'
  for (let at = 0; at < 200; at += 1)
    putMessage(store, { id: `m${at}`, subject: 'Budget', text: `Part ${at}` })
  putMessage(store, { id: 'a', subject: 'Kept', text: secret })
  putMeeting(store, { id: 'm', title: 'Talk', said: [secret, 'and more'] })
  await build(store)
  const deps = await maintenanceOf(store)
  const { clock } = deps
  await maintain(deps)
  // Pairs of characters: FTS5 stores the first character of a trigram only where it differs from the entry before.
  const traces = Array.from({ length: 6 }, (_, at) => Buffer.from(secret.slice(at + 1, at + 3)))
  const left = () => {
    const bytes = Buffer.concat([store.path, `${store.path}-wal`].map(file => readFileSync(file)))
    return traces.filter(trace => bytes.includes(trace))
  }
  putMessage(store, { id: 'a', subject: 'Kept', text: 'Plain' })
  say(store, 'm', ['Plain', 'and more'])
  await build(store)
  await store.purger.clean({ rebuild: true, signal: new AbortController().signal })
  expect(left()).toEqual(traces)
  const reader = openSqlite(store.path, { readonly: true })
  reader.exec('BEGIN; SELECT count(*) FROM messages')
  await clock.advance(86_400_000)
  await maintain(deps)
  expect(dueMaintenance(deps, clock.now())).toBe('cleaning')
  reader.close()
  await removePurgedRemains(deps)
  expect(left()).toEqual([])
  expect(dueMaintenance(deps, clock.now())).toBe('nothing')
  expect(ask(store, 'plain').rows).toHaveLength(2)
})

test('the maintenance continues to build indices that are turned on, and drops those that are turned off', async () => {
  const store = temporaryStore()
  putMeeting(store, { id: 'm', said: ['Good morning'] })
  advance(store)
  const log = await createLog({ level: 'silent' })
  const night = (enabled: boolean) =>
    maintain({
      store,
      clock: virtualClock(NOW),
      log,
      settings: {
        database: { path: store.path, mode: 0o600 },
        retention: { withdrawnDays: 'never', runsDays: 90 },
        search: { enabled },
        snapshot: { every: undefined, folder: undefined, keep: 7 },
      },
      signal: new AbortController().signal,
    })
  await night(true)
  expect(store.column("SELECT indexed_up_to FROM search_indices WHERE name = 'search_transcripts'")).toEqual([
    1,
  ])
  await night(false)
  expect(store.column("SELECT name FROM sqlite_master WHERE name LIKE 'search%'")).toEqual([])
})

test('the build of the indices continues after a time in which they cannot be written', async () => {
  const store = temporaryStore()
  const words = Array.from({ length: 5000 }, (_, at) => `${at * 7919}`)
  putMessage(store, { id: 'm', text: words.join(' ') })
  advance(store)
  const clock = virtualClock(NOW)
  let lines = ''
  const log = await createLog({ level: 'info', stream: { write: (text: string) => (lines += text) } })
  const ending = new AbortController()
  const pages = store.db.pragma('page_count', { simple: true })
  store.db.pragma(`max_page_count = ${pages}`)
  const settings = { search: { enabled: true }, sync: { resources: undefined } }
  const kept = maintainSearch({ store, clock, log, settings, signal: ending.signal })
  const said = () => lines
  expect(await until(said, seen => seen.includes('cannot be written'))).toContain(
    'the system let it write no more',
  )
  store.db.pragma('max_page_count = 1000000')
  await clock.advance(30_000)
  const isDue = () => createSearchIndices(store).isDue(true)
  expect(await until(isDue, due => !due)).toBe(false)
  ending.abort()
  await kept
})
