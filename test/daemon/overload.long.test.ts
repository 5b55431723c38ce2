import { afterEach, expect, test } from 'vitest'
import { type DaemonTrial, startDaemonTrial } from './daemon-trial.ts'

let trial: DaemonTrial

afterEach(() => trial.close())

test('where more is due than the API allows, everything has its turn', async () => {
  trial = await startDaemonTrial()
  trial.go()
  expect(await trial.convergence()).toEqual([])
  // About a quarter of what it would ask with intervals so short.
  await trial.simulator.setLimit({ kind: 'token-bucket', rate: 15, burst: 5 })
  await trial.simulator.changeAtOnce([
    { kind: 'publish', resource: 'messages', count: 3 },
    { kind: 'publishLate', resource: 'messages', count: 3 },
    { kind: 'publishLate', resource: 'activities', count: 3 },
    { kind: 'edit', resource: 'crm_records', object: 'company', count: 2 },
    { kind: 'edit', resource: 'meetings', count: 2 },
    { kind: 'edit', resource: 'teams', count: 1 },
    // Nothing is ever quiet here, so what is gone is dealt with on the way.
    { kind: 'delete', resource: 'messages', count: 2 },
    { kind: 'delete', resource: 'activities', count: 2 },
  ])
  expect(await trial.convergence()).toEqual([])
})
