import { afterEach, expect, test } from 'vitest'
import { type DaemonTrial, startDaemonTrial } from './daemon-trial.ts'

let trial: DaemonTrial

afterEach(() => trial.close())

test('every list has its turn when more is due than the API allows', async () => {
  trial = await startDaemonTrial()
  trial.go()
  expect(await trial.convergence()).toEqual([])
  // About a quarter of the requests that these intervals would make due.
  await trial.simulator.setLimit({ kind: 'token-bucket', rate: 15, burst: 5 })
  await trial.simulator.changeAtOnce([
    { kind: 'publish', resource: 'messages', count: 3 },
    { kind: 'publishLate', resource: 'messages', count: 3 },
    { kind: 'publishLate', resource: 'activities', count: 3 },
    { kind: 'edit', resource: 'crm_records', object: 'company', count: 2 },
    { kind: 'edit', resource: 'meetings', count: 2 },
    { kind: 'edit', resource: 'teams', count: 1 },
    // Some list is always due in this test, so the reads that confirm these deletions compete with other reads.
    { kind: 'delete', resource: 'messages', count: 2 },
    { kind: 'delete', resource: 'activities', count: 2 },
  ])
  expect(await trial.convergence()).toEqual([])
})
