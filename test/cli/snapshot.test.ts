import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { quote } from '../../src/store/database/sql.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { emptyFolder, parley, parleyWithSmallFiles } from './parley.ts'
import { backfilled, placeFor, workspace } from './workspace.ts'

/** Every row of every table, except those in which processes note their own state. */
function rowsIn(file: string): Record<string, unknown[]> {
  const db = openSqlite(file, { readonly: true })
  const tables = db
    .prepare(
      `SELECT name FROM sqlite_master
       WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND name NOT LIKE 'sqlite%' AND name <> 'sync_meta'`,
    )
    .pluck()
    .all() as string[]
  const rows = tables.map(name => [name, db.prepare(`SELECT * FROM ${quote(name)}`).all()] as const)
  db.close()
  return Object.fromEntries(rows)
}

test.concurrent('snapshot FILE copies everything while nothing runs, says what is in it, and needs no API settings', async context => {
  const { cwd, file } = await backfilled(context, { securityOption: false })
  const before = readdirSync(cwd)
  const { status, stdout, stderr } = await parley(['snapshot', 'copy.db'], { cwd })
  expect({ status, stderr }).toEqual({ status: EXIT_STATUS.done, stderr: '' })
  expect(stdout).toMatch(
    /^Wrote copy\.db: [\d.,]+ [kM]B in .*\.\nWorkspace: \S+\.\nThe data are complete as of \d{4}-\d\d-\d\dT[\d:.]+Z\.\n$/,
  )
  expect(readdirSync(cwd).sort()).toEqual([...before, 'copy.db'].sort())
  expect(rowsIn(join(cwd, 'copy.db'))).toEqual(rowsIn(file))
  expect(statSync(join(cwd, 'copy.db')).mode & 0o777).toBe(0o600)
})

test.concurrent('snapshot of an incomplete warehouse names the incomplete resources', async context => {
  const place = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'teams'], place)
  const db = openSqlite(place.file)
  db.exec('UPDATE sync_meta SET value = \'["teams","messages"]\' WHERE key = \'chosen_resources\'')
  db.close()
  const { status, stdout } = await parley(['snapshot', 'copy.db'], place)
  expect(status).toBe(EXIT_STATUS.done)
  expect(stdout).toMatch(/not complete yet: parley has not read the whole history of messages\.\n$/)
})

test.concurrent('resources that were not chosen leave a copy, an export and a report complete', async context => {
  const place = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'teams'], place)
  const complete = /The data of (members, )?teams are complete as of \S+Z\.\n$/
  expect((await parley(['snapshot', 'copy.db'], place)).stdout).toMatch(complete)
  expect((await parley(['export', 'parquet', 'out'], place)).stdout).toMatch(complete)
  expect((await parley(['report', 'report.html'], place)).stdout).toMatch(complete)
  expect(JSON.parse((await parley(['publish', 'lake', '--json'], place)).stdout)).toMatchObject({
    complete_as_of: expect.stringMatching(/Z$/),
  })
})

test.concurrent('snapshot without FILE goes to the snapshot folder, which keeps the newest', async context => {
  const { cwd, file } = await backfilled(context, { securityOption: false })
  const folder = `${file}.snapshots`
  mkdirSync(folder)
  const old = ['parley-2026-01-01T000000Z.db', 'parley-2026-01-02T000000Z.db']
  for (const name of old) writeFileSync(join(folder, name), '')
  const flags = ['--snapshot-keep', '2']
  const { status, stdout } = await parley(['snapshot', ...flags], { cwd })
  expect(status).toBe(EXIT_STATUS.done)
  expect(stdout).toContain(`\nRemoved ${join(folder, 'parley-2026-01-01T000000Z.db')}.\n`)
  const names = readdirSync(folder).sort()
  expect(names).toEqual([old[1], expect.stringMatching(/^parley-\d{4}-\d\d-\d\dT\d{6}Z\.db$/)])
  expect(rowsIn(join(folder, names[1] ?? ''))).toEqual(rowsIn(file))
})

test.concurrent('a file that snapshot may not replace is refused with 64 and is not changed', async context => {
  const { cwd, file } = await backfilled(context, { securityOption: false })
  writeFileSync(join(cwd, 'letter.txt'), 'Dear Sir or Madam')
  const before = readFileSync(file)
  for (const [name, message] of [
    ['parley.db', 'belongs to the warehouse itself'],
    ['parley.db-wal', 'belongs to the warehouse itself'],
    ['letter.txt', 'exists and is not a snapshot of parley; it was not changed'],
    ['.', 'is a folder'],
    ['nowhere/', 'nowhere is a folder'],
  ] as const) {
    const { status, stdout, stderr } = await parley(['snapshot', name], { cwd })
    expect({ name, status, stdout }).toEqual({ name, status: EXIT_STATUS.usage, stdout: '' })
    expect(stderr).toContain(message)
    expect(stderr).toMatch(/\nhint: /)
  }
  expect(readFileSync(file).equals(before)).toBe(true)
  expect(readFileSync(join(cwd, 'letter.txt'), 'utf8')).toBe('Dear Sir or Madam')
})

test.concurrent('a full disk ends snapshot with 73, leaves no file and does not change the earlier snapshot', async context => {
  const { cwd } = await backfilled(context, { securityOption: false })
  await parley(['snapshot', 'copy.db'], { cwd })
  const [before, names] = [readFileSync(join(cwd, 'copy.db')), readdirSync(cwd)]
  const { status, stdout, stderr } = await parleyWithSmallFiles(200, ['snapshot', 'copy.db'], { cwd })
  expect({ status, stdout }).toEqual({ status: EXIT_STATUS.databaseUnavailable, stdout: '' })
  expect(stderr).toMatch(/^parley: Cannot write the snapshot .*\/copy\.db: .* \(SQLITE_\w+\)\nhint: Check /)
  expect(readdirSync(cwd)).toEqual(names)
  expect(readFileSync(join(cwd, 'copy.db')).equals(before)).toBe(true)
})

test.concurrent('snapshot without a warehouse ends with 73 and creates no file', async () => {
  const cwd = emptyFolder()
  for (const args of [['snapshot', 'copy.db'], ['snapshot']]) {
    const { status, stderr } = await parley(args, { cwd })
    expect(status).toBe(EXIT_STATUS.databaseUnavailable)
    expect(stderr).toMatch(/^parley: There is no warehouse at /)
  }
  expect(existsSync(join(cwd, 'copy.db'))).toBe(false)
  expect(readdirSync(cwd)).toEqual([])
})
