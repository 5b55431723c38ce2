import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { backfilled } from '../cli/workspace.ts'
import { until } from '../support/until.ts'
import { column, startDaemon } from './cli-daemon.ts'

const WORDS = 'Zxqvkjwp and sons'
const DAY = 86_400_000
const daysAgo = (days: number) => new Date(Date.now() - days * DAY).toISOString()

const INSERT_DELETED =
  'INSERT INTO teams (id, name, _first_seen_at, _synced_at, _deleted_at) VALUES (?, ?, @at, @at, @at)'

/** Leaves a row whose purge is due, and maintenance that was missed for a week. */
function deleteLongAgo(db: Sqlite): void {
  db.prepare(INSERT_DELETED).run('gone', WORDS, { at: daysAgo(40) })
  db.prepare("INSERT INTO sync_purge_queue (table_name, key, withdrawn_at) VALUES ('teams', 'gone', ?)").run(
    daysAgo(40),
  )
  db.prepare("UPDATE sync_meta SET value = ? WHERE key = 'maintained_at'").run(daysAgo(7))
}

test('a snapshot that is due at the start of the daemon does not contain what the missed maintenance purges', async context => {
  const place = await backfilled(context, { now: 'real' })
  const db = openSqlite(place.file)
  deleteLongAgo(db)
  db.close()
  const daemon = startDaemon(context, place, { PARLEY_SNAPSHOT_EVERY: 'daily' })
  const { path } = await daemon.says(({ msg }) => msg === 'A snapshot was created')
  expect(readFileSync(String(path)).includes(WORDS)).toBe(false)
  daemon.signal('SIGTERM')
  expect(await daemon.ended).toMatchObject({ status: 0 })
})

/** A trigger of another program, which keeps each state that the daemon stores. */
const KEEP_STATES = `CREATE TABLE seen_states (state TEXT);
  CREATE TRIGGER keep_states AFTER UPDATE ON sync_meta WHEN NEW.key = 'daemon_state'
  BEGIN INSERT INTO seen_states VALUES (NEW.value); END;`

test('the daemon catches up on missed maintenance, and shows that it waits while it rebuilds a large database before its next session', async context => {
  const place = await backfilled(context, { now: 'real' })
  const db = openSqlite(place.file)
  const insert = db.prepare(INSERT_DELETED)
  db.transaction(() => {
    for (let at = 0; at < 40; at += 1) insert.run(`large${at}`, 'x'.repeat(1e6), { at: daysAgo(1) })
  })()
  deleteLongAgo(db)
  db.exec(KEEP_STATES)
  db.close()
  const daemon = startDaemon(context, place)
  await daemon.says(({ msg }) => msg === 'Maintenance finished')
  await daemon.says(({ msg }) => msg.startsWith('Rebuilding the database file'))
  await daemon.says(({ msg }) => msg.startsWith('The database file was rebuilt'))
  const remains = () => column(place.file, "SELECT key FROM sync_meta WHERE key LIKE '%holds%'")
  expect(await until(remains, found => found.length === 0)).toEqual([])
  daemon.signal('SIGTERM')
  expect(await daemon.ended).toMatchObject({ status: 0 })
  const states = column(place.file, 'SELECT state FROM seen_states').map(state => JSON.parse(String(state)))
  const rebuilds = states.findIndex(({ state }) => state === 'waiting')
  expect(states[rebuilds].reason).toContain('rebuilds the database file')
  expect(states[rebuilds + 1]).toMatchObject({ state: 'running', reason: null })
  expect(column(place.file, 'PRAGMA integrity_check')).toEqual(['ok'])
  const files = ['', '-wal'].map(end => `${place.file}${end}`).filter(existsSync)
  expect(files.filter(file => readFileSync(file).includes(WORDS))).toEqual([])
})
