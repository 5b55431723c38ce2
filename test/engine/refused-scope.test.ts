import { describe, expect, test } from 'vitest'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import { wantList } from '../../src/engine/due/wants.ts'
import { recordOutcome } from '../../src/engine/run/round-end.ts'
import { refused, type ScriptedRequest } from '../support/scripted-api.ts'
import { type CrmWorld, event, startCrm } from './crm-world.ts'
import { outcomeOf, startTrial, stateOf, type Trial, uuid } from './trial-backfill.ts'
import { startTimed, type TimedSources } from './trial-timed.ts'

/** A 404 of one CRM object does not stop the other objects, and does not stop the object itself for long. */

const RESOURCES = ['activities', 'crm_objects', 'crm_records', 'crm_record_links'] as const
const MINUTE = 60_000
const HOUR = 60 * MINUTE

interface Watched {
  trial: Trial
  timed: TimedSources
  /** Reads everything due and applies deletions, as the daemon does at the end of a run. */
  run(list?: 'activities.list' | 'crm_records.list'): Promise<void>
}

async function watch(world: CrmWorld): Promise<Watched> {
  const trial = await startTrial(world.api)
  expect((await trial.run(RESOURCES)).complete).toBe(true)
  const timed = await startTimed(world.api, trial, RESOURCES)
  const run = async (list?: string) => {
    if (list === 'activities.list') wantList(timed.context, list)
    if (list === 'crm_records.list') timed.readAgain('crm_records')
    await timed.drain()
    await trial.store.transaction(() => {
      for (const name of RESOURCES) recordOutcome(timed.context, resourceNamed(name), true)
    })
    for (const name of RESOURCES) timed.context.runs.begin(name)
  }
  return { trial, timed, run }
}

const record = (updated = -60, more: object = {}) => ({ updated, ...more })

type Ask = 'a list' | 'ids' | 'related_id'

const askOf = ({ query }: ScriptedRequest): Ask => {
  if (query['ids'] !== undefined) return 'ids'
  return query['related_id'] === undefined ? 'a list' : 'related_id'
}

/** Two deals and two companies, with two changes: a deal's stage and a deal's company. */
async function startChanging() {
  const world = await startCrm({
    deal: { 1: record(), 2: record() },
    company: { 11: record(), 12: record() },
  })
  const watched = await watch(world)
  /** Refuses this number of requests of one kind for an object. */
  const refuse = (object: string, ask: Ask, times: number) => {
    let left = times
    world.instead[object] = request => (askOf(request) === ask && left-- > 0 ? refused(404) : undefined)
  }
  const change = () => {
    world.records['deal'] = { 1: record(1, { stage: 'second' }), 2: record() }
    world.links = new Set(['deal 1, company 11'])
    world.activities.push(event(1, 1, ['deal 1']))
  }
  return { world, watched, refuse, change }
}

const stage = (trial: Trial) =>
  trial.column(`SELECT fields ->> 'stage' FROM crm_records WHERE id = '${uuid(1)}'`)[0]

const links = (trial: Trial) => trial.column('SELECT count(*) FROM crm_record_links')[0]

describe('a single 404 for an object that has records', () => {
  test.each([
    ['ids', 'deal', 'crm_records'],
    ['related_id', 'company', 'crm_record_links'],
    ['a list', 'deal', 'crm_records'],
  ] as const)(
    'a 404 for %s postpones its changes for minutes, and the resource is failing meanwhile',
    async (ask, object, resource) => {
      const { world, watched, refuse, change } = await startChanging()
      const { trial, timed, run } = watched
      refuse(object, ask, 1)
      change()
      if (ask === 'a list') world.publish()
      await run(ask === 'a list' ? 'crm_records.list' : 'activities.list')
      expect(stateOf(trial, resource)).toBe('failing')
      timed.moveClock(MINUTE)
      await run()
      await run()
      expect([stage(trial), links(trial)]).toEqual(['second', 1])
      expect(stateOf(trial, resource)).toBe('ok')
    },
  )

  test('a 404 delays no task of another object', async () => {
    const { world, watched, refuse, change } = await startChanging()
    refuse('deal', 'ids', 1000)
    change()
    world.activities.push(event(2, 1, ['company 11']))
    await watched.run('activities.list')
    expect(world.asked().sort()).toEqual(['company 11', 'deal 1'])
  })

  test('an object that keeps answering 404 is requested a few times in the first hour', async () => {
    const { world, watched, refuse, change } = await startChanging()
    refuse('deal', 'ids', 1000)
    change()
    await watched.run('activities.list')
    for (let minutes = 0; minutes < 60; minutes += 2) {
      watched.timed.moveClock(2 * MINUTE)
      await watched.run()
    }
    expect(world.asked().filter(line => line.startsWith('deal')).length).toBeLessThan(15)
    expect(stateOf(watched.trial, 'crm_records')).toBe('failing')
  })

  test('a 404 for a missing record no longer counts once a list shows the record', async () => {
    const { world, watched, refuse } = await startChanging()
    const { context, drain, moveClock, readAgain } = watched.timed
    const readLists = async () => {
      world.publish()
      readAgain('crm_records')
      await drain()
    }
    const found = world.records['deal'] ?? {}
    world.records['deal'] = { 2: record() }
    await readLists()
    refuse('deal', 'ids', 1)
    moveClock(10 * MINUTE)
    await drain()
    expect(context.runs.failure('crm_records')?.code).toBe('lost-404')
    world.records['deal'] = found
    await readLists()
    expect(context.runs.failure('crm_records')).toBeUndefined()
  })

  test('a 404 fails a backfill, and the next one completes', async () => {
    const { watched, refuse, change } = await startChanging()
    const { trial } = watched
    refuse('company', 'related_id', 1)
    change()
    expect(outcomeOf(await trial.run(RESOURCES), 'crm_record_links')).toBe('failed')
    expect((await trial.run(RESOURCES)).complete).toBe(true)
    expect(links(trial)).toBe(1)
  })
})

