import { expect, test } from 'vitest'
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
