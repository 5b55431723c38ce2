import { describe, expect, test } from 'vitest'
import { sweepAfter, sweepTexts, type TextSweep } from '../../src/engine/modes/items/text-sweep.ts'
import { refused, startScriptedApi, v2Page } from '../support/scripted-api.ts'
import { message, minutesBack, startTrial, uuid } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

describe('the position of the sweep', () => {
  const facts = { rows: 90_000, perSecond: 100, intervalScale: 1 }
  test.each([
    { after: 'less than an hour', ms: HOUR - 1, row: 500, is: 500 },
    { after: 'a day', ms: DAY, row: 500, is: 1500 },
    { after: 'a day of a scaled interval', ms: DAY / 10, row: 500, is: 1500, intervalScale: 0.1 },
    { after: 'a pause of a month', ms: 30 * DAY, row: 500, is: 7500 },
    { after: 'a day at the last row', ms: DAY, row: 89_500, is: 500 },
    { after: 'a day without rows', ms: DAY, row: 0, is: 0, rows: 0 },
    { after: 'a day of ten rows', ms: DAY, row: 0.5, is: 0.5 + 10 / 90, rows: 10 },
    // A fiftieth of the requests of a day.
    { after: 'a day at a request in ten seconds', ms: DAY, row: 0, is: 172.8, perSecond: 0.1 },
    { after: 'a day of at most 5000 requests', ms: DAY, row: 0, is: 100, requestsPerDay: 5000 },
  ])('after $after it is $is', ({ ms, row, is, ...more }) => {
    expect(sweepAfter({ row, at: 1000 }, { ...facts, ...more, now: 1000 + ms }).row).toBeCloseTo(is, 6)
  })

  test('it comes to each of a million rows once in 116 days at five requests a second', () => {
    let sweep: TextSweep = { row: 0, at: 0 }
    let days = 0
    for (let before = -1; sweep.row > before; days += 1) {
      before = sweep.row
      sweep = sweepAfter(sweep, { rows: 1e6, perSecond: 5, intervalScale: 1, now: sweep.at + DAY })
    }
    expect(days).toBe(116)
  })
})

/** E-mails whose texts were read, and the API that has these texts. */
async function startTexts(count: number, since?: string) {
  const api = await startScriptedApi()
  const texts = new Map<string, string | null>()
  const rows = Array.from({ length: count }, (_, number) =>
    message(number, { received_at: minutesBack(number) }),
  )
  for (const { id } of rows) texts.set(id, 'first')
  api.on('/v2/messages', () => v2Page(rows))
  api.on('/v2/messages/{id}', ({ params: [id = ''] }) => {
    const row = rows.find(one => one.id === id)
    return row ? { body: { ...row, text: texts.get(id) } } : refused(404)
  })
  const trial = await startTrial(api)
  const resources = ['messages', 'message_bodies'] as const
  await (await startTimed(api, trial, resources)).drain()
  const timed = await startTimed(api, trial, resources, since === undefined ? {} : { since })
  const day = async () => {
    const before = api.asked('/v2/messages/{id}').length
    timed.passTime(DAY - 2 * HOUR)
    await trial.store.transaction(() => sweepTexts(timed.context, resources, 100))
    await timed.drain()
    timed.passTime(2 * HOUR)
    await timed.drain()
    return api.asked('/v2/messages/{id}').length - before
  }
  await day()
  return { trial, timed, texts, day }
}

test('a text that is hidden or edited while its e-mail stays the same is hidden or edited within 90 days', async () => {
  const { trial, texts, day } = await startTexts(30)
  texts.set(uuid(3), null)
  texts.set(uuid(17), 'edited')
  for (let days = 0; days < 90; days += 1) await day()
  const stored = trial.all(
    'SELECT id, m.text, m.text_state FROM live_messages m JOIN live_message_copies USING (id)',
  )
  expect(stored.filter(({ text }) => text !== 'first')).toEqual([
    { id: uuid(3), text: null, text_state: 'empty' },
    { id: uuid(17), text: 'edited', text_state: 'present' },
  ])
})

test('the sweep costs one request for each text in 90 days', async () => {
  const { day } = await startTexts(30)
  let requests = 0
  for (let days = 0; days < 90; days += 1) requests += await day()
  expect(requests).toBe(30)
})

test('the sweep leaves out the e-mails from before the configured start', async () => {
  const { day } = await startTexts(30, minutesBack(9.5))
  let requests = 0
  for (let days = 0; days < 90; days += 1) requests += await day()
  expect(requests).toBe(10)
})

test('the sweep wants no texts while they are not read', async () => {
  const { trial, timed } = await startTexts(30)
  timed.passTime(7 * DAY)
  await trial.store.transaction(() => sweepTexts(timed.context, ['messages'], 100))
  expect(trial.column("SELECT key FROM sync_tasks WHERE feed = 'message_bodies.read'")).toEqual([])
  await trial.store.transaction(() => sweepTexts(timed.context, ['messages', 'message_bodies'], 100))
  expect(trial.column("SELECT key FROM sync_tasks WHERE feed = 'message_bodies.read'")).toHaveLength(2)
})
