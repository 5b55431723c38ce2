import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { writeWholeCopy } from '../../src/store/database/whole-copy.ts'
import { openDatabase } from '../../src/store/file/open.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { PROGRAM } from '../cli/parley.ts'
import { expand, readUnit } from './unit-file.ts'

const unit = readUnit('parley-snapshot@.service')

let state: string
let snapshots: string
let writer: Sqlite

beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'parley-snapshots-'))
  const [own = '', kept = ''] = expand(unit.one('StateDirectory'), { state }).split(' ')
  snapshots = join(state, kept)
  mkdirSync(snapshots, { recursive: true })
  writeFileSync(join(state, 'acme.toml'), '')
  writer = openWarehouse({ path: join(state, own, 'parley.db') })
})
afterEach(() => writer.close())

/** Copies of the same warehouse, made earlier. */
function putSnapshots(names: readonly string[]): void {
  writer.exec("INSERT INTO sync_meta (key, value) VALUES ('identity', 'acme')")
  for (const name of names) writeWholeCopy(writer, join(snapshots, name))
}

/** As systemd gives them, with the settings in a file of the test's own. */
function environment(): Record<string, string> {
  const pairs = unit.all('Environment').map(line => {
    const [name = '', ...value] = expand(line, { state }).split('=')
    return [name, value.join('=').replace('/etc/parley', state)]
  })
  return Object.fromEntries(pairs)
}

/** The command that systemd would run. */
function takeSnapshot(): { ok: boolean; says: string } {
  const [program = '', ...args] = unit.one('ExecStart').split(' ')
  expect(program).toBe('/opt/parley/dist/cli.js')
  const command = ['umask', unit.one('UMask'), '&&', 'exec', process.execPath, PROGRAM, ...args].join(' ')
  const run = spawnSync('/bin/sh', ['-c', command], {
    cwd: expand(unit.one('WorkingDirectory'), { state }),
    env: { PATH: process.env['PATH'], ...environment() },
    encoding: 'utf8',
  })
  return { ok: run.status === 0, says: run.stderr }
}

/** The rows that an analyst gets from a database that was opened read-only. */
function rowsIn(name: string): unknown {
  const copy = openDatabase({ path: join(snapshots, name), readonly: true })
  try {
    expect(copy.pragma('integrity_check', { simple: true })).toBe('ok')
    return copy.prepare('SELECT name FROM teams ORDER BY name').pluck().all()
  } finally {
    copy.close()
  }
}

/** Names of as many nights until the last, in their order. */
const earlier = (nights: number): string[] =>
  Array.from({ length: nights }, (_, index) => {
    const day = new Date(Date.now() - (nights - index) * 86_400_000).toISOString().slice(0, 10)
    return `parley-${day}T000000Z.db`
  })

const addTeam = (name: string) =>
  writer
    .prepare('INSERT INTO teams (id, name, _first_seen_at, _synced_at) VALUES (?, ?, ?, ?)')
    .run(name, name, '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z')

test('a snapshot has exactly what was committed, while another process writes', () => {
  addTeam('committed')
  writer.exec('BEGIN IMMEDIATE')
  addTeam('under way')
  expect(takeSnapshot()).toEqual({ ok: true, says: '' })
  writer.exec('ROLLBACK')
  const [name = '', ...others] = readdirSync(snapshots)
  expect(others).toEqual([])
  expect(name).toMatch(/^parley-\d{4}-\d\d-\d\dT\d{6}Z\.db$/)
  expect(rowsIn(name)).toEqual(['committed'])
})

test('a snapshot may be read by its owner and group only', () => {
  takeSnapshot()
  const [name = ''] = readdirSync(snapshots)
  expect(statSync(join(snapshots, name)).mode & 0o777).toBe(0o640)
})

test('the newest seven are kept', () => {
  const old = earlier(9)
  putSnapshots(old)
  expect(takeSnapshot()).toEqual({ ok: true, says: '' })
  const kept = readdirSync(snapshots).sort()
  expect(kept.slice(0, -1)).toEqual(old.slice(-6))
  expect(rowsIn(kept.at(-1) ?? '')).toEqual([])
})

test('as many snapshots are kept as the settings say, in the folder of the daemon too', () => {
  writeFileSync(join(state, 'acme.toml'), '[snapshot]\nkeep = 2\nfolder = "/nowhere"\n')
  const old = earlier(3)
  putSnapshots(old)
  expect(takeSnapshot()).toEqual({ ok: true, says: '' })
  expect(readdirSync(snapshots).sort()).toEqual([old.at(-1), expect.stringMatching(/^parley-2/)])
  expect(unit.all('Environment')).toEqual(
    readUnit('parley@.service')
      .all('Environment')
      .filter(line => !line.startsWith('PARLEY_HTTP_')),
  )
})

test('a failed snapshot removes no other', () => {
  const old = earlier(9)
  putSnapshots(old)
  writer.close()
  rmSync(join(state, 'parley/acme/parley.db'))
  expect(existsSync(join(state, 'parley/acme/parley.db'))).toBe(false)
  expect(takeSnapshot().ok).toBe(false)
  expect(readdirSync(snapshots).filter(name => name.startsWith('parley-'))).toEqual(old)
})
