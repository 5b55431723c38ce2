import { expect, test } from 'vitest'
import { refused, startScriptedApi, v1Page } from '../support/scripted-api.ts'
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

test.each([
  ['an hour', HOUR, DAY],
  ['a year', 365 * DAY, 7 * DAY],
])('the transcript of a meeting of %s ago is read again after a day or more', async (_, age, due) => {
  const api = await startScriptedApi()
  const detail = {
    meeting_id: 'm',
    overview_status: 'COMPLETED',
    start_time: new Date(Date.now() - age).toISOString(),
  }
  api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm' }]))
  api.on('/v1/meetings/{id}', () => ({ body: { data: { ...detail, views: api.requests.length } } }))
  api.on('/v1/meetings/{id}/transcript', () => ({ body: { data: [{ text: 'word' }] } }))
  const trial = await startTrial(api)
  await trial.run(['meetings', 'transcripts'])
  const timed = await startTimed(api, trial, ['meetings', 'transcripts'])
  const reads = () => api.asked('/v1/meetings/{id}/transcript').length
  timed.passTime(0.5 * due)
  await timed.drain()
  timed.passTime(0.4 * due)
  await timed.drain()
  expect(reads()).toBe(1)
  timed.passTime(0.2 * due)
  await timed.drain()
  expect(reads()).toBe(2)
})

test.each([
  ['four hours', 4 * HOUR, HOUR],
  ['forty days', 40 * DAY, 10 * DAY],
  ['a year', 365 * DAY, 30 * DAY],
])(
  'a meeting of %s ago that may not be read is asked for again after a quarter of its age',
  async (_, age, due) => {
    const api = await startScriptedApi()
    const start_time = new Date(Date.now() - age).toISOString()
    api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm', start_time }]))
    api.on('/v1/meetings/{id}', () => refused(403))
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
  },
)
