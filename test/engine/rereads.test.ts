import { expect, test } from 'vitest'
import { refused, type ScriptedAnswer, startScriptedApi, v1Page, v2Page } from '../support/scripted-api.ts'
import { message, startTrial } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

interface Place {
  age: number
  /** Asked at each read of the meeting, with the number of requests before it. */
  detail?: (meeting: object, requests: number) => ScriptedAnswer
  /** Whether the list shows the time of the meeting. */
  isDated?: boolean
}

/** A workspace with one meeting, read once. Returns functions that let time pass and count the reads of a route. */
async function startMeeting({ age, detail, isDated = false }: Place) {
  const api = await startScriptedApi()
  const start_time = new Date(Date.now() - age).toISOString()
  const meeting = { meeting_id: 'm', overview_status: 'COMPLETED', start_time }
  api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm', ...(isDated && { start_time }) }]))
  api.on('/v1/meetings/{id}', () => detail?.(meeting, api.requests.length) ?? { body: { data: meeting } })
  api.on('/v1/meetings/{id}/transcript', () => ({ body: { data: [{ text: 'word' }] } }))
  const trial = await startTrial(api)
  const resources = ['meetings', 'transcripts'] as const
  await trial.run(resources)
  const timed = await startTimed(api, trial, resources)
  return {
    async pass(ms: number) {
      timed.passTime(ms)
      await timed.drain()
    },
    reads: (route: string) => api.asked(route).length,
  }
}

test.each([
  ['an hour', HOUR, HOUR],
  ['ten days', 10 * DAY, DAY],
  ['a year', 365 * DAY, 7 * DAY],
])('a meeting of %s ago that only a list of keys shows is read again by its own age', async (_, age, due) => {
  const { pass, reads } = await startMeeting({ age })
  await pass(0.9 * due)
  expect(reads('/v1/meetings/{id}')).toBe(1)
  await pass(0.2 * due)
  expect(reads('/v1/meetings/{id}')).toBe(2)
})

test.each([
  ['an hour', HOUR, DAY],
  ['a year', 365 * DAY, 7 * DAY],
])('the transcript of a meeting of %s ago is read again after a day or more', async (_, age, due) => {
  const { pass, reads } = await startMeeting({
    age,
    detail: (meeting, requests) => ({ body: { data: { ...meeting, views: requests } } }),
  })
  await pass(0.5 * due)
  await pass(0.4 * due)
  expect(reads('/v1/meetings/{id}/transcript')).toBe(1)
  await pass(0.2 * due)
  expect(reads('/v1/meetings/{id}/transcript')).toBe(2)
})

test.each([
  ['four hours ago', 4 * HOUR, HOUR],
  ['forty days ago', 40 * DAY, 10 * DAY],
  ['a year ago', 365 * DAY, 30 * DAY],
  ['in forty days', -40 * DAY, 10 * DAY],
])(
  'a meeting %s that may not be read is asked for again after a quarter of that time',
  async (_, age, due) => {
    const { pass, reads } = await startMeeting({ age, detail: () => refused(403), isDated: true })
    await pass(0.9 * due)
    expect(reads('/v1/meetings/{id}')).toBe(1)
    await pass(0.2 * due)
    expect(reads('/v1/meetings/{id}')).toBe(2)
  },
)

test.each([
  ['ten days', 10 * DAY],
  ['a year', 365 * DAY],
])('the text of an e-mail of %s ago that was hidden for a day is stored on the next day', async (_, age) => {
  const api = await startScriptedApi()
  const listed = message(1, { received_at: new Date(Date.now() - age).toISOString() })
  let isHidden = true
  api.on('/v2/messages', () => v2Page([listed]))
  api.on('/v2/messages/{id}', () => (isHidden ? refused(404) : { body: { ...listed, text: 'words' } }))
  const trial = await startTrial(api)
  const timed = await startTimed(api, trial, ['messages', 'message_bodies'])
  const day = async () => {
    for (let hour = 0; hour < 24; hour += 1) {
      timed.passTime(HOUR)
      await timed.drain()
    }
  }
  await day()
  expect(trial.column('SELECT text_state FROM messages')).toEqual(['gone'])
  isHidden = false
  await day()
  expect(trial.column('SELECT text FROM messages')).toEqual(['words'])
})

test('the text of an old e-mail that always answers 404 is soon asked for once a month', async () => {
  const api = await startScriptedApi()
  const listed = message(1, { received_at: new Date(Date.now() - 365 * DAY).toISOString() })
  api.on('/v2/messages', () => v2Page([listed]))
  api.on('/v2/messages/{id}', () => refused(404))
  const trial = await startTrial(api)
  const timed = await startTimed(api, trial, ['messages', 'message_bodies'])
  const readsIn = async (days: number) => {
    const before = api.asked('/v2/messages/{id}').length
    for (let passed = 0; passed < days; passed += 1) {
      timed.passTime(DAY)
      await timed.drain()
    }
    return api.asked('/v2/messages/{id}').length - before
  }
  await readsIn(60)
  expect(await readsIn(90)).toBe(3)
})
