import { expect, test } from 'vitest'
import { startScriptedApi, v2Page } from '../support/scripted-api.ts'
import { message, startTrial } from './trial-backfill.ts'

const HOUR = 3_600_000
const DAYS = 40 * 24 * HOUR

test('reads that a backfill postponed while the clock was ahead are made when they are due by the right clock', async () => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  const received_at = new Date(trial.clock.now() - HOUR).toISOString()
  const listed = message(1, { received_at })
  let text: string | null = null
  api.on('/v2/messages', () => v2Page([listed]))
  api.on('/v2/messages/{id}', () => ({ body: { ...listed, text } }))
  trial.moveClock(DAYS)
  await trial.run(['messages', 'message_bodies'])
  const asked = () => api.requests.filter(({ path }) => path.startsWith('/v2/messages/')).length
  expect(asked()).toBe(1)

  text = 'Now there is a text'
  trial.moveClock(-DAYS)
  await trial.run(['messages', 'message_bodies'])
  trial.passTime(31 * 24 * HOUR)
  await trial.run(['messages', 'message_bodies'])
  expect(asked()).toBe(2)
  expect(trial.column('SELECT text_state FROM live_messages')).toEqual(['present'])
})
