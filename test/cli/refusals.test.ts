import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { listenUntilTestEnds } from '../support/http-server.ts'
import { emptyFolder, parley, parleyProcess, startParley } from './parley.ts'
import { placeFor, silentApi, type Test, workspace } from './workspace.ts'

const NOWHERE = { url: 'http://127.0.0.1:9', apiKey: 'demo-key', workspaceId: 'demo-workspace' }

async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise(resolve => server.close(resolve))
  return address !== null && typeof address === 'object' ? address.port : 0
}

test.concurrent('a wrong key ends with 77 and says where to look', async context => {
  const simulator = await workspace(context)
  const { status, stdout, stderr } = await parley(
    ['backfill', '--json'],
    placeFor({ ...simulator, apiKey: 'wrong-key' }),
  )
  expect(status).toBe(EXIT_STATUS.refused)
  expect(JSON.parse(stdout)).toMatchObject({ exit_status: status, error: { code: 'unauthorized' } })
  expect(stderr).toContain(
    `parley: The API at ${simulator.url} refuses the key from environment PARLEY_API_KEY (workspace ${simulator.workspaceId}): Invalid API key\nhint: The key is wrong, `,
  )
  expect(stderr).not.toContain('wrong-key')
  expect(simulator.requests.count(undefined, 200)).toBe(0)
})

test.concurrent.for([403, 404] as const)(
  'a workspace that answers %d to everything ends with 77, and nothing is marked as deleted',
  async (refusal, context) => {
    const simulator = await workspace(context)
    const place = placeFor(simulator)
    await parley(['backfill'], place)
    const before = await parley(['status', '--json'], place)
    simulator.setFaults([{ kind: 'status', status: refusal }])
    const { status, stderr } = await parley(['backfill'], place)
    expect(status).toBe(EXIT_STATUS.refused)
    expect(stderr).toContain(
      `parley: The API at ${simulator.url} answers every request with 403 or 404 (workspace ${simulator.workspaceId}, key from environment PARLEY_API_KEY)\nhint: Check api.workspace_id and `,
    )
    const rows = (stdout: string) =>
      JSON.parse(stdout).resources.map(({ resource, rows_live, rows_deleted }: Record<string, unknown>) => ({
        resource,
        rows_live,
        rows_deleted,
      }))
    const after = await parley(['status', '--json'], place)
    expect(rows(after.stdout)).toEqual(rows(before.stdout))
  },
)

test.concurrent.for([
  [200, 'The API answers 200: The answer is a web page, not JSON', EXIT_STATUS.apiUnavailable],
  [404, 'it answers every request with 403 or 404, and its errors do not have the API', EXIT_STATUS.refused],
] as const)(
  'a site that answers %d with a web page to everything is not taken for the API, and not waited for',
  async ([answer, says, status], context) => {
    const { url } = await webSite(context, answer)
    const { cwd, env } = placeFor({ ...NOWHERE, url })
    const around = { cwd, env: { ...env, PARLEY_API_GIVE_UP_SECONDS: '604800' } }
    const ends = await Promise.all([parley(['backfill'], around), parley(['doctor'], around)])
    expect(ends.map(end => end.status)).toEqual([status, EXIT_STATUS.apiUnavailable])
    expect(ends[0].stderr).toContain(`parley: ${url} does not answer like the API: ${says}`)
    expect(ends[1].stdout).toMatch(
      /\nWRONG {4}API: http\S+ does not answer like the API: .*\n {9}→ Check api\.base_url/,
    )
    for (const { stdout, stderr } of ends)
      expect((stdout + stderr).match(/If it is right, a proxy/g)).toHaveLength(1)
  },
)

async function webSite(context: Test, status: number): Promise<{ url: string }> {
  const server = createServer((_, response) => {
    response.writeHead(status, { 'content-type': 'text/html' })
    response.end('<!doctype html><title>Welcome</title>')
  })
  return { url: await listenUntilTestEnds(server, context.onTestFinished) }
}

test.concurrent('an address where nothing listens ends with 69', async () => {
  const place = placeFor({ ...NOWHERE, url: `http://127.0.0.1:${await closedPort()}` })
  const { status, stdout, stderr } = await parley(['backfill'], place)
  expect({ status, stdout }).toEqual({ status: EXIT_STATUS.apiUnavailable, stdout: '' })
  expect(stderr).toContain(
    `parley: No usable answer from ${place.env['PARLEY_BASE_URL']}: The API cannot be reached: connection refused\nhint: Check api.base_url, the network and the proxy`,
  )
})

test.concurrent.for(['SIGINT', 'SIGHUP'] as const)(
  'a request without a response is cancelled 10 s after the first %s',
  async (signal, context) => {
    const silent = await silentApi(context)
    const running = startParley(['backfill', '--json'], placeFor(silent))
    await silent.asked
    running.child.kill(signal)
    const { status, stdout } = await running.ended
    expect(status).toBe(EXIT_STATUS.unfinished)
    expect(JSON.parse(stdout)).toMatchObject({ complete: false, interrupted: true })
  },
)

test.concurrent('a second signal ends a backfill at once', async context => {
  const silent = await silentApi(context)
  const running = startParley(['backfill', '--json'], placeFor(silent))
  await silent.asked
  running.child.kill('SIGTERM')
  await running.says('Stopping after ')
  running.child.kill('SIGTERM')
  expect(await running.ended).toMatchObject({ status: EXIT_STATUS.unfinished, stdout: '' })
})

test.concurrent('the hint of a stopped command speaks of no other command', async context => {
  const silent = await silentApi(context)
  const running = startParley(['backfill', '--plan'], placeFor(silent))
  await silent.asked
  running.child.kill('SIGTERM')
  const { status, stderr } = await running.ended
  expect(status).toBe(EXIT_STATUS.unfinished)
  expect(stderr).toMatch(/parley: Stopped by SIGTERM\nhint: Run the command again\.\n$/)
})

