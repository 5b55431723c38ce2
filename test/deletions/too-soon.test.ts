import { describe, expect, test } from 'vitest'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { endProbes, probeLater } from '../../src/engine/deletions/probe-later.ts'
import { confirmationMs } from '../../src/engine/deletions/recheck.ts'
import { wantList } from '../../src/engine/due/wants.ts'
import { message, minutesBack, startTrial, uuid } from '../engine/trial-backfill.ts'
import { startTimed } from '../engine/trial-timed.ts'
import { numberedPage, refused, startScriptedApi, v1Page, v2Page } from '../support/scripted-api.ts'

/** Answers that deny a row seconds apart, as those of one replica that lags, are no more than one. */

const SECOND = 1000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE
const WEEK = 7 * DAY

const activity = {
  id: uuid(1),
  type: 'call',
  source_type: 'OBJECT_CHANGE_EVENT',
  source_id: 'x',
  occurred_at: minutesBack(1),
  created_via: null,
  actor: null,
  links: [],
}

/** A workspace with one row of each kind, none of which any answer shows while they are hidden. */
async function startHiding(resource: ResourceName, isThere = true) {
  const api = await startScriptedApi()
  let shown = isThere
  const some = <T>(row: T): T[] => (shown ? [row] : [])
  const single = (body: unknown) => () => (shown ? { body } : refused(404))
  api.on('/v1/members', () => numberedPage(some({ id: 'm', name: 'Aiko' })))
  api.on('/v1/teams', () => numberedPage(some({ id: 't', name: 'East', member_ids: [] })))
  api.on('/v1/teams/{id}', single({ data: { id: 't', name: 'East', member_ids: [] } }))
  api.on('/v1/meetings', () => v1Page(some({ meeting_id: 'x' })))
  api.on('/v1/meetings/{id}', single({ data: { meeting_id: 'x', overview_status: 'COMPLETED' } }))
  api.on('/v2/activities', () => v2Page(some(activity)))
  api.on('/v2/activities/{id}', single(activity))
  api.on('/v2/messages', () => v2Page(some(message(1))))
  const trial = await startTrial(api)
  const chosen: readonly ResourceName[] = resource === 'activities' ? [resource] : ['activities', resource]
  await trial.run(chosen)
  const timed = await startTimed(api, trial, chosen)
  return {
    show: (isShown: boolean) => {
      shown = isShown
    },
    poll: async (afterMs: number) => {
      timed.passTime(afterMs)
      wantList(timed.context, `${resource}.list`)
      await timed.drain()
      await timed.settle(resource)
    },
    live: () => trial.column(`SELECT count(*) FROM live_${resource}`)[0],
    probes: () => trial.column("SELECT count(*) FROM sync_tasks WHERE feed GLOB '*.probe'")[0],
  }
}

const RESOURCES = ['members', 'teams', 'meetings', 'activities', 'messages'] as const

test.each(RESOURCES)(
  '%s: a row is deleted when it is denied again minutes later, and not before',
  async resource => {
    const { show, poll, live } = await startHiding(resource)
    await poll(10 * MINUTE)
    show(false)
    for (const afterMs of [0, 0, 14, 15 * SECOND, 60 * SECOND]) {
      await poll(afterMs)
      expect(live()).toBe(1)
    }
    for (const afterMs of [2 * MINUTE, 3 * MINUTE, 3 * MINUTE]) await poll(afterMs)
    expect(live()).toBe(0)
  },
)

test('a new row is not deleted while other answers do not show it yet', async () => {
  const { show, poll, live } = await startHiding('activities', false)
  show(true)
  await poll(10 * MINUTE)
  expect(live()).toBe(1)
  show(false)
  for (const afterMs of [10 * SECOND, MINUTE, MINUTE, MINUTE, MINUTE]) {
    await poll(afterMs)
    expect(live()).toBe(1)
  }
})

