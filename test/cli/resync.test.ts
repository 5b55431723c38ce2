import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { openStore } from '../../src/store/store.ts'
import { share } from '../support/effort.ts'
import { parley, startParley } from './parley.ts'
import { placeFor, silentApi, workspace } from './workspace.ts'

function contents(file: string): Record<string, unknown[]> {
  const db = openSqlite(file, { readonly: true })
  const tables = [
    'messages',
    'message_copies',
    'meetings',
    'transcript_entries',
    'playbook_results',
    'access_logs',
  ]
  const rows = Object.fromEntries(
    tables.map(table => [table, db.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all()]),
  )
  db.close()
  return rows
}

const BODY = '/v2/messages/{messageId}'
const TRANSCRIPT = '/v1/meetings/{meetingId}/transcript'

const MARKED = [
  ['messages', BODY, 'Marked messages with message_bodies to be read again'],
  ['message_bodies', BODY, 'Marked message_bodies to be read again'],
  ['transcripts', TRANSCRIPT, 'Marked transcripts to be read again'],
  ['meetings', TRANSCRIPT, 'Marked meetings with transcripts and playbook_results to be read'],
] as const

test.concurrent.for(share(MARKED))(
  'after resync %s the next backfill reads everything again, and no row is lost or written',
  async ([resource, route, says], context) => {
    const simulator = await workspace(context)
    const place = placeFor(simulator)
    await parley(['backfill'], place)
    const first = simulator.requests.count(route, 200)
    const before = contents(place.file)
    simulator.requests.clear()

    const { status, stdout } = await parley(['resync', resource], { cwd: place.cwd })
    expect(status).toBe(EXIT_STATUS.done)
    expect(stdout).toContain(says)
    expect(stdout).toContain('No row was deleted')
    expect(contents(place.file)).toEqual(before)
    const marked = await parley(['status'], { cwd: place.cwd })
    expect(marked.stdout).toMatch(new RegExp(`\\n${resource} +backfilling `))

    expect(await parley(['backfill'], place)).toMatchObject({ status: EXIT_STATUS.done })
    expect(simulator.requests.count(route, 200)).toBe(first)
    expect(contents(place.file)).toEqual(before)
    const read = await parley(['status'], { cwd: place.cwd })
    expect(read.stdout).not.toMatch(/backfilling/)
  },
)

test.concurrent('after resync access_logs the log is read again from its start', async context => {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  const route = '/v1/public-api-access-logs'
  await parley(['backfill'], place)
  const first = simulator.requests.count(route)
  const before = contents(place.file)
  await parley(['resync', 'access_logs'], { cwd: place.cwd })
  simulator.requests.clear()
  await parley(['backfill'], place)
  // Without the resync only the last hour or two would be read, depending on the time of day.
  expect(simulator.requests.count(route)).toBeGreaterThanOrEqual(first)
  expect(contents(place.file)).toEqual(before)
})

test.concurrent('resync during a backfill is done by the next backfill', async context => {
  const simulator = await workspace(context)
  const silent = await silentApi(context)
  const place = placeFor(simulator)
  await parley(['backfill'], place)
  const first = simulator.requests.count(TRANSCRIPT, 200)
  const before = contents(place.file)
  simulator.requests.clear()

  const running = startParley(['backfill'], { ...place, env: placeFor(silent).env })
  await silent.asked
  const asked = await parley(['resync', 'meetings'], { cwd: place.cwd })
  expect(asked).toMatchObject({ status: EXIT_STATUS.done, stderr: '' })
  expect(asked.stdout.replaceAll(/\s+/g, ' ')).toMatch(
    new RegExp(
      '^Requested: read meetings with transcripts and playbook_results again from the start. ' +
        `The warehouse is being written by process ${running.child.pid} \\(parley backfill\\) since [-\\d]* ?[\\d:]+ UTC. ` +
        'The next parley backfill or daemon applies the request first. No row',
    ),
  )
  const during = await parley(['status'], { cwd: place.cwd })
  expect(during.stdout).toContain('\nRequested and not started yet: resync of meetings (')
  running.child.kill('SIGKILL')
  await running.ended

  expect(await parley(['backfill'], place)).toMatchObject({ status: EXIT_STATUS.done })
  expect(simulator.requests.count(TRANSCRIPT, 200)).toBe(first)
  expect(contents(place.file)).toEqual(before)
  const after = await parley(['status', '--json'], { cwd: place.cwd })
  expect(JSON.parse(after.stdout).requests).toEqual([])
})

test.concurrent('a running daemon does the resync', async context => {
  const place = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'teams'], place)
  const clock = systemClock()
  const { pid } = process
  const store = openStore({ path: place.file, mode: 0o600, command: 'daemon', pid, clock })
  const { status, stdout } = await parley(['resync', 'teams'], { cwd: place.cwd })
  expect(status).toBe(EXIT_STATUS.done)
  expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
    new RegExp(
      `^Requested: read teams .* by process ${pid} \\(parley daemon\\) since [-\\d]* ?[\\d:]+ UTC. It applies the request within`,
    ),
  )
  expect(store.requests.open()).toEqual([
    { id: 1, kind: 'resync', resource: 'teams', askedAt: expect.stringMatching(/^20.*Z$/) },
  ])
  store.close()
})

test.concurrent('resync reports has the next backfill compute the tables for reports again', async context => {
  const place = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'messages'], place)
  const conversations = () => {
    const db = openSqlite(place.file, { readonly: true })
    const rows = db.prepare('SELECT conversation_id, title FROM conversations ORDER BY 1').all()
    db.close()
    return rows
  }
  const before = conversations()
  const db = openSqlite(place.file)
  db.exec("UPDATE conversations SET title = 'written by somebody else'")
  db.close()

  const { status, stdout } = await parley(['resync', 'reports'], { cwd: place.cwd })
  expect(status).toBe(EXIT_STATUS.done)
  expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
    /^Marked the tables for reports .* takes no request to the API/,
  )
  expect(conversations()).not.toEqual(before)
  await parley(['backfill', '--only', 'messages'], place)
  expect(before.length).toBeGreaterThan(10)
  expect(conversations()).toEqual(before)
})

test.concurrent('resync reports is handed over to a daemon', async context => {
  const place = placeFor(await workspace(context))
  await parley(['backfill', '--only', 'teams'], place)
  const store = openStore({
    ...{ path: place.file, mode: 0o600, command: 'daemon', pid: process.pid },
    clock: systemClock(),
  })
  const { stdout } = await parley(['resync', 'reports'], { cwd: place.cwd })
  expect(stdout).toMatch(/^Requested: compute the tables for reports again\./)
  expect(store.requests.open()).toMatchObject([{ kind: 'resync', resource: 'reports' }])
  store.close()
})

test.concurrent('an unknown resource is wrong usage, and the hint suggests the nearest name', async context => {
  const place = placeFor(await workspace(context))
  expect(await parley(['resync', 'meating'], place)).toEqual({
    status: EXIT_STATUS.usage,
    stdout: '',
    stderr: expect.stringMatching(
      /^parley: Unknown resource "meating"\nhint: Did you mean meetings\? The resources are members, /,
    ),
  })
})

test.concurrent('a resync of everything is refused with the way to do it', async () => {
  const { status, stderr } = await parley(['resync', 'all'])
  expect(status).toBe(EXIT_STATUS.usage)
  expect(stderr).toContain('hint: Run the command once for each resource. The resources are members, ')
})
