import { afterEach, expect, test } from 'vitest'
import type { Faults } from '../../src/simulator/faults/faults.ts'
import { type DaemonTrial, startDaemonTrial } from './daemon-trial.ts'

let trial: DaemonTrial

afterEach(() => trial.close())

/** The answers of an API without the security option and without a bot definition. */
const NOT_OFFERED: Faults = [
  { kind: 'status', status: 403, route: '/v1/public-api-access-logs' },
  { kind: 'status', status: 404, route: '/v1/bot-definition' },
]

const UNOFFERED = ['access_logs', 'bot_definition'] as const

test('a resource that becomes available is read', async () => {
  trial = await startDaemonTrial()
  await trial.simulator.setFaults(NOT_OFFERED)
  trial.go()
  expect(await trial.convergence({ withheld: UNOFFERED })).toEqual([])
  for (const resource of UNOFFERED) {
    const row = await trial.state(resource, ({ state }) => state === 'unavailable')
    expect(row).toMatchObject({ state: 'unavailable', reason: expect.stringMatching(/40[34]/), rows_live: 0 })
  }
  await trial.simulator.setFaults([])
  expect(await trial.convergence()).toEqual([])
  for (const resource of UNOFFERED) {
    expect(await trial.state(resource, ({ state }) => state === 'ok')).toMatchObject({
      state: 'ok',
      reason: null,
    })
  }
})

test('a resource that was read before and is refused fails and keeps every row, except settings that were removed', async () => {
  trial = await startDaemonTrial()
  trial.go()
  expect(await trial.convergence()).toEqual([])
  await trial.simulator.setFaults([
    ...NOT_OFFERED,
    { kind: 'status', status: 404, route: '/v2/objects/{object}/records' },
  ])
  for (const resource of ['access_logs', 'crm_records'] as const) {
    const row = await trial.state(resource, ({ state }) => state === 'failing')
    expect(row).toMatchObject({ resource, state: 'failing', rows_deleted: 0 })
  }
  const bot = await trial.state('bot_definition', ({ state }) => state === 'unavailable')
  expect(bot).toMatchObject({ state: 'unavailable', rows_live: 0, rows_deleted: 1 })
  await trial.simulator.setFaults([])
  await trial.simulator.change({ kind: 'delete', resource: 'crm_records', count: 1 })
  await trial.simulator.change({ kind: 'editSettings' })
  expect(await trial.convergence()).toEqual([])
  const row = await trial.state('crm_records', ({ state }) => state === 'ok')
  expect(row).toMatchObject({ state: 'ok', rows_deleted: 1 })
})

test('the records of a retired object are deleted with it', async () => {
  trial = await startDaemonTrial()
  trial.go()
  expect(await trial.convergence()).toEqual([])
  await trial.simulator.change({ kind: 'retireObject', object: 'renewal' })
  expect(await trial.convergence()).toEqual([])
})