test.each(['teams', 'activities', 'messages'] as const)(
  '%s: a row that its list shows again needs no other request',
  async resource => {
    const { show, poll, live, probes } = await startHiding(resource)
    await poll(10 * MINUTE)
    show(false)
    await poll(0)
    expect(probes()).toBe(1)
    show(true)
    await poll(SECOND)
    expect([live(), probes()]).toEqual([1, 0])
  },
)

test.each(['teams', 'activities'] as const)(
  '%s: an empty answer in place of hundreds of rows makes the list due again before any deletion',
  async resource => {
    const api = await startScriptedApi()
    const teams = Array.from({ length: 600 }, (_, index) => ({ id: `t${index}`, name: 'x', member_ids: [] }))
    const activities = teams.map((_, index) => ({
      ...activity,
      id: uuid(index),
      occurred_at: minutesBack(index),
    }))
    let isEmpty = false
    api.on('/v1/teams', () => numberedPage(isEmpty ? [] : teams))
    api.on('/v2/activities', () => v2Page(isEmpty ? [] : activities))
    const trial = await startTrial(api)
    await trial.run([resource])
    const timed = await startTimed(api, trial, [resource])
    timed.passTime(8 * DAY)
    wantList(timed.context, `${resource}.list`)
    isEmpty = true
    await timed.drain()
    isEmpty = false
    for (const afterMs of [61 * SECOND, 61 * SECOND, 2 * MINUTE]) {
      timed.passTime(afterMs)
      await timed.drain()
    }
    expect(trial.column("SELECT count(*) FROM sync_tasks WHERE feed GLOB '*.probe'")).toEqual([0])
    const lists = ['/v1/teams', '/v2/activities']
    expect(api.requests.filter(({ path }) => !lists.includes(path))).toEqual([])
  },
)

test.each(['teams', 'activities'] as const)(
  '%s: a row that was published before an empty answer is read minutes later',
  async resource => {
    const api = await startScriptedApi()
    const row = (number: number) => ({ ...activity, id: uuid(number), name: 'x', member_ids: [] })
    let rows = [row(1)]
    api.on('/v1/teams', () => numberedPage(rows))
    api.on('/v2/activities', () => v2Page(rows))
    const trial = await startTrial(api)
    await trial.run([resource])
    const timed = await startTimed(api, trial, [resource])
    timed.passTime(8 * DAY)
    wantList(timed.context, `${resource}.list`)
    rows = []
    await timed.drain()
    rows = [row(1), row(2)]
    timed.passTime(61 * SECOND)
    await timed.drain()
    expect(trial.column(`SELECT id FROM live_${resource} ORDER BY 1`)).toEqual([uuid(1), uuid(2)])
  },
)

test('a backfill waits until the confirming read is due, although the clock of the API gains meanwhile', async () => {
  const api = await startScriptedApi()
  let teams = [{ id: 't', name: 'East', member_ids: [] }]
  api.on('/v1/teams', () => numberedPage(teams))
  api.on('/v1/teams/{id}', () => refused(404))
  const trial = await startTrial(api)
  await trial.run(['teams'])
  const timed = await startTimed(api, trial, ['teams'])
  timed.passTime(10 * MINUTE)
  wantList(timed.context, 'teams.list')
  teams = []
  await timed.drain()
  const [dueAt] = trial.column("SELECT due_at FROM sync_tasks WHERE feed = 'teams.list.probe'")
  const { server, clock } = timed.context
  server.observe(server.now() + 900, 0)
  const wait = confirmationMs(timed.context, ['teams'])
  expect(wait).toBeGreaterThanOrEqual(Date.parse(String(dueAt)) - clock.now())
})

