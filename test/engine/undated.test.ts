import { describe, expect, test } from 'vitest'
import { refused, startScriptedApi, v2Page } from '../support/scripted-api.ts'
import { minutesBack, startTrial, uuid } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

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

const live = 'SELECT id FROM live_activities ORDER BY id'
const DAY = 86_400_000

describe('a row whose time cannot be read', () => {
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

test('nothing is due for rows without a time once the last one of them is deleted', async () => {
  const api = await startScriptedApi()
  let listed = [activity(1), activity(2, 'last Tuesday')]
  api.on('/v2/activities', () => v2Page(listed))
  api.on('/v2/activities/{id}', () => refused(404))
  const trial = await startTrial(api)
  const walks = () => trial.column("SELECT key FROM sync_tasks WHERE feed = 'activities.list.walk'")
  await trial.run(['activities'])
  expect(walks()).toHaveLength(1)
  listed = [activity(1)]
  for (let times = 0; times < 2; times += 1) await trial.run(['activities'])
  expect(trial.column(live)).toEqual([uuid(1)])
  expect(walks()).toEqual([])
})

describe('a row without a time that appears later', () => {
  test('such a row is found within 30 days, and lists are read within their bounds meanwhile', async () => {
    const api = await startScriptedApi()
    // So many that the newest ones are polled apart from the others.
    const dated = Array.from({ length: 80 }, (_, number) => activity(100 + number))
    const listed = [...dated, activity(2, 'last Tuesday')]
    api.on('/v2/activities', ({ query }) => {
      const isBounded = query['occurred_from'] !== undefined || query['occurred_to'] !== undefined
      return v2Page(listed.filter(({ occurred_at }) => !isBounded || occurred_at.startsWith('2026')))
    })
    api.on('/v2/activities/{id}', ({ params: [id] }) => {
      const row = listed.find(one => one.id === id)
      return row ? { body: row } : refused(404)
    })
    const trial = await startTrial(api)
    const resources = ['activities'] as const
    await (await startTimed(api, trial, resources)).drain()
    const unbounded = () => api.asked('/v2/activities').filter(({ query }) => !query['occurred_to']).length
    const week = async () => {
      const { drain, passTime } = await startTimed(api, trial, resources)
      const before = unbounded()
      passTime(7 * DAY)
      await drain()
      return unbounded() - before
    }
    listed.push(activity(4, 'soon'))
    expect([await week(), await week(), await week(), await week()]).toEqual([0, 0, 0, 0])
    expect(trial.column(live)).not.toContain(uuid(4))
    expect(await week()).toBe(1)
    expect(trial.column(live)).toContain(uuid(4))
  })
})