describe('an object without records', () => {
  test('an object whose list was read before is requested again a minute after a 404', async () => {
    const world = await startCrm({ deal: { 1: record() }, company: {} })
    const { trial, timed, run } = await watch(world)
    let left = 1
    world.instead['company'] = request =>
      askOf(request) === 'a list' && left-- > 0 ? refused(404) : undefined
    world.records['company'] = { 11: record() }
    world.publish()
    await run('crm_records.list')
    expect(trial.column("SELECT count(*) FROM crm_records WHERE object = 'company'")).toEqual([0])
    timed.moveClock(MINUTE)
    await run()
    expect(trial.column("SELECT count(*) FROM crm_records WHERE object = 'company'")).toEqual([1])
  })

  test('an object that the key may never read is refused, and has lost nothing', async () => {
    const world = await startCrm({ deal: { 1: record() }, company: {} })
    const reason = (trial: Trial) =>
      trial.column("SELECT reason FROM sync_status WHERE resource = 'crm_records'")[0]
    world.instead['company'] = () => refused(403)
    const trial = await startTrial(world.api)
    for (let runs = 0; runs < 2; runs += 1) {
      expect(outcomeOf(await trial.run(RESOURCES), 'crm_records')).toBe('failed')
      expect(trial.column('SELECT object FROM crm_records')).toEqual(['deal'])
      expect(reason(trial)).toContain('company/records: The API refused the request with 403')
    }
    delete world.instead['company']
    expect(outcomeOf(await trial.run(RESOURCES), 'crm_records')).toBe('complete')
    world.instead['company'] = () => refused(403)
    await trial.run(RESOURCES)
    expect(reason(trial)).toContain('company/records: The API answers 403 for data that it returned before')
  })

  test('an object that is not offered keeps no failure from an earlier request', async () => {
    const world = await startCrm({ deal: { 1: record() } })
    const { trial, timed, run } = await watch(world)
    world.instead['company'] = () => refused(403)
    world.records['company'] = {}
    world.publish()
    timed.moveClock(25 * HOUR)
    await run()
    expect(stateOf(trial, 'crm_records')).toBe('failing')
    world.instead['company'] = () => refused(404)
    timed.moveClock(HOUR)
    await run()
    await run()
    expect(stateOf(trial, 'crm_records')).toBe('ok')
  })

  test('an object that is always refused is requested more and more rarely', async () => {
    const world = await startCrm({ deal: { 1: record() }, company: {} })
    const { timed, run } = await watch(world)
    const asked = () =>
      world.api.asked('/v2/objects/{object}/records').filter(({ params: [object] }) => object === 'company')
        .length
    const listed = asked()
    world.instead['company'] = () => refused(404)
    await run('crm_records.list')
    const before = asked() - listed
    const perDay: number[] = []
    for (let day = 0; day < 3; day += 1) {
      const until = asked()
      for (let hour = 0; hour < 24; hour += 1) {
        timed.moveClock(HOUR)
        await run()
      }
      perDay.push(asked() - until)
    }
    expect(before).toBe(1)
    expect(perDay).toEqual([9, 2, 1])
  })

  test('an object that was never available is not requested for a day, not even by a later process', async () => {
    const world = await startCrm({ deal: { 1: record() } })
    const { trial, timed, run } = await watch(world)
    const task = { feed: 'crm_record_links.read', scope: 'company<deal', key: uuid(1) }
    await trial.store.transaction(() => trial.store.tasks.demand({ ...task, dueAt: timed.context.now() }))
    await run()
    expect(world.askedLinks()).toEqual(['company of deal 1'])
    timed.moveClock(23 * HOUR)
    await run()
    await (await startTimed(world.api, trial, ['crm_record_links'])).drain()
    expect(world.askedLinks()).toHaveLength(1)
    timed.moveClock(2 * HOUR)
    await run()
    expect(world.askedLinks()).toHaveLength(2)
  })
})

describe('links to an unavailable object', () => {
  test('the links are not requested, and are read once the object is available', async () => {
    const world = await startCrm({ deal: { 1: record(), 2: record() }, contact: { 21: record() } })
    const { trial, timed, run } = await watch(world)
    world.records['deal'] = { 1: record(1), 2: record() }
    world.publish()
    const before = world.askedLinks().length
    await run('crm_records.list')
    expect(world.askedLinks().slice(before)).toEqual(['contact of deal 1'])
    expect(trial.column("SELECT count(*) FROM sync_tasks WHERE scope LIKE 'company<%'")).toEqual([0])
    world.records['company'] = { 11: record(), 12: record() }
    world.links = new Set(['deal 1, company 11', 'company 12, contact 21'])
    world.publish()
    timed.moveClock(25 * HOUR)
    await run()
    await run()
    expect(links(trial)).toBe(2)
  })
})
