import { expect, test } from 'vitest'
import { virtualClock } from '../api/virtual-clock.ts'
import { refused, startScriptedApi, v1Page } from '../support/scripted-api.ts'
import { startTrial } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const SECOND = 1000

test('slow passes over a list are made so rarely that they take a twentieth of the time', async () => {
  const api = await startScriptedApi()
  const clock = virtualClock(Date.now())
  const headers = () => ({ date: new Date(clock.now()).toUTCString() })
  // A pass takes 27 s. At this scale its interval would be 22 s, so it would be due again at once.
  api.on('/v1/collections', async ({ query: { cursor } }) => {
    if (api.requests.length > 20) return refused(400)
    await clock.advance(9 * SECOND)
    return {
      ...v1Page([{ id: cursor ?? 'a' }], cursor === 'c' ? null : cursor === undefined ? 'b' : 'c'),
      headers: headers(),
    }
  })
  const trial = await startTrial(api)
  const start = () => startTimed(api, trial, ['collections'], { clock, intervalScale: 0.001 })
  const { drain } = await start()
  await drain()
  expect(api.asked('/v1/collections')).toHaveLength(3)
  await clock.advance(500 * SECOND)
  await drain()
  expect(api.asked('/v1/collections')).toHaveLength(3)
  // The next process knows the duration.
  const next = await start()
  await next.drain()
  expect(api.asked('/v1/collections')).toHaveLength(3)
  await clock.advance(60 * SECOND)
  await next.drain()
  expect(api.asked('/v1/collections')).toHaveLength(6)
})

test('an outage in the middle of a pass does not count as its duration', async () => {
  const api = await startScriptedApi()
  const clock = virtualClock(Date.now())
  const headers = () => ({ date: new Date(clock.now()).toUTCString() })
  const trial = await startTrial(api)
  const timed = await startTimed(api, trial, ['collections'], { clock })
  api.on('/v1/collections', ({ query: { cursor } }) => ({
    ...v1Page([{ id: cursor ?? 'a' }], cursor === undefined ? 'b' : null),
    headers: headers(),
  }))
  await (await timed.ask('collections.list')).apply()
  await clock.advance(8 * 3600 * SECOND)
  await timed.drain()
  const [passMs] = trial.column("SELECT pass_ms FROM sync_segments WHERE feed = 'collections.list'")
  expect(passMs).toBeLessThanOrEqual(61 * SECOND)
  expect(trial.column('SELECT id FROM live_collections ORDER BY id')).toEqual(['a', 'b'])
})

test('between two such passes, the newest end of a list of keys is read as long as it brings news', async () => {
  const api = await startScriptedApi()
  const clock = virtualClock(Date.now())
  let ids = ['f', 'e', 'd', 'c', 'b', 'a']
  let pageMs = 9 * SECOND
  const headers = () => ({ date: new Date(clock.now()).toUTCString() })
  // Two rows on a page, newest first.
  api.on('/v1/playbooks', async ({ query: { cursor = '0' } }) => {
    if (api.requests.length > 100) return refused(400)
    await clock.advance(pageMs)
    const [from, to] = [Number(cursor), Number(cursor) + 2]
    const page = v1Page(
      ids.slice(from, to).map(id => ({ id })),
      to < ids.length ? String(to) : null,
    )
    return { ...page, headers: headers() }
  })
  api.on('/v1/playbooks/{id}', ({ params: [id] }) => ({
    body: { data: { id, talk_points: [] } },
    headers: headers(),
  }))
  api.on('/v1/playbooks/{id}/execution-setting', () => ({ body: { data: {} }, headers: headers() }))
  const trial = await startTrial(api)
  const { drain } = await startTimed(api, trial, ['playbooks'], { clock, intervalScale: 0.001 })
  await drain()
  const cursors = (from: number) =>
    api
      .asked('/v1/playbooks')
      .slice(from)
      .map(({ query }) => query['cursor'])
  const passed = cursors(0).length
  pageMs = 1
  const look = async () => {
    const before = cursors(0).length
    await clock.advance(30 * SECOND)
    await drain()
    return cursors(before)
  }
  expect(passed).toBeGreaterThan(2)
  expect(await look()).toEqual([undefined])

  ids = ['i', 'h', 'g', ...ids]
  expect(await look()).toEqual([undefined, '2', '4'])
  expect(trial.column('SELECT id FROM live_playbooks ORDER BY id')).toEqual([...ids].sort())
  expect(await look()).toEqual([undefined])
})
