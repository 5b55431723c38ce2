import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { openDatabase, type Sqlite } from '../../src/store/open.ts'
import { requirePrograms } from './tools.ts'
import { expand, readUnit } from './unit-file.ts'

const unit = readUnit('parley-snapshot@.service')

let state: string
let snapshots: string
let writer: Sqlite

beforeAll(() => requirePrograms('sqlite3'))

beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'parley-snapshots-'))
  const [own = '', kept = ''] = expand(unit.one('StateDirectory'), { state }).split(' ')
  snapshots = join(state, kept)
  mkdirSync(snapshots, { recursive: true })
  writer = openDatabase({ path: join(state, own, 'parley.db') })
})
afterEach(() => writer.close())

/** The unit's lines one after the other, until one fails, as systemd runs them. */
function takeSnapshot(): { ok: boolean; says: string } {
  let says = ''
  const ok = unit.all('ExecStart').every(line => {
    const command = expand(line, { state }).replaceAll('$$', '$')
    const run = spawnSync('/bin/sh', ['-c', `umask ${unit.one('UMask')}; ${command}`], {
      cwd: expand(unit.one('WorkingDirectory'), { state }),
      encoding: 'utf8',
    })
    says += run.stdout + run.stderr
    return run.status === 0
  })
  return { ok, says }
}

/** What an analyst would get, from a database that was opened only to be read. */
function rowsIn(name: string): unknown {
  const copy = openDatabase({ path: join(snapshots, name), readonly: true })
  try {
    expect(copy.pragma('integrity_check', { simple: true })).toBe('ok')
    return copy.prepare('SELECT name FROM teams ORDER BY name').pluck().all()
  } finally {
    copy.close()
  }
}

const addTeam = (name: string) =>
  writer
    .prepare('INSERT INTO teams (id, name, _first_seen_at, _synced_at) VALUES (?, ?, ?, ?)')
    .run(name, name, '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z')

test('a snapshot holds what was committed, and nothing else, while somebody writes', () => {
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

test('a snapshot may be read by the group and by nobody else', () => {
  takeSnapshot()
  const [name = ''] = readdirSync(snapshots)
  expect(statSync(join(snapshots, name)).mode & 0o777).toBe(0o640)
})

test('the newest seven are kept', () => {
  const old = Array.from({ length: 9 }, (_, day) => `parley-2020-01-0${day + 1}T000000Z.db`)
  for (const name of old) writeFileSync(join(snapshots, name), '')
  expect(takeSnapshot()).toEqual({ ok: true, says: '' })
  const kept = readdirSync(snapshots).sort()
  expect(kept.slice(0, -1)).toEqual(old.slice(-6))
  expect(rowsIn(kept.at(-1) ?? '')).toEqual([])
})

test('one that was cut short is thrown away', () => {
  writeFileSync(join(snapshots, 'new.db'), 'half of a database')
  writeFileSync(join(snapshots, 'new.db-journal'), '')
  expect(takeSnapshot()).toEqual({ ok: true, says: '' })
  expect(readdirSync(snapshots)).toEqual([expect.stringMatching(/^parley-/)])
})

test('one that fails takes none of the others away', () => {
  const old = Array.from({ length: 9 }, (_, day) => `parley-2020-01-0${day + 1}T000000Z.db`)
  for (const name of old) writeFileSync(join(snapshots, name), '')
  writer.close()
  rmSync(join(state, 'parley/acme/parley.db'))
  expect(existsSync(join(state, 'parley/acme/parley.db'))).toBe(false)
  expect(takeSnapshot().ok).toBe(false)
  expect(readdirSync(snapshots).filter(name => name.startsWith('parley-'))).toEqual(old)
})
