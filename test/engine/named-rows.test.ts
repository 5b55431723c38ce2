import { describe, expect, test } from 'vitest'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import { recordOutcome } from '../../src/engine/run/round-end.ts'
import { refused, startScriptedApi, v1Page, v2Page } from '../support/scripted-api.ts'
import { message, minutesBack, startTrial, stateOf, type Trial, uuid } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

const MINUTE = 60_000
const DAY = 1440 * MINUTE
const MEETING = uuid(1)

const activity = {
  id: uuid(2),
  source_type: 'MEETING',
  source_id: MEETING,
  occurred_at: '2026-01-01T00:00:00Z',
}

/** A workspace with one meeting, which its list, an activity and a collection may name. It counts days. */
async function startNamed() {
  const api = await startScriptedApi()
  const world = { isListed: false, isNamed: false, isCollected: false, isThere: false }
  api.on('/v2/activities', () => v2Page(world.isNamed ? [activity] : []))
  api.on('/v2/activities/{id}', () => (world.isNamed ? { body: { data: activity } } : refused(404)))
  api.on('/v1/collections', () => v1Page([{ id: 'c' }]))
  api.on('/v1/meetings', ({ query }) => {
    const shows = query['collection_id'] === undefined ? world.isListed : world.isCollected
    return v1Page(shows ? [{ meeting_id: MEETING }] : [])
  })
  api.on('/v1/meetings/{id}', () =>
    world.isThere ? { body: { data: { meeting_id: MEETING, overview_status: 'COMPLETED' } } } : refused(404),
  )
  api.on('/v1/meetings/{id}/playbook-results', () => refused(404))
  const trial = await startTrial(api)
  const chosen = ['activities', 'collections', 'meetings', 'collection_meetings', 'playbook_results'] as const
  const timed = await startTimed(api, trial, chosen)
  let day = 0
  const asked = () => api.asked('/v1/meetings/{id}').length
  /** On which days of the next ones the meeting was requested. */
  const daysAsked = async (days: number) => {
    const found: number[] = []
    for (const end = day + days; day < end; ) {
      day += 1
      const before = asked()
      timed.passTime(DAY)
      await trial.store.transaction(() => timed.readAgain('activities'))
      await timed.drain()
      for (const name of ['activities', 'meetings'] as const) await timed.settle(name)
      if (asked() > before) found.push(day)
    }
    return found
  }
  /** Stores the meeting, and deletes it. The days are counted from its deletion. */
  const deleteMeeting = async () => {
    world.isThere = true
    world.isListed = true
    await timed.drain()
    world.isThere = false
    world.isListed = false
    while (trial.column('SELECT id FROM live_meetings').length > 0) await daysAsked(1)
    day = 0
  }
  const tasks = () => trial.column("SELECT count(*) FROM sync_tasks WHERE feed = 'meetings.detail'")[0]
  const nudge = () =>
    trial.store.transaction(() => {
      const { dueClock, tasks } = trial.store
      const times = { dueAt: dueClock.after(0), deadline: dueClock.after(7 * DAY) }
      tasks.demand({ feed: 'meetings.detail', key: MEETING, ...times })
    })
  return { world, trial, timed, daysAsked, deleteMeeting, tasks, nudge }
}

describe('a meeting that was never there', () => {
  test('a meeting that a webhook has named is requested for a week, and then forgotten', async () => {
    const { daysAsked, nudge, tasks } = await startNamed()
    await nudge()
    expect(await daysAsked(60)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(tasks()).toBe(0)
  })

  test('a meeting that a list names is requested for as long as it does, ever more rarely', async () => {
    const { world, daysAsked, tasks } = await startNamed()
    world.isListed = true
    expect(await daysAsked(100)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 23, 38, 67, 97])
    world.isListed = false
    await daysAsked(30)
    expect(tasks()).toBe(0)
  })

  test('a meeting that an activity names is requested until the activity is deleted', async () => {
    const { world, daysAsked, tasks } = await startNamed()
    world.isNamed = true
    expect(await daysAsked(40)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 15, 23, 38])
    world.isNamed = false
    await daysAsked(50)
    expect(tasks()).toBe(0)
  })
})

test.each([
  ['is there', [MEETING]],
  ['is not there', []],
])(
  'meetings are not complete before the second answer of a listed one that answers 404, and then it %s',
  async (then, live) => {
    const { world, trial, timed } = await startNamed()
    const isComplete = async () => {
      await timed.drain()
      await trial.store.transaction(() => {
        for (const name of ['activities', 'collections', 'meetings'] as const)
          recordOutcome(timed.context, resourceNamed(name), true)
      })
      return trial.column("SELECT complete_as_of FROM sync_status WHERE resource = 'meetings'").at(0) !== null
    }
    world.isListed = true
    expect(await isComplete()).toBe(false)
    world.isThere = then === 'is there'
    timed.passTime(2 * MINUTE)
    expect(await isComplete()).toBe(true)
    expect(trial.column('SELECT id FROM live_meetings')).toEqual(live)
  },
)

