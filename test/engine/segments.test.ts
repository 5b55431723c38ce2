import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { wantList } from '../../src/engine/due/wants.ts'
import { runs } from '../support/effort.ts'
import { type ScriptedApi, type ScriptedRequest, startScriptedApi } from '../support/scripted-api.ts'
import { type ScriptedList, scriptedList } from '../support/scripted-lists.ts'
import { type MadeMessage, message, minutesBack, startTrial, type Trial, uuid } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const MESSAGES = { time: 'received_at', from: 'received_from', to: 'received_to' } as const
const PAGE = 4

/** An API that answers slowly, so that requests overlap. */
interface SlowList {
  api: ScriptedApi
  list: ScriptedList<MadeMessage>
  /** The most requests in flight at one time. */
  most(): number
  pages(from?: number): ScriptedRequest[]
}

const TURNS = 30

async function startSlowList(rows: readonly MadeMessage[], pageSize = PAGE): Promise<SlowList> {
  const api = await startScriptedApi()
  const list = scriptedList({ ...MESSAGES, rows, pageSize })
  let inFlight = 0
  let most = 0
  api.on('/v2/messages', async request => {
    if (request.query['ids'] !== undefined) return list.handler(request)
    inFlight += 1
    most = Math.max(most, inFlight)
    for (let left = TURNS; left > 0; left -= 1) await turn()
    inFlight -= 1
    return list.handler(request)
  })
  return {
    api,
    list,
    most: () => most,
    pages: (from = 0) => api.requests.slice(from).filter(({ query }) => query['ids'] === undefined),
  }
}

const messages = (count: number, minutes = (number: number) => number): MadeMessage[] =>
  Array.from({ length: count }, (_, number) => message(number, { received_at: minutesBack(minutes(number)) }))

const stored = (trial: Trial) => trial.column('SELECT id FROM live_message_copies ORDER BY 1')
const idsOf = (rows: readonly MadeMessage[]) => rows.map(({ id }) => id).sort()

const segmentsOf = ({ store }: Trial) => store.segments.of('messages.list', '')

function expectTiled(trial: Trial): void {
  const all = segmentsOf(trial)
  expect(all[0]?.to).toBe(null)
  expect(all.at(-1)?.from).toBe(null)
  expect(all.slice(1).map(({ to }) => to)).toEqual(all.slice(0, -1).map(({ from }) => from))
}

