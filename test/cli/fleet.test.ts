import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS } from '../../src/base/clock.ts'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import {
  fleetCheck,
  fleetMembers,
  fleetPage,
  readFleet,
  serviceMembers,
} from '../../src/commands/status/fleet.ts'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { asNobody } from '../store/other-user.ts'
import { emptyFolder, parley } from './parley.ts'
import { backfilled } from './workspace.ts'

/** A folder with a settings file for each of these databases. */
function fleetOf(databases: Readonly<Record<string, string>>): string {
  const folder = emptyFolder()
  for (const [name, path] of Object.entries(databases)) addTo(folder, name, `[database]\npath = "${path}"\n`)
  return folder
}

const addTo = (folder: string, name: string, settings: string) =>
  writeFileSync(join(folder, `${name}.toml`), settings)

const statusAll = (folder: string, ...args: string[]) => parley(['status', '--all', folder, ...args])

const rowsOf = (stdout: string) =>
  (JSON.parse(stdout) as { workspaces: Record<string, unknown>[] }).workspaces.map(row => row['name'])

test.concurrent('a workspace that cannot be read is a row that says why, and no failure of the others', async context => {
  const { file } = await backfilled(context)
  const at = (name: string) => join(emptyFolder(), name)
  const [older, foreign, locked] = [at('older.db'), at('foreign.db'), at('locked.db')]
  for (const copy of [older, locked]) copyFileSync(file, copy)
  const old = openSqlite(older)
  old.exec('DELETE FROM __drizzle_migrations WHERE created_at > 0; ALTER TABLE sync_meta RENAME TO gone')
  old.close()
  openSqlite(foreign).exec('CREATE TABLE t (a)').close()
  const lock = openSqlite(locked)
  lock.pragma('journal_mode = DELETE')
  lock.exec('BEGIN EXCLUSIVE')
  context.onTestFinished(() => void lock.close())
  const folder = fleetOf({
    acme: file,
    lost: at('none.db'),
    missing: at('none.db'),
    older,
    foreign,
    locked,
  })
  addTo(folder, 'broken', '[database]\npath = 3\n')
  addTo(folder, 'mistyped', `[database]\npath = "${file}"\n[sync]\nresorces = ["teams"]\n`)
  const { status, stdout, stderr } = await statusAll(folder, '--json')
  expect({ status, stderr }).toEqual({ status: EXIT_STATUS.done, stderr: '' })
  expect(rowsOf(stdout)).toEqual([
    'broken',
    'foreign',
    'locked',
    'lost',
    'missing',
    'mistyped',
    'older',
    'acme',
  ])
  const said = (await statusAll(folder)).stdout
  expect(said).toMatch(/\n {2}broken: .*database\.path/)
  expect(said).toMatch(/\n {2}foreign: .*parley did not create it/)
  expect(said).toMatch(/\n {2}locked: .*locked/)
  expect(said).toMatch(/\n {2}mistyped: .*these settings ends at once.*resorces.*sync\.resources\? config/)
  expect(said).toMatch(/\n {2}older: .*older version of parley\. The next start of parley daemon/)
  expect(said).toMatch(/\n {2}lost: .*There is no warehouse/)
  const check = await statusAll(folder, '--check')
  expect(check.status).toBe(2)
  expect(check.stdout).toMatch(
    /^CRITICAL: 8 workspaces: 7 need you, 1 ok\. broken: .* Also: foreign, locked, lost, missing, mistyped, older\n$/,
  )
})

test.concurrent('settings that name another workspace than the warehouse holds need a person', async context => {
  const { file } = await backfilled(context)
  const folder = emptyFolder()
  const settings = (id: string) => `[api]\nworkspace_id = "${id}"\n[database]\npath = "${file}"\n`
  addTo(folder, 'same', settings('demo-workspace'))
  addTo(folder, 'typo', settings('demo-worksapce'))
  const { status, stdout } = await statusAll(folder, '--check')
  expect({ status, stdout }).toEqual({
    status: 2,
    stdout: expect.stringMatching(
      /^CRITICAL: 2 workspaces: 1 needs you, 1 ok\. typo: Needs you: A daemon that starts with these settings ends at once\. .* holds workspace demo-workspace, but the settings name workspace demo-worksapce\. Check api\.workspace_id, /,
    ),
  })
})

test.concurrent('a folder is no settings file, whatever its name', async context => {
  const { file } = await backfilled(context)
  const folder = fleetOf({ acme: file })
  mkdirSync(join(folder, 'old.toml'))
  expect(rowsOf((await statusAll(folder, '--json')).stdout)).toEqual(['acme'])
})

test.concurrent('status --all --json has for each workspace what status --json has, without the counts of rows', async context => {
  const { cwd, file } = await backfilled(context)
  const folder = fleetOf({ acme: file })
  const [one, all] = await Promise.all([parley(['status', '--json'], { cwd }), statusAll(folder, '--json')])
  const alone = JSON.parse(one.stdout)
  const counts = [
    'rows_live',
    'rows_deleted',
    'backfill_done',
    'backfill_total',
    'pending_tasks',
    'rejected',
    'by_state',
  ]
  expect(JSON.parse(all.stdout)).toEqual({
    workspaces: [
      {
        name: 'acme',
        settings: join(folder, 'acme.toml'),
        database: file,
        health: { kind: 'ok', text: expect.any(String), detail: expect.any(String), todo: null },
        check: 0,
        report: {
          ...alone,
          resources: alone.resources.map((row: Record<string, unknown>) =>
            Object.fromEntries(Object.entries(row).filter(([name]) => !counts.includes(name))),
          ),
        },
      },
    ],
  })
})

