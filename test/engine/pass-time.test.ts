import { expect, test } from 'vitest'
import { virtualClock } from '../api/virtual-clock.ts'
import { startScriptedApi, v1Page } from '../support/scripted-api.ts'
import { startTrial } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const SECOND = 1000

test('a list whose passes take long is read as rarely as keeps them to a twentieth of the time', async () => {
  const api = await startScriptedApi()
  const clock = virtualClock(Date.now())
  const headers = () => ({ date: new Date(clock.now()).toUTCString() })
  // A pass takes 27 s; at this scale it would be made each 22 s.
  api.on('/v1/collections', async ({ query: { cursor } }) => {
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
  // What was measured is there for the next process.
  const next = await start()
  await next.drain()
  expect(api.asked('/v1/collections')).toHaveLength(3)
  await clock.advance(60 * SECOND)
  await next.drain()
  expect(api.asked('/v1/collections')).toHaveLength(6)
})
