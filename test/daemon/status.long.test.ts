import { afterEach, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { type DaemonTrial, startDaemonTrial } from './daemon-trial.ts'

let trial: DaemonTrial

afterEach(() => trial.close())

test('the meetings of a deleted collection do not count as live', async () => {
  trial = await startDaemonTrial({ collections: 6, meetings: 20 })
  trial.go()
  expect(await trial.convergence()).toEqual([])
  const [held] = trial.rows('SELECT collection_id AS id FROM collection_meetings LIMIT 1')
  const collection = String(held?.['id'])
  // The collection is deleted while its meetings are still stored.
  await trial.simulator.setFaults([{ kind: 'status', status: 500, route: '/v1/meetings' }])
  await trial.simulator.change({ kind: 'delete', resource: 'collections', ids: [collection] })
  const gone = () =>
    trial.rows('SELECT 1 FROM collections WHERE id = ? AND _deleted_at IS NOT NULL', collection)
  await until(gone, rows => rows.length > 0)
  await trial.kill()
  await trial.simulator.setFaults([])
  trial.go()
  expect(await trial.convergence()).toEqual([])
})
