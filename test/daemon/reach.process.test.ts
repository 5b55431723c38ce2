import { expect, type TestContext, test } from 'vitest'
import { placeFor, workspace } from '../cli/workspace.ts'
import { until } from '../support/until.ts'
import { column, loaded, runCommand, seen, startDaemon } from './cli-daemon.ts'

const LISTED = "'activities', 'members', 'messages', 'teams'"

/** A daemon on a workspace that it has read. */
async function atWork(context: TestContext) {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  const daemon = startDaemon(context, place)
  await loaded(place.file)
  await until(
    () => daemon.ask('/readyz'),
    ({ status }) => status === 200,
  )
  const states = () =>
    column(place.file, `SELECT DISTINCT state FROM sync_status WHERE resource IN (${LISTED}) ORDER BY 1`)
  const publish = () => {
    const [id = ''] = simulator.apply({ kind: 'publish', resource: 'messages' }).ids
    return seen(place.file, id, 'SELECT id FROM message_copies WHERE id = ?', id).then(found => found === id)
  }
  return { simulator, place, daemon, states, publish }
}

test.concurrent('a temporary 404 on every route ends no daemon, neither a running nor a starting one', async context => {
  const { simulator, place, daemon, states, publish } = await atWork(context)
  const deleted = () =>
    column(place.file, "SELECT sum(rows_deleted) FROM sync_status WHERE resource <> 'access_logs'")
  const before = deleted()
  simulator.setFaults([{ kind: 'status', status: 404 }])
  // A resource that was refused before all of them were is failing itself.
  expect(await until(states, found => found.includes('on hold'))).toContain('on hold')
  const [reason] = await until(
    () => column(place.file, "SELECT reason FROM sync_status WHERE resource = 'members'"),
    ([found]) => String(found).includes('refused access'),
  )
  expect(reason).toMatch(
    /^The API has refused access since [-\d]* ?[\d:]+ UTC \(.*\); next try at [-\d]* ?[\d:]+ UTC$/,
  )
  expect(await daemon.ask('/readyz')).toMatchObject({ status: 503 })

  daemon.signal('SIGKILL')
  await daemon.ended
  const next = startDaemon(context, place)
  await next.says(({ msg }) => msg.startsWith('The API refuses every list'))
  simulator.setFaults([])
  expect(await publish()).toBe(true)
  expect(await until(states, found => found.join() === 'ok')).toEqual(['ok'])
  expect(
    await until(
      () => next.ask('/readyz'),
      ({ status }) => status === 200,
    ),
  ).toMatchObject({ status: 200 })
  expect(deleted()).toEqual(before)
})

test.concurrent('a key that may no longer read two lists leaves the others fresh', async context => {
  const { simulator, place, daemon } = await atWork(context)
  simulator.setFaults(
    ['/v2/activities', '/v2/messages'].map(route => ({ kind: 'status', status: 403, route }) as const),
  )
  const refusals = () => simulator.requests.count(undefined, 403)
  expect(await until(refusals, count => count >= 5)).toBeGreaterThanOrEqual(5)
  expect((await daemon.ask('/readyz')).status).toBe(200)
  expect(JSON.parse((await daemon.ask('/status')).body).api).toBeNull()
  expect(
    column(place.file, 'SELECT resource FROM sync_status WHERE state = ? ORDER BY 1', 'failing'),
  ).toEqual(['activities', 'messages'])
})

test.concurrent('a family of routes that answers 500 stops no other, and the daemon stays ready', async context => {
  const { simulator, place, daemon, publish } = await atWork(context)
  const routes = ['/v1/meetings', '/v1/meetings/{meetingId}', '/v1/meetings/{meetingId}/transcript']
  simulator.setFaults(routes.map(route => ({ kind: 'status', status: 500, route }) as const))
  for (let round = 0; round < 3; round += 1) {
    simulator.apply({ kind: 'publish', resource: 'meetings' })
    expect(await publish()).toBe(true)
  }
  await until(
    () => simulator.requests.count('/v1/meetings/{meetingId}', 500),
    count => count >= 6,
  )
  expect(await publish()).toBe(true)
  expect((await daemon.ask('/readyz')).status).toBe(200)
  expect(daemon.lines().filter(({ msg }) => msg.startsWith('No request to the API succeeds'))).toEqual([])
  expect(column(place.file, "SELECT state FROM sync_status WHERE resource = 'messages'")).toEqual(['ok'])
})

test.concurrent('other processes see an outage, and the first answer ends it', async context => {
  const { simulator, place, daemon, states, publish } = await atWork(context)
  simulator.setFaults([{ kind: 'reset' }])
  expect(await until(states, found => found.join() === 'on hold')).toEqual(['on hold'])
  const [reason] = column(place.file, "SELECT reason FROM sync_status WHERE resource = 'members'")
  expect(reason).toMatch(
    /^No request to the API has succeeded since [-\d]* ?[\d:]+ UTC \(.*\); next try at [-\d]* ?[\d:]+ UTC$/,
  )
  const other = JSON.parse((await runCommand(place, ['status', '--json'])).stdout)
  expect(other.api).toMatchObject({ kind: 'silent', next_try_at: expect.stringMatching(/Z$/) })
  expect((await runCommand(place, ['status'])).stdout).toMatch(
    /^Waiting since .* UTC: No request to the API succeeds\. .* Next try: /,
  )
  expect(JSON.parse((await daemon.ask('/status')).body).api).toMatchObject({ kind: 'silent' })
  expect((await daemon.ask('/readyz')).status).toBe(503)
  simulator.setFaults([])
  expect(await publish()).toBe(true)
  expect(await until(states, found => found.join() === 'ok')).toEqual(['ok'])
  expect(JSON.parse((await runCommand(place, ['status', '--json'])).stdout).api).toBeNull()
})
