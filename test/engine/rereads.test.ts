import { expect, test } from 'vitest'
import { startScriptedApi, v1Page } from '../support/scripted-api.ts'
import { startTrial } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

test.each([
  ['an hour', HOUR, HOUR],
  ['ten days', 10 * DAY, DAY],
  ['a year', 365 * DAY, 7 * DAY],
])('a meeting of %s ago that only a list of keys shows is read again by its own age', async (_, age, due) => {
  const api = await startScriptedApi()
  const detail = {
    meeting_id: 'm',
    overview_status: 'COMPLETED',
    start_time: new Date(Date.now() - age).toISOString(),
  }
  api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm' }]))
  api.on('/v1/meetings/{id}', () => ({ body: { data: detail } }))
  const trial = await startTrial(api)
  await trial.run(['meetings'])
  const timed = await startTimed(api, trial, ['meetings'])
  const reads = () => api.asked('/v1/meetings/{id}').length
  timed.passTime(0.9 * due)
  await timed.drain()
  expect(reads()).toBe(1)
  timed.passTime(0.2 * due)
  await timed.drain()
  expect(reads()).toBe(2)
})
