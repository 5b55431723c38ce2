import { expect, test } from 'vitest'
import { CONFIRM_AFTER_MS } from '../../src/engine/deletions/deletion-states.ts'
import { wantList } from '../../src/engine/due/wants.ts'
import { startTrial } from '../engine/trial-backfill.ts'
import { startTimed } from '../engine/trial-timed.ts'
import { refused, startScriptedApi, v1Page, v2Page } from '../support/scripted-api.ts'

const DAY = 86_400_000

test('a list that shows only the key of a meeting does not end the suspicion that its content is withheld', async () => {
  const api = await startScriptedApi()
  let isWithheld = false
  api.on('/v2/activities', () => v2Page([]))
  api.on('/v1/meetings', () => v1Page([{ meeting_id: 'm' }]))
  api.on('/v1/meetings/{id}', () =>
    isWithheld ? refused(403) : { body: { data: { meeting_id: 'm', overview_status: 'COMPLETED' } } },
  )
  const trial = await startTrial(api)
  const chosen = ['activities', 'meetings'] as const
  await trial.run(chosen)
  const timed = await startTimed(api, trial, chosen)
  const access = () => trial.column('SELECT access FROM live_meetings')
  isWithheld = true
  timed.passTime(7 * DAY)
  await timed.drain()
  for (let parts = 0; parts < 3; parts += 1) {
    timed.passTime(CONFIRM_AFTER_MS / 3)
    wantList(timed.context, 'meetings.list')
    await timed.drain()
  }
  await timed.settle('meetings')
  expect(access()).toEqual(['withheld'])
  expect(api.asked('/v1/meetings/{id}')).toHaveLength(3)
})