describe('a long history', () => {
  const DENSITIES: [string, number, (number: number) => number][] = [
    ['evenly', 8, number => number],
    ['ever more thinly into the past', 8, number => number + (number / 100) ** 3],
    ['ever more densely into the past', 8, number => Math.sqrt(number) * 50],
    ['in two parts with years between them', 8, number => (number < 400 ? number : number + 1_000_000)],
    // The rows so far give no hint of the density. Still few extra requests are made.
    ['at ten instants', 24, number => Math.floor(number / 80) * 5000],
  ]

  test.each(DENSITIES)(
    'a history that is spread %s is read in several segments at a time, with few extra requests',
    async (_, more, at) => {
      const rows = messages(800, at)
      const { api, most, pages } = await startSlowList(rows)
      const trial = await startTrial(api)
      expect((await trial.run(['messages'])).complete).toBe(true)
      expect(stored(trial)).toEqual(idsOf(rows))
      expect(most()).toBeGreaterThan(2)
      expect(pages().length).toBeLessThanOrEqual(800 / PAGE + more)
      expectTiled(trial)
      expect(segmentsOf(trial).every(({ listedRound }) => listedRound === 1)).toBe(true)
    },
  )

  test('the segments cost no extra request when only one may be in flight', async () => {
    const { api, pages } = await startSlowList(messages(400))
    const trial = await startTrial(api)
    await trial.run(['messages'], { concurrency: 1 })
    expect(pages()).toHaveLength(400 / PAGE)
    expect(segmentsOf(trial)).toHaveLength(1)
  })

  test('a shorter history is read as one segment, whatever the API allows', async () => {
    const { api, pages } = await startSlowList(messages(20 * PAGE))
    const trial = await startTrial(api)
    await trial.run(['messages'])
    expect(pages()).toHaveLength(20)
    expect(segmentsOf(trial)).toHaveLength(1)
  })

  test('an interrupted pass continues in each segment, and repeats at most one page of each', async () => {
    const rows = messages(800)
    const { api, pages } = await startSlowList(rows)
    const trial = await startTrial(api)
    const ending = new AbortController()
    const stop = { signal: ending.signal }
    trial.store.db.function('stop_here', () => {
      ending.abort()
      return 0
    })
    trial.store.db.exec(`CREATE TEMP TRIGGER stopping AFTER INSERT ON message_copies
      WHEN (SELECT count(*) FROM message_copies) = 480 BEGIN SELECT stop_here(); END`)
    await expect(trial.run(['messages'], stop)).resolves.toMatchObject({ complete: false })
    trial.store.db.exec('DROP TRIGGER stopping')
    const parts = segmentsOf(trial)
    expect(parts.filter(({ cursor }) => cursor !== null).length).toBeGreaterThan(2)
    expectTiled(trial)
    const before = pages().length
    expect((await trial.run(['messages'])).complete).toBe(true)
    expect(stored(trial)).toEqual(idsOf(rows))
    expect(pages().length).toBeLessThanOrEqual(800 / PAGE + 8 + parts.length)
    const wereUnderWay = parts.flatMap(({ cursor }) => (cursor === null ? [] : [cursor['cursor']]))
    const goneOn = pages(before).map(({ query }) => query['cursor'])
    expect(goneOn).toEqual(expect.arrayContaining(wereUnderWay))
  })

  test('a history whose cursors are refused in the middle is read to its end', async () => {
    const rows = messages(600)
    const { api, list, pages } = await startSlowList(rows)
    const trial = await startTrial(api)
    trial.store.db.function('expire', () => {
      list.expireCursors()
      return 0
    })
    trial.store.db.exec(`CREATE TEMP TRIGGER expiring AFTER INSERT ON message_copies
      WHEN (SELECT count(*) FROM message_copies) = 300 BEGIN SELECT expire(); END`)
    expect((await trial.run(['messages'])).complete).toBe(true)
    expect(stored(trial)).toEqual(idsOf(rows))
    expect(pages().length).toBeLessThan(600 / PAGE + 30)
    expectTiled(trial)
  })
})

describe('rows that are missing from a history of several segments', () => {
  test('a deleted row is found in any segment, and no other row is requested', async () => {
    const at = fc.integer({ min: 0, max: 250 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(at, { minLength: 120, maxLength: 200 }),
        fc.uniqueArray(fc.nat(119), { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1, max: 5 }),
        async (minutes, gone, pageSize) => {
          // Several rows at each instant where a segment is cut.
          const rows = minutes.map((minute, number) =>
            message(number, { received_at: minutesBack(minute * 7).replace('.000', '.617') }),
          )
          const { api, list } = await startSlowList(rows, pageSize)
          const trial = await startTrial(api)
          await trial.run(['messages'])
          expect(stored(trial)).toEqual(idsOf(rows))
          const keys = new Set(gone.map(uuid))
          list.rows = list.rows.filter(({ id }) => !keys.has(id))
          expect((await trial.run(['messages'])).complete).toBe(true)
          expect(stored(trial)).toEqual(idsOf(list.rows))
          const probed = new Set(api.requests.flatMap(({ query }) => query['ids']?.split(',') ?? []))
          expect([...probed].sort()).toEqual([...keys].sort())
          expectTiled(trial)
        },
      ),
      { numRuns: runs(6), endOnFailure: true },
    )
  })
})

describe('segments in the daemon', () => {
  test('a first long history is read in several segments at a time', async () => {
    const { api } = await startSlowList(messages(400))
    const trial = await startTrial(api)
    const timed = await startTimed(api, trial, ['messages'])
    for (let page = 0; page < 20; page += 1) {
      const asked = await timed.ask('messages.list')
      timed.share()
      await asked.apply()
    }
    const both = await Promise.all([timed.ask('messages.list'), timed.ask('messages.list')])
    for (const asked of both) await asked.apply()
    await timed.drain()
    expect(stored(trial)).toHaveLength(400)
    expectTiled(trial)
  })

  test('a repeated listing is read as one segment', async () => {
    const rows = messages(200, number => number * 3000)
    const { api } = await startSlowList(rows)
    const trial = await startTrial(api)
    const timed = await startTimed(api, trial, ['messages'])
    await timed.drain()
    const before = segmentsOf(trial).length
    timed.readAgain('messages')
    let most = 0
    for (let page = 0; page < 40; page += 1) {
      const asked = await timed.ask('messages.list')
      timed.share()
      await asked.apply()
      most = Math.max(most, segmentsOf(trial).length)
    }
    expect(most).toBeLessThanOrEqual(before)
  })
})