test('rows whose deletion is confirmed and held back do not count as newly missed', async () => {
  const api = await startScriptedApi()
  const trial = await startTrial(api)
  const { context } = await startTimed(api, trial, ['messages'])
  const place = {
    resource: 'messages',
    table: 'message_copies',
    probe: 'messages.list.probe',
    scope: '',
  } as const
  const missing = [1, 2, 3].map(number => ({ key: uuid(number), at: null }))
  await trial.store.transaction(() => {
    for (const { key } of missing.slice(1)) {
      const row = { table: place.table, scope: '', key }
      context.store.suspicions.note(row, { since: minutesBack(10), means: 'absent' })
      context.store.suspicions.confirm(row)
    }
    expect(probeLater(context, place, missing)).toBe(1)
  })
})

test('a backfill waits once for an activity that no list shows any more, and still notices its deletion later', async () => {
  const api = await startScriptedApi()
  const other = { ...activity, id: uuid(2) }
  let [listed, isThere] = [[activity, other], true]
  api.on('/v2/activities', () => v2Page(listed))
  api.on('/v2/activities/{id}', () => (isThere ? { body: { ...activity, links: [] } } : refused(404)))
  const trial = await startTrial(api)
  const waits = () => trial.logged().split('Waiting to confirm suspected deletions').length - 1
  await trial.run(['activities'])
  listed = [other]
  await trial.run(['activities'])
  expect(waits()).toBe(1)
  trial.passTime(DAY)
  await trial.run(['activities'])
  expect(waits()).toBe(1)
  isThere = false
  trial.passTime(DAY)
  await trial.run(['activities'])
  expect(trial.column('SELECT id FROM live_activities')).toEqual([other.id])
})

describe('a row that a probe has found although no list shows it', () => {
  const place = {
    resource: 'messages',
    table: 'message_copies',
    probe: 'messages.list.probe',
    scope: '',
  } as const
  const key = uuid(1)

  /** How many rows are suspected by a list that misses the row some days after its probe has found it the n-th time. */
  const suspectedAfter = async (days: number, found: number, { isShown = false } = {}) => {
    const trial = await startTrial(await startScriptedApi())
    const { context } = await startTimed(await startScriptedApi(), trial, ['messages'])
    let count: number | undefined
    await trial.store.transaction(() => {
      const { tasks } = trial.store
      tasks.done({ feed: place.probe, key }, { round: 1, dueAt: context.after(WEEK), attempts: found })
    })
    trial.passTime(days * DAY)
    await trial.store.transaction(() => {
      if (isShown) endProbes(context, place, [key])
      count = probeLater(context, place, [{ key, at: null }])
    })
    return count
  }

  test.each([
    [0.9, 1, 0],
    [1.1, 1, 1],
    [1.9, 2, 0],
    [2.1, 2, 1],
    [6.9, 9, 0],
    [7.1, 9, 1],
  ])(
    '%d days after it was found the %dth time, a list that misses it suspects %d rows',
    async (days, found, rows) => {
      expect(await suspectedAfter(days, found)).toBe(rows)
    },
  )

  test.each([
    [0.9, 1, 0],
    [1.1, 1, 1],
    [3.4, 9, 0],
    [3.6, 9, 1],
  ])(
    '%d days after it was found the %dth time, a list that has shown it since and misses it suspects %d rows',
    async (days, found, rows) => {
      expect(await suspectedAfter(days, found, { isShown: true })).toBe(rows)
    },
  )

  test('a list that misses it suspects it in the next backfill, and only once in each', async () => {
    const api = await startScriptedApi()
    const old = { ...activity, occurred_at: minutesBack(600) }
    let isThere = true
    let listed = [old]
    api.on('/v2/activities', () => v2Page(listed))
    api.on('/v2/activities/{id}', () => (isThere ? { body: old } : refused(404)))
    const trial = await startTrial(api)
    await trial.run(['activities'])
    listed = []
    await trial.run(['activities'])
    expect(trial.column('SELECT id FROM live_activities')).toEqual([uuid(1)])
    isThere = false
    await trial.run(['activities'])
    expect(trial.column('SELECT id FROM live_activities')).toEqual([])
  })
})
