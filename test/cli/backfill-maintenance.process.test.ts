import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { shiftedClock } from '../daemon/shifted-clock.ts'
import { type Ended, parley } from './parley.ts'
import { backfilled, type Place, type Test } from './workspace.ts'

const DAY = 86_400_000
const daysAgo = (days: number) => new Date(Date.now() - days * DAY).toISOString()

const WORDS = 'Zxqvkjwp and sons'

/** A warehouse without a daemon, with a team that was deleted `days` days ago; the last maintenance was a week ago. */
async function withDeletedRow(context: Test, days: number): Promise<Place> {
  const place = await backfilled(context, { now: 'real' })
  const db = openSqlite(place.file)
  const at = daysAgo(days)
  db.prepare(
    'INSERT INTO teams (id, name, _first_seen_at, _synced_at, _deleted_at) VALUES (?, ?, ?, ?, ?)',
  ).run('gone', WORDS, at, at, at)
  db.prepare("INSERT INTO sync_purge_queue (table_name, key, withdrawn_at) VALUES ('teams', 'gone', ?)").run(
    at,
  )
  db.prepare("UPDATE sync_meta SET value = ? WHERE key = 'maintained_at'").run(daysAgo(7))
  db.close()
  return place
}

/** Every file of the folder that still contains it. */
const holders = ({ cwd }: Place) =>
  readdirSync(cwd).filter(name => readFileSync(join(cwd, name)).includes(WORDS))

/** Runs with a process clock that is ahead by this many days. */
function backfillAhead({ cwd, env }: Place, days: number): Promise<Ended> {
  const clock = shiftedClock(days * DAY)
  return parley(['backfill', '--only', 'teams'], { cwd, env: { ...env, ...clock.env } })
}

test.concurrent('without a daemon, a backfill purges deleted content once a day', async context => {
  const place = await withDeletedRow(context, 40)
  expect(holders(place)).not.toEqual([])
  const first = await parley(['backfill', '--only', 'teams'], place)
  expect(first.status).toBe(EXIT_STATUS.done)
  expect(first.stderr).toContain('Maintenance finished')
  expect(holders(place)).toEqual([])
  const second = await parley(['backfill', '--only', 'teams', '--log-level', 'debug'], place)
  expect(second.stderr).not.toContain('Maintenance finished')
})

test.concurrent('a backfill whose clock is 40 days ahead purges nothing and warns', async context => {
  const place = await withDeletedRow(context, 10)
  const { status, stderr } = await backfillAhead(place, 40)
  expect(status).toBe(EXIT_STATUS.done)
  expect(stderr).toContain('Maintenance is delayed: nothing is purged while the clock may be wrong')
  expect(stderr).toContain("this machine's clock and the API's differ by more than a day")
  const db = openSqlite(place.file, { readonly: true })
  expect(db.prepare("SELECT name FROM teams WHERE id = 'gone'").pluck().get()).toBe(WORDS)
  db.close()
})

test.concurrent('a backfill leaves no purged content in a database that is too large to rewrite in memory', async context => {
  const place = await withDeletedRow(context, 40)
  const db = openSqlite(place.file)
  const insert = db.prepare(
    'INSERT INTO teams (id, name, _first_seen_at, _synced_at, _deleted_at) VALUES (?, ?, ?, ?, ?)',
  )
  db.transaction(() => {
    for (let at = 0; at < 40; at += 1)
      insert.run(`l${at}`, 'x'.repeat(1e6), daysAgo(1), daysAgo(1), daysAgo(1))
  })()
  db.close()
  const { stderr } = await parley(['backfill', '--only', 'teams'], place)
  expect(stderr).toContain('The database file was rebuilt')
  expect(holders(place)).toEqual([])
})
