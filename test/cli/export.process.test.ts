import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import type { Manifest } from '../../src/export/manifest.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { openDuck } from '../export/duckdb.ts'
import { until } from '../support/until.ts'
import { parley, parleyWithSmallFiles, startParley } from './parley.ts'
import { backfilled } from './workspace.ts'

const duck = await openDuck()

const manifestIn = (folder: string) =>
  JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as Manifest

test.concurrent('an export that is killed at any moment leaves complete files, and the next one repairs it', async context => {
  const { cwd } = await backfilled(context)
  const folder = join(cwd, 'out')
  const killed = startParley(['export', 'parquet', 'out'], { cwd })
  await until(() => existsSync(join(folder, 'messages')) || killed.child.exitCode !== null, Boolean)
  killed.child.kill('SIGKILL')
  await killed.ended
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  for (const name of names.filter(name => name.endsWith('.parquet'))) {
    const { rows } = await duck.read(`SELECT count(*) FROM read_parquet('${folder}/${name}')`)
    expect(Number(rows[0]?.[0]), name).toBeGreaterThanOrEqual(0)
  }
  expect(await parley(['export', 'parquet', 'out'], { cwd })).toMatchObject({ status: EXIT_STATUS.done })
  await parley(['export', 'parquet', 'whole'], { cwd })
  const rowsIn = (place: string) =>
    manifestIn(join(cwd, place)).tables.map(({ table, rows, files }) => [
      table,
      rows,
      files.map(file => file.fingerprint),
    ])
  expect(rowsIn('out')).toEqual(rowsIn('whole'))
})

test.concurrent('a full disk is reported as such, and the manifest stays that of the previous export', async context => {
  const { cwd, file } = await backfilled(context)
  await parley(['export', 'parquet', 'out'], { cwd })
  const before = manifestIn(join(cwd, 'out'))
  const db = openSqlite(file)
  db.prepare('UPDATE meetings SET title = ?').run(
    Array.from({ length: 60_000 }, (_, i) => `${i * 7919}`).join('-'),
  )
  db.close()
  const { status, stderr } = await parleyWithSmallFiles(100, ['export', 'parquet', 'out'], { cwd })
  expect(status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(stderr).toMatch(
    /^parley: Cannot export to .*out: a file would exceed the size limit .* \(EFBIG\)\nhint: Raise the limit \(ulimit -f/,
  )
  expect(manifestIn(join(cwd, 'out'))).toEqual(before)
  expect(await parley(['export', 'parquet', 'out'], { cwd })).toMatchObject({ status: EXIT_STATUS.done })
})

test.concurrent('an export writes a month of texts many times larger than its memory', async context => {
  const { cwd, file } = await backfilled(context)
  const db = openSqlite(file)
  const words = '長い話を'.repeat(250_000)
  const [columns, time] = ['id, occurred_at, type, _first_seen_at, _synced_at', '2026-01-05T00:00:00.000Z']
  const add = db.prepare(`INSERT INTO activities (${columns}) VALUES (?, '${time}', ?, '${time}', '${time}')`)
  for (let index = 0; index < 90; index += 1) add.run(`long ${index}`, `${index} ${words}`)
  db.close()
  const env = { NODE_OPTIONS: '--max-old-space-size=64' }
  const { status, stderr } = await parley(['export', 'parquet', 'out', '--tables', 'activities'], {
    cwd,
    env,
  })
  // On a busy machine it takes long enough to report progress.
  expect(stderr).toMatch(/^(activities: \d+ rows read, .*\n)*$/)
  expect(status).toBe(EXIT_STATUS.done)
  const { rows } = await duck.read(
    `SELECT count(*), min(length(type)) FROM read_parquet('${cwd}/out/activities/*/*.parquet') WHERE id LIKE 'long %'`,
  )
  expect(rows).toEqual([[90n, 1_000_002n]])
})