test.concurrent('a workspace that reads some resources only is complete when these are', async context => {
  const { file } = await backfilled(context, {
    now: 'real',
    env: { PARLEY_SYNC_RESOURCES: 'teams,messages' },
  })
  const { stdout } = await statusAll(fleetOf({ acme: file }))
  expect(stdout).toMatch(/\nacme +ok +- {2,}\w[\w ]* {2,}\w[\w ]* {2,}[\d.]+ [kM]B\n/)
})

test.concurrent('--max-age and --resource apply to every workspace', async context => {
  const { file } = await backfilled(context, { now: 'real' })
  const folder = fleetOf({ acme: file, beta: file })
  const inAnHour = Date.now() + HOUR_MS
  const check = (resource: ResourceName, maxAgeMs: number) =>
    fleetCheck(readFleet(fleetMembers(folder, '/'), '/', { now: inAnHour, maxAgeMs, resource }))
  const { status, line } = check('messages', MINUTE_MS)
  expect(status).toBe(2)
  expect(line).toMatch(
    /^CRITICAL: 2 workspaces: 2 need you\. acme: Needs you: messages is 1 h.* old \(allowed: 1 min\).* Also: beta$/,
  )
  expect(check('messages', 2 * HOUR_MS)).toEqual({ status: 0, line: 'OK: 2 workspaces: 2 ok' })
  expect(check('teams', MINUTE_MS).line).toMatch(/acme: Needs you: teams is 1 h/)
  const { stdout } = await parley(['status', '--all', folder, '--max-age', '1d', '--resource', 'teams'])
  expect(stdout).toBe('OK: 2 workspaces: 2 ok\n')
})

test.concurrent.each<[args: string[], status: number, stderr: RegExp]>([
  [['--fields'], EXIT_STATUS.usage, /'--all \[folder\]' cannot be used with option '--fields'/],
  [
    ['--database', 'x.db'],
    EXIT_STATUS.usage,
    /'--all \[folder\]' cannot be used with option '--database <file>'/,
  ],
  [
    ['--config', 'x.toml'],
    EXIT_STATUS.usage,
    /'--all \[folder\]' cannot be used with option '--config <file>'/,
  ],
  [
    [],
    EXIT_STATUS.databaseUnavailable,
    /There is no settings file \(\*\.toml\) in \/.*\nhint: Name the folder /,
  ],
])('status --all of an empty folder with %j is an error', async (args, expected, message) => {
  const { status, stdout, stderr } = await statusAll(emptyFolder(), ...args)
  expect({ status, stdout }).toEqual({ status: expected, stdout: '' })
  expect(stderr).toMatch(message)
})

const QUESTION = { now: 0, maxAgeMs: undefined, resource: undefined }

test('the services are those that start at boot, with the paths of their units', () => {
  const entries = ['cron.service', 'parley@made-up-b.service', 'parley@made-up-a.service', 'parley-x.service']
  const rows = readFleet(serviceMembers(entries), '/', QUESTION)
  expect(rows.map(({ name, database, settings }) => [name, database, settings])).toEqual([
    ['made-up-a', '/var/lib/parley/made-up-a/parley.db', '/etc/parley/made-up-a.toml'],
    ['made-up-b', '/var/lib/parley/made-up-b/parley.db', '/etc/parley/made-up-b.toml'],
  ])
  expect(fleetPage(rows, { now: 0, columns: undefined })).toMatch(
    /made-up-a: Needs you: A daemon that starts with these settings .*\(and 1 more problem\)\. .*\/etc\/parley\/made-up-a\.toml /,
  )
})

test('a service that has not created its warehouse is named as the place to look', () => {
  const env = { PARLEY_DATABASE: join(emptyFolder(), 'parley.db') }
  const member = { name: 'acme', from: { flags: {}, env }, unit: 'parley@acme.service' }
  const [row] = readFleet([member], emptyFolder(), QUESTION)
  expect(row?.health).toMatchObject({
    kind: 'act',
    text: expect.stringMatching(/^Needs you: There is no warehouse at .*$/),
    todo: 'The service has not created it; systemctl status parley@acme.service says why.',
  })
})

test('settings that this user may not read are not called wrong', async () => {
  const folder = emptyFolder()
  addTo(folder, 'acme', '')
  chmodSync(join(folder, 'acme.toml'), 0)
  const members = fleetMembers(folder, '/')
  const [row] = await asNobody(async () => readFleet(members, '/', QUESTION))
  expect(row?.health).toMatchObject({
    kind: 'act',
    text: 'Needs you: This user may not read the settings',
    detail: expect.stringContaining('EACCES'),
  })
})
