import { expect, test } from 'vitest'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import { itemsOf } from '../../src/catalog/feeds.ts'
import { tryAgain } from '../../src/engine/due/retries.ts'
import { createItems } from '../../src/engine/modes/items/items.ts'
import { startScriptedApi, v1Page } from '../support/scripted-api.ts'
import { startTrial } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const DAY = 86_400_000

test('a key that a webhook names is read before others that are due', async () => {
  const ids = ['first', 'second', 'third']
  const api = await startScriptedApi()
  api.on('/v1/meetings', () => v1Page(ids.map(meeting_id => ({ meeting_id }))))
  api.on('/v1/meetings/{id}', ({ params }) => ({ body: { data: { meeting_id: params[0] } } }))
  const trial = await startTrial(api)
  await trial.run(['meetings'])
  const timed = await startTimed(api, trial, ['meetings'])
  timed.passTime(DAY)
  const before = api.asked('/v1/meetings/{id}').length
  const { store, urgent, now } = timed.context
  await store.transaction(() => {
    for (const key of ids) store.tasks.demand({ feed: 'meetings.detail', scope: '', key, dueAt: now() })
  })
  urgent.inLane('head', () => urgent.add('meetings.detail', 'second'))
  await timed.drain()
  const asked = api.asked('/v1/meetings/{id}').slice(before)
  expect(asked).toHaveLength(3)
  expect(asked[0]?.params).toEqual(['second'])
})

test('a key that a webhook names and whose request fails is still read before others', async () => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  const { context, passTime } = await startTimed(api, trial, ['meetings'])
  const { store, urgent, now } = context
  await store.transaction(() => {
    for (const key of ['first', 'second']) store.tasks.demand({ feed: 'meetings.detail', key, dueAt: now() })
  })
  const [detail] = itemsOf(resourceNamed('meetings'))
  if (!detail) throw new Error('meetings have no detail')
  const [head] = createItems(context, detail, resourceNamed('meetings'))
  urgent.inLane('head', () => urgent.add(detail.id, 'second'))
  const asked = () => head?.next()?.request.path
  const failed = head?.next()
  await store.transaction(() => failed?.reads && tryAgain(context, failed.reads, 10_000))
  failed?.over(true)
  expect([failed?.request.path, asked()]).toEqual(['/v1/meetings/second', undefined])
  passTime(10_000)
  expect(asked()).toBe('/v1/meetings/second')
})
