import { afterEach, expect, test } from 'vitest'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import type { Change } from '../../src/simulator/changes/change.ts'
import { type DaemonTrial, startDaemonTrial } from './daemon-trial.ts'

let trial: DaemonTrial

afterEach(() => trial.close())

/** The scaled day, at least a second: deletions are held back at least this long. */
const HELD_MS = 1000

const HALF: [ResourceName, string, Change & { count: number }][] = [
  ['messages', 'message_copies', { kind: 'hide', resource: 'messages', count: 60 }],
  ['activities', 'activities', { kind: 'hide', resource: 'activities', count: 60 }],
  ['members', 'members', { kind: 'hide', resource: 'members', count: 30 }],
  ['crm_records', 'crm_records', { kind: 'delete', resource: 'crm_records', object: 'company', count: 30 }],
]

test.each(HALF)(
  '%s: deletion of half of all rows is held back and reported, and applied after a second complete round',
  async (resource, table, change) => {
    const sizes = { members: 60, companies: 40, contacts: 10, deals: 4, customRecords: 0 }
    trial = await startDaemonTrial(sizes, { PARLEY_SYNC_RESOURCES: `${resource},message_bodies` })
    trial.go()
    expect(await trial.convergence({ tables: [table] })).toEqual([])
    await trial.simulator.change(change)
    const held = await trial.state(resource, ({ state }) => state === 'failing')
    expect(held).toMatchObject({ state: 'failing', reason: expect.stringContaining('is held back') })
    expect(await trial.convergence({ tables: [table] })).toEqual([])
    const after = await trial.state(resource, ({ state }) => state === 'ok')
    expect(after).toMatchObject({ state: 'ok' })
    const { stderr } = await trial.end()
    const heldAt = Date.parse(String(/"time":"([^"]+)"[^\n]*mass-deletion/.exec(stderr)?.[1]))
    const gone = trial.rows(`SELECT _deleted_at AS at FROM ${table} WHERE _deleted_at IS NOT NULL ORDER BY 1`)
    // A few of the hidden ones were on no list.
    expect(gone.length).toBeGreaterThan(change.count * 0.8)
    expect(Date.parse(String(gone[0]?.['at']))).toBeGreaterThanOrEqual(heldAt + HELD_MS)
  },
)

test('rows that come back while their deletion is held back are never marked as deleted', async () => {
  const env = { PARLEY_SYNC_RESOURCES: 'message_bodies', PARLEY_SYNC_INTERVAL_SCALE: '0.0001' }
  trial = await startDaemonTrial({}, env)
  trial.go()
  expect(await trial.convergence({ tables: ['message_copies'] })).toEqual([])
  const { ids } = await trial.simulator.change({ kind: 'hide', resource: 'messages', count: 60 })
  await trial.state('messages', ({ state }) => state === 'failing')
  await trial.simulator.change({ kind: 'reveal', resource: 'messages', ids })
  await trial.state('messages', ({ state }) => state === 'ok')
  expect(await trial.convergence({ tables: ['message_copies'] })).toEqual([])
  expect(trial.rows('SELECT id FROM message_copies WHERE _deleted_at IS NOT NULL')).toEqual([])
})

test('a fifth of the rows is deleted soon, again and again', async () => {
  trial = await startDaemonTrial()
  trial.go()
  expect(await trial.convergence()).toEqual([])
  for (let time = 0; time < 3; time++) {
    await trial.simulator.change({ kind: 'hide', resource: 'messages', count: 15 })
    await trial.simulator.change({ kind: 'delete', resource: 'activities', count: 4 })
    await trial.simulator.change({ kind: 'hide', resource: 'members', count: 1 })
    expect(await trial.convergence()).toEqual([])
    await trial.audit()
  }
  const { stderr } = await trial.end()
  expect(stderr).not.toContain('mass-deletion')
})

test('a stop between holding back and confirmation loses nothing', async () => {
  trial = await startDaemonTrial({}, { PARLEY_SYNC_RESOURCES: 'message_bodies' })
  trial.go()
  expect(await trial.convergence({ tables: ['message_copies'] })).toEqual([])
  await trial.simulator.change({ kind: 'hide', resource: 'messages', count: 60 })
  await trial.state('messages', ({ state }) => state === 'failing')
  await trial.kill()
  trial.go()
  expect(await trial.convergence({ tables: ['message_copies'] })).toEqual([])
})