describe('a meeting that answers 404 to a daemon', () => {
  const startRead = async () => {
    const named = await startNamed()
    const { trial, timed } = named
    /** Lets time pass, then reads everything due. Returns how many meetings could not be stored. */
    const rejectedAfter = async (ms: number) => {
      timed.passTime(ms)
      await timed.drain()
      return trial.column('SELECT count(*) FROM sync_rejects WHERE resolved_at IS NULL')[0]
    }
    const listAgain = () => trial.store.transaction(() => timed.readAgain('meetings'))
    return { ...named, rejectedAfter, listAgain }
  }

  test('a meeting that a list names counts as rejected from the second 404 on, until it is stored', async () => {
    const { world, rejectedAfter } = await startRead()
    world.isListed = true
    expect([await rejectedAfter(0), await rejectedAfter(2 * MINUTE), await rejectedAfter(DAY)]).toEqual([
      0, 1, 1,
    ])
    world.isThere = true
    expect(await rejectedAfter(2 * DAY)).toBe(0)
  })

  test.each(['an activity', 'a webhook'])(
    'a meeting that only %s names does not count as rejected',
    async by => {
      const { world, rejectedAfter, nudge } = await startRead()
      if (by === 'a webhook') await nudge()
      else world.isNamed = true
      expect([await rejectedAfter(0), await rejectedAfter(2 * MINUTE), await rejectedAfter(DAY)]).toEqual([
        0, 0, 0,
      ])
    },
  )

  test('a stored meeting counts as rejected once its list shows it after a 404, until it answers', async () => {
    const { trial, world, rejectedAfter, listAgain } = await startRead()
    Object.assign(world, { isListed: true, isThere: true })
    await rejectedAfter(0)
    world.isThere = false
    expect([await rejectedAfter(7 * DAY), await rejectedAfter(2 * MINUTE)]).toEqual([0, 0])
    await listAgain()
    expect([await rejectedAfter(0), await rejectedAfter(2 * MINUTE), await rejectedAfter(DAY)]).toEqual([
      1, 1, 1,
    ])
    expect(trial.column('SELECT count(*) FROM live_meetings')).toEqual([1])
    world.isThere = true
    await listAgain()
    expect(await rejectedAfter(0)).toBe(0)
  })

  test('a stored meeting that is deleted does not count as rejected', async () => {
    const { trial, timed, world, nudge, rejectedAfter, listAgain } = await startRead()
    Object.assign(world, { isListed: true, isThere: true })
    await rejectedAfter(0)
    world.isThere = false
    await nudge()
    expect([await rejectedAfter(0), await rejectedAfter(2 * MINUTE)]).toEqual([0, 0])
    world.isListed = false
    await listAgain()
    expect([
      await rejectedAfter(0),
      await rejectedAfter(3 * MINUTE),
      await rejectedAfter(3 * MINUTE),
    ]).toEqual([0, 0, 0])
    await timed.settle('meetings')
    expect(trial.column('SELECT count(*) FROM live_meetings')).toEqual([0])
  })
})

test('the standard objects that a workspace does not have are not requested again soon, as no list names them', async () => {
  const api = await startScriptedApi()
  api.on('/v2/objects', () => ({ body: { data: [] } }))
  api.on('/v2/objects/{object}', () => refused(404))
  const timed = await startTimed(api, await startTrial(api), ['crm_objects'])
  await timed.drain()
  timed.passTime(2 * MINUTE)
  await timed.drain()
  const asked = api.asked('/v2/objects/{object}').map(({ params }) => params[0])
  expect(asked.sort()).toEqual(['company', 'contact'])
})

test('nothing waits for the standard objects that no list names, though a deal refers to one', async () => {
  const api = await startScriptedApi()
  const relation = { type: 'MANY_TO_ONE', target_object: 'company' }
  let names = ['deal']
  api.on('/v2/objects', () => ({ body: { data: names.map(name => ({ name })) } }))
  api.on('/v2/objects/{object}', ({ params: [name] }) =>
    name === 'deal' ? { body: { name, fields: [{ name: 'company_id', relation }] } } : refused(404),
  )
  const stateAfterRun = async (trial: Trial) => {
    expect((await trial.run(['crm_objects'])).complete).toBe(true)
    return stateOf(trial, 'crm_objects')
  }
  const trial = await startTrial(api)
  for (let run = 0; run < 3; run += 1) expect(await stateAfterRun(trial)).toBe('ok')
  names = ['deal', 'company']
  expect(await stateAfterRun(await startTrial(api))).toBe('waiting')
})

