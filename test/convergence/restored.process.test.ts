import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { newFolder, startParley } from '../support/parley-process.ts'
import { startTrial, TINY, type Trial } from '../support/trial.ts'
import { query } from './changed-tables.ts'

let trial: Trial

afterEach(() => trial.close())

test('a warehouse that was restored from before many changes equals the truth after the next backfill', async () => {
  trial = await startTrial(TINY)
  const copy = join(newFolder(), 'copy.db')
  const parley = async (...args: string[]) => {
    const { ended } = startParley([...args, '--database', trial.database], trial.simulator)
    expect(await ended).toMatchObject({ status: 0 })
  }
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  await parley('snapshot', copy)
  for (const kind of ['edit', 'delete', 'publish'] as const) {
    for (const resource of ['messages', 'meetings', 'members', 'teams'] as const) {
      await trial.simulator.change({ kind, resource, count: 1 })
    }
  }
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  const identity = () => query(trial.database, "SELECT value FROM sync_meta WHERE key = 'identity'")
  const before = identity()
  await parley('restore', copy)
  expect(await trial.differences()).not.toEqual([])
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  expect(await trial.differences()).toEqual([])
  expect(identity()).toEqual(before)
})