describe('the newest end of a timeline', () => {
  test('only the newest segment of a timeline that is wanted is read, also by the next session', async () => {
    const { api, pages } = await startSlowList(messages(200, number => number * 3000))
    const trial = await startTrial(api)
    const first = await startTimed(api, trial, ['messages'])
    await first.drain()
    wantList(first.context, 'messages.list')
    const [before, newest] = [api.requests.length, segmentsOf(trial)[0]?.from]
    await (await startTimed(api, trial, ['messages'])).drain()
    expect([...new Set(pages(before).map(({ query }) => query['received_from']))]).toEqual([newest])
  })

  test('each poll reads one page, also when more rows than a page share an instant', async () => {
    const older = messages(120).map(row => ({
      ...row,
      id: uuid(1000 + Number(row.id.slice(-12))),
      received_at: minutesBack(9000),
    }))
    const rows = [...messages(150, () => 600), ...older]
    const { api, list, pages } = await startSlowList(rows, 100)
    const trial = await startTrial(api)
    const timed = await startTimed(api, trial, ['messages'])
    await timed.drain()
    const poll = async () => {
      const before = api.requests.length
      wantList(timed.context, 'messages.list')
      await timed.drain()
      return pages(before).length
    }
    expect([await poll(), await poll(), await poll()]).toEqual([1, 1, 1])
    expect(stored(trial)).toEqual(idsOf(rows))
    expectTiled(trial)

    list.rows = [
      message(5000, { received_at: minutesBack(1) }),
      ...rows,
      message(5001, { received_at: minutesBack(600) }),
    ]
    expect(await poll()).toBe(1)
    expect(stored(trial)).toContain(uuid(5000))
    timed.moveClock(86_400_000)
    const { segments } = trial.store
    for (const segment of segments.of('messages.list'))
      segments.save({ ...segment, listedAt: '2026-01-01T00:00:00.000Z' })
    await timed.drain()
    expect(stored(trial)).toContain(uuid(5001))
  })

  test('rows that are dated in the future are read every hour, and each poll reads one page', async () => {
    const now = Date.now()
    const hours = (minutes: number) => new Date(now + (180 + 3 * minutes) * 60_000).toISOString()
    const ahead = messages(300).map((row, minutes) => ({ ...row, received_at: hours(minutes) }))
    const past = [400, 401, 402].map(number => message(number, { received_at: minutesBack(number) }))
    const { api, list, pages } = await startSlowList([...ahead, ...past], 100)
    const trial = await startTrial(api)
    const timed = await startTimed(api, trial, ['messages'])
    const pagesOf = async (work: () => unknown) => {
      const before = api.requests.length
      await work()
      await timed.drain()
      expectTiled(trial)
      return pages(before).length
    }
    const poll = () => pagesOf(() => wantList(timed.context, 'messages.list'))
    const hour = () => pagesOf(() => timed.passTime(3_660_000))
    await timed.drain()
    expect([await poll(), await poll()]).toEqual([1, 1])
    list.rows = [message(500, { received_at: hours(100) }), ...list.rows]
    await poll()
    expect(stored(trial)).not.toContain(uuid(500))
    expect(await hour()).toBeGreaterThan(3)
    expect(stored(trial)).toContain(uuid(500))
    for (let passed = 0; passed < 19; passed += 1) {
      await hour()
      expect(await poll()).toBe(1)
    }
    expect(segmentsOf(trial).filter(({ from }) => (from ?? '') > timed.context.now())).toEqual([])
    expect(stored(trial)).toEqual(idsOf(list.rows))
  })
})