describe('a deleted meeting', () => {
  test('a meeting that nothing names is requested a day, a week and a month after its deletion', async () => {
    const { daysAsked, deleteMeeting, tasks } = await startNamed()
    await deleteMeeting()
    expect(await daysAsked(100)).toEqual([1, 8, 38])
    expect(tasks()).toBe(0)
  })

  test('a meeting that an activity names is requested every week, and is live again once it answers', async () => {
    const { world, trial, daysAsked, deleteMeeting } = await startNamed()
    world.isNamed = true
    await deleteMeeting()
    expect(await daysAsked(40)).toEqual([1, 8, 15, 22, 29, 36])
    world.isThere = true
    await daysAsked(7)
    expect(trial.column('SELECT id FROM live_meetings')).toEqual([MEETING])
  })

  test('a meeting that a list or a collection names again is requested once a day until it answers', async () => {
    const { world, trial, daysAsked, deleteMeeting } = await startNamed()
    await deleteMeeting()
    await daysAsked(2)
    world.isListed = true
    expect(await daysAsked(3)).toEqual([3, 4, 5])
    world.isListed = false
    world.isCollected = true
    expect(await daysAsked(3)).toEqual([6, 7, 8])
    world.isThere = true
    await daysAsked(1)
    expect(trial.column('SELECT id FROM live_meetings')).toEqual([MEETING])
  })
})

test('the results of a meeting that a webhook has named are forgotten with the meeting', async () => {
  const { trial, timed, daysAsked, nudge } = await startNamed()
  const { dueClock, tasks } = trial.store
  const times = { dueAt: dueClock.after(0), deadline: dueClock.after(7 * DAY) }
  await nudge()
  await trial.store.transaction(() => tasks.demand({ feed: 'playbook_results.read', key: MEETING, ...times }))
  timed.passTime(DAY)
  await daysAsked(40)
  expect(trial.column('SELECT feed FROM sync_tasks')).toEqual([])
})

test('an e-mail that is stored because an activity names it counts as one that appeared late, once', async () => {
  const api = await startScriptedApi()
  let isThere = false
  const named = { id: uuid(2), source_type: 'MESSAGE', source_id: uuid(1), occurred_at: minutesBack(1) }
  api.on('/v2/activities', () => v2Page(isThere ? [named] : []))
  api.on('/v2/messages', ({ query: { ids } }) => v2Page(ids === undefined ? [] : [message(1)]))
  const trial = await startTrial(api)
  const timed = await startTimed(api, trial, ['activities', 'messages'])
  await timed.drain()
  await trial.store.transaction(() => {
    for (const name of ['activities', 'messages'] as const)
      recordOutcome(timed.context, resourceNamed(name), true)
  })
  isThere = true
  for (let day = 0; day < 3; day += 1) {
    timed.passTime(DAY)
    await trial.store.transaction(() => timed.readAgain('activities'))
    await timed.drain()
  }
  expect(trial.column('SELECT id FROM live_message_copies')).toEqual([uuid(1)])
  expect(trial.all('SELECT resource, rows FROM sync_arrivals')).toEqual([
    { resource: 'activities', rows: 1 },
    { resource: 'messages', rows: 1 },
  ])
})

test('in the first run an e-mail that only an activity names has not appeared late', async () => {
  const api = await startScriptedApi()
  const at = minutesBack(400 * 24 * 60)
  const named = { id: uuid(2), source_type: 'MESSAGE', source_id: uuid(1), occurred_at: at }
  api.on('/v2/activities', () => v2Page([named]))
  api.on('/v2/messages', ({ query: { ids } }) =>
    v2Page(ids === undefined ? [] : [message(1, { received_at: at })]),
  )
  const trial = await startTrial(api)
  await trial.run(['activities', 'messages'])
  expect(trial.column('SELECT id FROM live_message_copies')).toEqual([uuid(1)])
  expect(trial.column('SELECT rows FROM sync_arrivals')).toEqual([])
})

test('an e-mail that only an activity names is requested ever more rarely, until the activity is deleted', async () => {
  const api = await startScriptedApi()
  const named = {
    id: uuid(2),
    source_type: 'MESSAGE',
    source_id: uuid(1),
    occurred_at: '2026-01-01T00:00:00Z',
  }
  let activities = [named]
  api.on('/v2/activities', () => v2Page(activities))
  api.on('/v2/activities/{id}', () => refused(404))
  api.on('/v2/messages', () => v2Page([]))
  const trial = await startTrial(api)
  const timed = await startTimed(api, trial, ['activities', 'messages'])
  const asked = () => api.asked('/v2/messages').filter(({ query }) => query['ids'] !== undefined).length
  const daysAsked = async (days: number) => {
    const found: number[] = []
    for (let day = 1; day <= days; day += 1) {
      const before = asked()
      timed.passTime(DAY)
      await trial.store.transaction(() => timed.readAgain('activities'))
      await timed.drain()
      await timed.settle('activities')
      if (asked() > before) found.push(day)
    }
    return found
  }
  expect(await daysAsked(70)).toEqual([1, 2, 4, 8, 16, 32, 62])
  activities = []
  await daysAsked(3)
  expect(trial.column("SELECT key FROM sync_tasks WHERE feed = 'messages.list.lookup'")).toEqual([])
})
