import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { column, loaded, startDaemon } from '../daemon/cli-daemon.ts'
import { until } from '../support/until.ts'
import { emptyFolder, parley } from './parley.ts'
import { backfilled, type Place, placeFor, workspace } from './workspace.ts'

/** What commands show of a daemon that runs, and that both use the warehouse at the same time. */

test('status --all has a row for each daemon, and names the one that was stopped first', async context => {
  const simulator = await workspace(context)
  const places: Record<string, Place> = {
    acme: placeFor(simulator),
    beta: placeFor(simulator),
    gamma: placeFor(simulator),
  }
  const daemons = Object.entries(places).map(([name, place]) => ({
    name,
    place,
    daemon: startDaemon(context, place),
  }))
  const folder = emptyFolder()
  for (const { name, place } of daemons)
    writeFileSync(join(folder, `${name}.toml`), `[database]\npath = "${place.file}"\n`)
  const statusAll = (...args: string[]) => parley(['status', '--all', folder, ...args])
  await Promise.all(daemons.map(({ place }) => loaded(place.file)))
  const fine = await statusAll()
  expect(fine).toMatchObject({ status: EXIT_STATUS.done, stderr: '' })
  expect(fine.stdout).toMatch(
    /^workspace +state +daemon +fresh as of +complete as of .*size\nacme +ok +running .*B\nbeta +ok +running .*\ngamma +ok +running .*\n3 workspaces: 3 ok\.\n$/,
  )
  expect(await statusAll('--check')).toEqual({
    status: 0,
    stdout: 'OK: 3 workspaces: 3 ok\n',
    stderr: '',
  })
  daemons[1]?.daemon.signal('SIGTERM')
  await daemons[1]?.daemon.ended
  const stopped = await statusAll()
  expect(stopped.status).toBe(EXIT_STATUS.done)
  expect(stopped.stdout).toMatch(/\nbeta +needs you +stopped .*\nacme +ok +running .*\ngamma +ok +running /)
  expect(stopped.stdout).toMatch(
    /\n {2}beta: Needs you since .*: The daemon is not running, .*Start parley daemon again\.\n3 workspaces: 1 needs you, 2 ok\.\n$/,
  )
  const check = await statusAll('--check')
  expect(check.status).toBe(2)
  expect(check.stdout).toMatch(
    /^CRITICAL: 3 workspaces: 1 needs you, 2 ok\. beta: Needs you since .*Start parley daemon again\.\n$/,
  )
})

test('a starting daemon notes when each resource is due, even one that it does not read yet', async context => {
  const place = await backfilled(context)
  const db = openSqlite(place.file)
  db.exec('UPDATE sync_resources SET next_run_at = NULL')
  db.close()
  const daemon = startDaemon(context, place)
  const unknown = () => column(place.file, 'SELECT resource FROM sync_status WHERE next_run_at IS NULL')
  expect(await until(unknown, names => names.length === 0)).toEqual([])
  daemon.signal('SIGTERM')
  expect(await daemon.ended).toMatchObject({ status: 0 })
})

test('snapshot works while the daemon runs, and a reader needs only the one file', async context => {
  const place = placeFor(await workspace(context))
  const daemon = startDaemon(context, place)
  await loaded(place.file)
  const folder = emptyFolder()
  const copy = join(folder, 'copy.db')
  const { status, stdout } = await parley(['snapshot', copy, '--json', '--database-mode', '0644'], place)
  expect(status).toBe(EXIT_STATUS.done)
  const said = JSON.parse(stdout)
  expect(said).toMatchObject({
    path: copy,
    bytes: statSync(copy).size,
    database: place.file,
    duration_ms: expect.any(Number),
    begun_at: expect.stringMatching(/Z$/),
    removed: [],
    not_removed: [],
  })
  expect(said.resources).toHaveLength(17)
  const messages = said.resources.find(({ resource }: { resource: string }) => resource === 'messages')
  expect(messages.rows_live).toBe(column(copy, 'SELECT count(*) FROM live_messages')[0])
  expect(messages.fresh_as_of).toBe(
    column(copy, "SELECT fresh_as_of FROM sync_status WHERE resource = 'messages'")[0],
  )
  expect(readdirSync(folder)).toEqual(['copy.db'])
  expect(statSync(copy).mode & 0o777).toBe(0o644)
  // The daemon's notes about itself do not belong to the copy.
  const ofCopy = await parley(['status', '--json', '--database', copy], place)
  expect(JSON.parse(ofCopy.stdout)).toMatchObject({ writer: null, daemon: null, api: null })
  daemon.signal('SIGTERM')
  expect(await daemon.ended).toMatchObject({ status: 0 })
})

test('a daemon keeps its settings when a reload names another workspace, and says whose data it reads', async context => {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  const config = (id: string) =>
    writeFileSync(join(place.cwd, 'parley.toml'), `[api]\nworkspace_id = "${id}"\n`)
  config(simulator.workspaceId)
  const daemon = startDaemon(context, place, { PARLEY_CONFIG: 'parley.toml', PARLEY_WORKSPACE_ID: '' })
  await loaded(place.file)
  const teams = () => column(place.file, 'SELECT id FROM teams ORDER BY id')
  const before = teams()
  config('other-workspace')
  daemon.signal('SIGHUP')
  const line = await daemon.says(({ msg }) => msg.endsWith('the daemon keeps the current ones'))
  expect(line.error).toMatchObject({ code: 'other-workspace' })
  const info = `parley_workspace_info{workspace_id="${simulator.workspaceId}",base_url="${simulator.url}"} 1`
  expect((await daemon.ask('/metrics')).body).toContain(info)
  expect(JSON.parse((await daemon.ask('/status')).body).workspace.id).toBe(simulator.workspaceId)
  expect(teams()).toEqual(before)
})

test('while a daemon runs doctor does not advise to start one', async context => {
  const place = await backfilled(context, { now: 'real' })
  const daemon = startDaemon(context, place, { PARLEY_HTTP_LISTEN: 'off' })
  await daemon.says(({ msg }) => msg === 'The daemon starts')
  const next = async () => JSON.parse((await parley(['doctor', '--json'], place)).stdout).next
  const expected = `the daemon (process ${daemon.pid}) keeps the warehouse up to date; parley status shows how fresh it is.`
  // It holds the lock some time before it records itself as the writer.
  expect(await until(next, seen => seen === expected)).toBe(expected)
})

test('an export works while the daemon writes', async context => {
  const place = placeFor(await workspace(context))
  const daemon = startDaemon(context, place)
  await daemon.says(({ msg }) => msg === 'A span of event time was listed to its end')
  const { status, stdout } = await parley(['export', 'parquet', 'out', '--json'], { cwd: place.cwd })
  daemon.signal('SIGTERM')
  expect(status).toBe(EXIT_STATUS.done)
  expect(JSON.parse(stdout)).toMatchObject({ exported_at: expect.stringMatching(/Z$/) })
  expect((await daemon.ended).status).toBe(EXIT_STATUS.done)
})
