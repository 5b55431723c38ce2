import { describe, expect, test } from 'vitest'
import { refused, startScriptedApi, v1Page } from '../support/scripted-api.ts'
import { scriptedList } from '../support/scripted-lists.ts'
import { message, startTrial, uuid } from './trial-backfill.ts'
import { startTimed, type TimedSources } from './trial-timed.ts'

const MESSAGES = { time: 'received_at', from: 'received_from', to: 'received_to' } as const
const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const POLL_MS = 5000

describe.each([
  ['of three hundred rows', 300],
  ['of so few rows that a page holds them all', 20],
])('a list %s that answers only errors for a while', (_, count) => {
  test.each([
    ['half a minute', 30_000],
    ['ten minutes', 10 * MINUTE],
  ])('the list is polled at its newest end as before once it answers after %s', async (_name, outageMs) => {
    const api = await startScriptedApi()
    const trial = await startTrial(api)
    const ago = (ms: number) => new Date(trial.clock.now() - ms).toISOString()
    let isBroken = false
    const rows = Array.from({ length: count }, (_row, index) =>
      message(index, { received_at: ago((index + 1) * MINUTE) }),
    )
    const list = scriptedList({
      ...MESSAGES,
      rows,
      pageSize: 100,
      instead: () => (isBroken ? refused(500) : undefined),
    })
    api.on('/v2/messages', list.handler)
    const timed = await startTimed(api, trial, ['messages'], { pollMs: POLL_MS })
    const poll = async () => {
      trial.passTime(POLL_MS)
      await timed.drain()
    }
    await timed.drain()
    await poll()

    isBroken = true
    const polls = outageMs / POLL_MS
    const asked = api.requests.length
    for (let done = 0; done < polls; done += 1) await poll()
    expect(api.requests.length - asked).toBeLessThan(50)
    isBroken = false
    const sent = api.requests.length
    while (api.requests.length === sent) await poll()
    // The first answer ends the waits of everything that was put off.
    for (let done = 0; done < 3; done += 1) await poll()
    const segments = () => trial.store.segments.of('messages.list', '')
    expect(segments().filter(({ retryAt }) => retryAt !== null)).toEqual([])
    trial.passTime(10 * MINUTE)
    for (let done = 0; done < 3; done += 1) await poll()

    const [head] = segments()
    // The newest end has half a page of rows again, so that the poll sees late rows. The 51st row is the first below it.
    const begins = rows[50]?.received_at ?? ''
    expect(head?.from ?? '').toBe(count > 50 ? begins : '')
    list.rows.push(message(1000, { received_at: ago(30 * MINUTE + 1) }))
    await poll()
    expect(trial.column(`SELECT count(*) FROM message_copies WHERE id = '${uuid(1000)}'`)).toEqual([1])
  })
})

test('a list that failed as a whole is read in whole pages, also when it answers only after a restart', async () => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  const ago = (ms: number) => new Date(trial.clock.now() - ms).toISOString()
  let isBroken = false
  const list = scriptedList({
    ...MESSAGES,
    rows: Array.from({ length: 60 }, (_row, index) =>
      message(index, { received_at: ago((index + 1) * DAY) }),
    ),
    pageSize: 100,
    instead: () => (isBroken ? refused(500) : undefined),
  })
  api.on('/v2/messages', list.handler)
  const start = () => startTimed(api, trial, ['messages'], { pollMs: POLL_MS })
  const pass = async (timed: TimedSources, ms: number, times: number) => {
    for (let done = 0; done < times; done += 1) {
      timed.passTime(ms)
      await timed.drain()
    }
  }
  const failing = await start()
  await failing.drain()
  isBroken = true
  await pass(failing, POLL_MS, (2 * MINUTE) / POLL_MS)
  const limits = () => api.requests.flatMap(({ query }) => query['limit'] ?? [])
  expect(limits()).toContain('1')
  isBroken = false
  const sent = api.requests.length
  await pass(await start(), DAY / 4, 4 * 8)
  expect(new Set(limits().slice(sent))).toEqual(new Set(['100']))
})

test('of twenty collections whose route is broken, one tries for all, and all are read once it answers', async () => {
  const api = await startScriptedApi()
  const collections = Array.from({ length: 20 }, (_, number) => ({ id: `c${number}` }))
  let isBroken = false
  api.on('/v1/collections', () => v1Page(collections))
  api.on('/v1/collections/{id}', ({ params: [id] }) => ({ body: { data: { id } } }))
  api.on('/v1/meetings', ({ query }) =>
    isBroken ? refused(500) : v1Page([{ meeting_id: `of ${query['collection_id']}` }]),
  )
  const trial = await startTrial(api)
  const chosen = ['collections', 'collection_meetings'] as const
  await trial.run(chosen)
  const timed = await startTimed(api, trial, chosen)
  const asked = async (work: () => Promise<void>) => {
    const before = api.asked('/v1/meetings').length
    await work()
    return api.asked('/v1/meetings').length - before
  }
  isBroken = true
  timed.readAgain('collection_meetings')
  // Each is tried with a smaller page too.
  expect(await asked(timed.drain)).toBeLessThan(2 * 5)
  timed.moveClock(10 * MINUTE)
  expect(await asked(timed.drain)).toBe(1)
  isBroken = false
  timed.moveClock(20 * MINUTE)
  expect(await asked(timed.drain)).toBe(20)
})