test.concurrent('a second process names the process that writes the warehouse, and ends with 75', async context => {
  const silent = await silentApi(context)
  const place = placeFor(silent)
  const running = startParley(['backfill'], place)
  await silent.asked
  const who = new RegExp(
    `^parley: .*parley\\.db is being written by process ${running.child.pid} \\(parley backfill\\) since [-\\d]* ?[\\d:]+ UTC\\nhint: `,
  )
  const second = await parley(['backfill'], place)
  expect(second).toEqual({
    status: EXIT_STATUS.unfinished,
    stdout: '',
    stderr: expect.stringMatching(who),
  })
  running.child.kill('SIGKILL')
  await running.ended
})

test.concurrent('all wrong settings are reported at once with 78, and no file is created', async () => {
  const cwd = emptyFolder()
  const { status, stderr } = await parley(['backfill', '--max-concurrency', '0'], {
    cwd,
    env: { PARLEY_SYNC_RESOURCES: 'nonsense' },
  })
  expect(status).toBe(EXIT_STATUS.settings)
  const named = ['api.base_url', 'api.key', 'api.workspace_id', 'api.max_concurrency', 'sync.resources']
  for (const setting of named) expect(stderr).toContain(setting)
  expect(existsSync(join(cwd, 'parley.db'))).toBe(false)
})

test.concurrent.for(['backfill --nonsense', 'backfill x', 'resync', 'status x'])(
  'parley %s is wrong usage',
  async line => {
    expect(await parley(line.split(' '))).toMatchObject({ status: EXIT_STATUS.usage, stdout: '' })
  },
)

test.concurrent('a missing or unwritable folder ends with 73', async () => {
  const place = placeFor(NOWHERE)
  const closed = join(place.cwd, 'closed')
  mkdirSync(closed)
  chmodSync(closed, 0o500)
  // To the superuser only the system's own folders are closed.
  const folders = process.getuid?.() === 0 ? ['/sys/kernel', join(place.cwd, 'none')] : [closed, '/none']
  for (const folder of folders) {
    const { status, stdout, stderr } = await parley(['backfill', '--database', join(folder, 'x.db')], place)
    expect({ status, stdout }).toEqual({ status: EXIT_STATUS.databaseUnavailable, stdout: '' })
    expect(stderr).toMatch(/^parley: Cannot use the database .*x\.db: .*\nhint: Check /)
  }
})

test.concurrent('a warehouse that another program has locked ends with 75 and is named', async context => {
  const { cwd, env } = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'teams'], { cwd, env })
  const stranger = openSqlite(join(cwd, 'parley.db'))
  stranger.pragma('locking_mode = EXCLUSIVE')
  stranger.exec('BEGIN EXCLUSIVE')
  const lines = ['status', 'search x', 'schema', 'backfill --only teams', 'export parquet out']
  // At once, since each of them waits a while for it.
  const ends = await Promise.all(lines.map(line => parleyProcess(line.split(' '), { cwd, env })))
  for (const [index, { status, stdout, stderr }] of ends.entries()) {
    expect({ line: lines[index], status, stdout }).toEqual({
      line: lines[index],
      status: EXIT_STATUS.unfinished,
      stdout: '',
    })
    expect(stderr).toMatch(
      /The database .*parley\.db is locked by process \d+ \(.*\nhint: Close that program/,
    )
    expect(stderr).toContain(`process ${process.pid} (`)
  }
  stranger.close()
  expect(await parley(['status'], { cwd })).toMatchObject({ status: 0 })
})

test.concurrent("a backfill that an analyst's trigger stops ends with 73 and names it, and doctor lists it", async context => {
  const place = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'teams'], place)
  const analyst = openSqlite(place.file)
  analyst.exec("CREATE TRIGGER my_check BEFORE INSERT ON members BEGIN SELECT RAISE(ABORT, 'no'); END")
  analyst.close()
  const { status, stderr } = await parley(['backfill', '--only', 'members'], place)
  expect(status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(stderr).toMatch(
    /^parley: Cannot write .*: the trigger my_check on members, .*\nhint: .*DROP TRIGGER/m,
  )
  expect((await parley(['doctor'], place)).stdout).toContain('parley did not create my_check on members')
})

test.concurrent("another program's database and a file that is no database end with 73 and are not changed", async () => {
  const place = placeFor(NOWHERE)
  const foreign = join(place.cwd, 'foreign.db')
  const db = openSqlite(foreign)
  db.exec('CREATE TABLE notes (text TEXT)')
  db.close()
  const notes = join(place.cwd, 'notes.txt')
  writeFileSync(notes, 'Buy milk. '.repeat(500))
  for (const [file, says] of [
    [foreign, 'is a SQLite database, but parley did not create it'],
    [notes, 'it is not a SQLite database'],
  ] as const) {
    const before = readFileSync(file)
    for (const command of ['backfill', 'status']) {
      const { status, stderr } = await parley([command, '--database', file], place)
      expect(status).toBe(EXIT_STATUS.databaseUnavailable)
      expect(stderr).toContain(says)
    }
    expect(readFileSync(file).equals(before)).toBe(true)
  }
})

test.concurrent('a warehouse of a newer version ends with 73', async context => {
  const place = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'teams'], place)
  const db = openSqlite(place.file)
  db.exec("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 99999999999999)")
  db.close()
  for (const command of ['backfill', 'status']) {
    const { status, stderr } = await parley([command], place)
    expect(status).toBe(EXIT_STATUS.databaseUnavailable)
    expect(stderr).toMatch(/^parley: .*parley\.db was written by a newer version of parley\nhint: /)
  }
})
