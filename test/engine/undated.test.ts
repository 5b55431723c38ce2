import { describe, expect, test } from 'vitest'
import { refused, startScriptedApi, v2Page } from '../support/scripted-api.ts'
import { minutesBack, startTrial, uuid } from './trial-backfill.ts'

const activity = (number: number, occurred_at = minutesBack(number)) => ({
  id: uuid(number),
  type: 'call',
  source_type: 'MEETING',
  source_id: `source ${number}`,
  occurred_at,
  created_via: null,
  actor: null,
  links: [],
})

describe('a row whose time cannot be read', () => {
  const live = 'SELECT id FROM live_activities ORDER BY id'

  test('the deletion of such a row is found, and the row is not requested while the list shows it', async () => {
    const api = await startScriptedApi()
    let listed = [activity(1), activity(2, 'last Tuesday'), activity(3, 'soon'), activity(4)]
    // Two pages, so that the rows of the first are known when the last one ends.
    api.on('/v2/activities', ({ query: { cursor } }) =>
      cursor === undefined ? v2Page(listed.slice(0, -1), 'rest') : v2Page(listed.slice(-1)),
    )
    api.on('/v2/activities/{id}', () => refused(404))
    const trial = await startTrial(api)
    for (let times = 0; times < 2; times += 1) expect((await trial.run(['activities'])).complete).toBe(true)
    expect(trial.column(live)).toEqual([1, 2, 3, 4].map(uuid))
    expect(api.asked('/v2/activities/{id}')).toEqual([])

    listed = [activity(1), activity(3, 'soon'), activity(4)]
    for (let times = 0; times < 2; times += 1) expect((await trial.run(['activities'])).complete).toBe(true)
    expect(api.asked('/v2/activities/{id}').map(({ params: [id] }) => id)).toEqual([uuid(2)])
    expect(trial.column(live)).toEqual([1, 3, 4].map(uuid))
  })
})
