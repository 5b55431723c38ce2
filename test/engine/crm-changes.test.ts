import { describe, expect, test } from 'vitest'
import { CONFIRM_AFTER_MS } from '../../src/engine/deletions/deletion-states.ts'
import { wantList } from '../../src/engine/due/wants.ts'
import { refused } from '../support/scripted-api.ts'
import { at, type CrmWorld, event, linkTo, startCrm } from './crm-world.ts'
import { outcomeOf, startTrial, stateOf, type Trial, uuid } from './trial-backfill.ts'
import { startTimed, type TimedOptions, type TimedSources } from './trial-timed.ts'

const RESOURCES = ['members', 'activities', 'crm_objects', 'crm_records'] as const
const SECOND = 1000
const MINUTE = 60 * SECOND

interface Watched {
  trial: Trial
  timed: TimedSources
  /** Reads the newest end and its follow-ups. */
  poll(): Promise<void>
}

/** A complete warehouse, kept up to date by the daemon's sources. */
async function watch({ api }: CrmWorld, options?: TimedOptions): Promise<Watched> {
  const trial = await startTrial(api)
  expect((await trial.run(RESOURCES)).complete).toBe(true)
  const timed = await startTimed(api, trial, RESOURCES, options)
  const poll = async () => {
    wantList(timed.context, 'activities.list')
    await timed.drain()
  }
  return { trial, timed, poll }
}

const tasks = (trial: Trial) =>
  trial.all("SELECT scope, key, sort_at FROM sync_tasks WHERE feed LIKE '%.changed' ORDER BY scope, key")

const liveRecords = (trial: Trial) =>
  trial.column('SELECT id FROM crm_records WHERE _deleted_at IS NULL ORDER BY 1')

const deal = (updated: number | null, more: object = {}) => ({ updated, stage: 'first', ...more })

describe('an activity that reports a changed record', () => {
  test('the record that the activity names directly is read by its id, and its changes are stored', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) }, company: { 11: deal(-60) } })
    const { trial, poll } = await watch(world)
    world.records['deal'] = { 1: deal(1, { stage: 'second' }) }
    world.activities.push(event(1, 1, ['deal 1', 'company 11']))
    await poll()
    expect(world.asked()).toEqual(['deal 1'])
    expect(world.api.asked('/v2/objects/{object}/records').at(-1)?.query['limit']).toBe('100')
    expect(trial.all('SELECT field, old_value, new_value FROM crm_record_changes')).toEqual([
      { field: 'stage', old_value: '"first"', new_value: '"second"' },
    ])
    expect(tasks(trial)).toEqual([])
  })

  test('all records of an activity are read when it names none directly', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) }, company: { 11: deal(-60) } })
    const { poll } = await watch(world)
    const links = ['deal 1', 'company 11'].map(link => ({ ...linkTo(link), origin: 'DERIVED' }))
    world.records = { deal: { 1: deal(1) }, company: { 11: deal(1) } }
    world.activities.push(event(1, 1, [], { links }))
    await poll()
    expect(world.asked().sort()).toEqual(['company 11', 'deal 1'])
  })

  test('no record is read for an e-mail, a meeting, or an unchanged activity', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const { poll } = await watch(world)
    world.activities.push(event(1, 1, ['deal 1'], { source_type: 'MESSAGE' }))
    await poll()
    expect(world.asked()).toEqual([])
    world.records['deal'] = { 1: deal(2) }
    world.activities.push(event(2, 2, ['deal 1']))
    await poll()
    await poll()
    expect(world.asked()).toEqual(['deal 1'])
  })

  test('no record is read in a first backfill, or when its list was read after the change', async () => {
    const deals = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [index + 1, deal(-60)]))
    const world = await startCrm({ deal: deals })
    const old = (number: number) => event(number, -number, [`deal ${1 + (number % 50)}`])
    world.activities.push(...Array.from({ length: 900 }, (_, index) => old(index + 1)))
    const { trial, poll } = await watch(world)
    world.activities.push(event(901, -30, ['deal 1']))
    await poll()
    expect(trial.column('SELECT count(*) FROM activities')).toEqual([901])
    expect(world.asked()).toEqual([])
    expect(tasks(trial)).toEqual([])
  })

  test.each([
    [-14, ['deal 1']],
    [-16, []],
  ])('an activity of %d minutes before the list of records was read has %j read', async (minutes, read) => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const { poll } = await watch(world)
    world.records['deal'] = { 1: deal(minutes, { stage: 'second' }) }
    world.activities.push(event(1, minutes, ['deal 1']))
    await poll()
    expect(world.asked()).toEqual(read)
  })

  test('an unknown record is read, however old the change is', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const { trial, poll } = await watch(world)
    world.records['deal'] = { 2: deal(-20) }
    world.activities.push(event(1, -30, ['deal 2']))
    await poll()
    expect(world.asked()).toEqual(['deal 2'])
    expect(liveRecords(trial)).toEqual([uuid(1), uuid(2)])
  })

  test('a backfill follows activities too', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const trial = await startTrial(world.api)
    await trial.run(RESOURCES)
    world.records['deal'] = { 1: deal(1, { stage: 'second' }) }
    world.activities.push(event(1, 1, ['deal 1']))
    expect((await trial.run(RESOURCES)).complete).toBe(true)
    expect(world.asked()).toEqual(['deal 1'])
  })

  test('a record id in capitals is read, and one that is not a UUID is ignored', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const id = '0000000a-aaaa-4aaa-8aaa-00000000000a'
    const { trial, poll } = await watch(world)
    world.instead['deal'] = ({ query: { ids } }) => {
      if (ids === undefined) return undefined
      expect(ids).toBe(id)
      return {
        body: { data: [{ id, object: 'deal', updated_at: at(1) }], page_info: { has_next_page: false } },
      }
    }
    const links = [id.toUpperCase(), 'not a uuid'].map(context_id => ({
      context_type: 'deal',
      context_id,
      origin: 'DIRECT',
    }))
    world.activities.push(event(1, 1, [], { links }))
    await poll()
    expect(liveRecords(trial)).toEqual([uuid(1), id])
    expect(tasks(trial)).toEqual([])
  })

  test('a hundred records of one object are read by one request', async () => {
    const numbers = Array.from({ length: 150 }, (_, index) => index + 1)
    const all = (updated: number) => ({
      deal: Object.fromEntries(numbers.map(number => [number, deal(updated)])),
      company: { 1001: deal(updated) },
    })
    const world = await startCrm(all(-60))
    const { trial, poll } = await watch(world)
    world.records = all(1)
    const links = [...numbers.map(number => `deal ${number}`), 'company 1001']
    world.activities.push(...links.map((link, index) => event(index, 1, [link])))
    await poll()
    const counts = world.asked().map(line => [line.split(' ')[0], line.split(' ').length - 1])
    expect(counts.sort()).toEqual([
      ['company', 1],
      ['deal', 100],
      ['deal', 50],
    ])
    expect(tasks(trial)).toEqual([])
  })

  test('no request is made once nothing changes any more', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const { timed, poll } = await watch(world)
    world.records['deal'] = { 1: deal(1) }
    world.activities.push(event(1, 1, ['deal 1']))
    await poll()
    const before = world.api.requests.length
    timed.moveClock(60 * MINUTE)
    await timed.drain()
    expect(world.api.requests.slice(before)).toEqual([])
  })
})

describe('a record that does not show its change yet', () => {
  test('the record is read again after 5 s, 30 s and 5 min, whatever the scale, and then not again', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const { trial, timed, poll } = await watch(world, { intervalScale: 1000 })
    world.activities.push(event(1, 1, ['deal 1']))
    await poll()
    const counts: number[] = []
    for (const wait of [5 * SECOND, 20 * SECOND, 10 * SECOND, 4 * MINUTE, MINUTE, 60 * MINUTE]) {
      timed.moveClock(wait)
      await timed.drain()
      counts.push(world.asked().length)
    }
    expect(counts).toEqual([2, 2, 3, 3, 4, 4])
    expect(tasks(trial)).toEqual([])
  })

  test('the record is read again when its last change is older than the activity', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const { trial, timed, poll } = await watch(world)
    world.records['deal'] = { 1: deal(1, { stage: 'second' }) }
    world.activities.push(event(1, 2, ['deal 1']))
    await poll()
    expect(trial.column("SELECT fields ->> 'stage' FROM crm_records")).toEqual(['second'])
    world.records['deal'] = { 1: deal(2, { stage: 'third' }) }
    timed.moveClock(5 * SECOND)
    await timed.drain()
    expect(trial.column("SELECT fields ->> 'stage' FROM crm_records")).toEqual(['third'])
    expect(tasks(trial)).toEqual([])
  })

  test('a record without a time of change is read until something changed', async () => {
    const world = await startCrm({ deal: { 1: deal(null) } })
    const { trial, timed, poll } = await watch(world)
    world.activities.push(event(1, 1, ['deal 1']))
    await poll()
    expect(tasks(trial)).toHaveLength(1)
    world.records['deal'] = { 1: deal(null, { stage: 'second' }) }
    timed.moveClock(5 * SECOND)
    await timed.drain()
    expect(tasks(trial)).toEqual([])
  })

  test('the record waits for the latest of several changes', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const { trial, timed, poll } = await watch(world)
    world.activities.push(event(1, 3, ['deal 1']))
    await poll()
    world.activities.push(event(2, 2, ['deal 1']))
    await poll()
    expect(tasks(trial)).toEqual([{ scope: 'deal', key: uuid(1), sort_at: at(3) }])
    world.records['deal'] = { 1: deal(2) }
    timed.moveClock(5 * SECOND)
    await timed.drain()
    expect(tasks(trial)).toHaveLength(1)
    world.activities.push(event(3, 4, ['deal 1']))
    world.records['deal'] = { 1: deal(4) }
    await poll()
    expect(tasks(trial)).toEqual([])
  })

  test('another change starts the waits of the record again', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const { timed, poll } = await watch(world)
    world.activities.push(event(1, 1, ['deal 1']))
    await poll()
    for (const wait of [5 * SECOND, 30 * SECOND]) {
      timed.moveClock(wait)
      await timed.drain()
    }
    world.activities.push(event(2, 2, ['deal 1']))
    await poll()
    for (const wait of [5 * SECOND, 30 * SECOND, 5 * MINUTE, 60 * MINUTE]) {
      timed.moveClock(wait)
      await timed.drain()
    }
    expect(world.asked()).toHaveLength(3 + 4)
  })

  test('the record is read again at once when it changed while the answer was on its way', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const { trial, timed } = await watch(world)
    wantList(timed.context, 'activities.list')
    world.activities.push(event(1, 1, ['deal 1']))
    await (await timed.ask('activities.list')).apply()
    world.records['deal'] = { 1: deal(1, { stage: 'second' }) }
    const answer = await timed.ask('crm_records.list.changed')
    world.records['deal'] = { 1: deal(2, { stage: 'third' }) }
    world.activities.push(event(2, 2, ['deal 1']))
    wantList(timed.context, 'activities.list')
    await (await timed.ask('activities.list')).apply()
    await answer.apply()
    await timed.drain()
    expect(trial.column("SELECT fields ->> 'stage' FROM crm_records")).toEqual(['third'])
    expect(tasks(trial)).toEqual([])
  })

  test('the record does not keep a backfill from ending', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const trial = await startTrial(world.api)
    await trial.run(RESOURCES)
    world.activities.push(event(1, 1, ['deal 1']))
    expect((await trial.run(RESOURCES)).complete).toBe(true)
    expect(world.asked()).toHaveLength(1)
    trial.moveClock(5 * SECOND)
    expect((await trial.run(RESOURCES)).complete).toBe(true)
    expect(world.asked()).toHaveLength(2)
  })
})

describe('a record that is missing from its answer', () => {
  test('the record is deleted when a second request does not show it either', async () => {
    const world = await startCrm({ deal: { 1: deal(-60), 2: deal(-60) } })
    const { trial, timed, poll } = await watch(world)
    world.records['deal'] = { 2: deal(-60) }
    world.activities.push(event(1, 1, ['deal 1']))
    await poll()
    timed.passTime(CONFIRM_AFTER_MS)
    await timed.drain()
    await timed.settle('crm_records')
    expect(world.asked()).toEqual(['deal 1', 'deal 1'])
    expect(liveRecords(trial)).toEqual([uuid(2)])
    expect(tasks(trial)).toEqual([])
  })

  test('the record stays when the second request shows it', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const { trial, timed, poll } = await watch(world)
    let asked = 0
    world.instead['deal'] = ({ query }) => {
      if (query['ids'] === undefined || asked++ > 0) return undefined
      return { body: { data: [], page_info: { has_next_page: false, end_cursor: null } } }
    }
    world.activities.push(event(1, 1, ['deal 1']))
    await poll()
    timed.passTime(CONFIRM_AFTER_MS)
    await timed.drain()
    await timed.settle('crm_records')
    expect(asked).toBe(2)
    expect(liveRecords(trial)).toEqual([uuid(1)])
  })

  test('a record that may not exist yet is read again', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const { trial, timed, poll } = await watch(world)
    world.activities.push(event(1, 1, ['deal 2']))
    await poll()
    world.records['deal'] = { 1: deal(-60), 2: deal(1) }
    timed.moveClock(5 * SECOND)
    await timed.drain()
    expect(liveRecords(trial)).toEqual([uuid(1), uuid(2)])
    expect(tasks(trial)).toEqual([])
  })
})

test('a record whose id cannot be requested is deleted by a backfill whose list lacks it twice', async () => {
  const world = await startCrm({ deal: { 1: deal(-60) } })
  let shown = ['won', 'lost']
  world.instead['deal'] = () => ({
    body: {
      data: shown.map(id => ({ id, object: 'deal', updated_at: at(-60) })),
      page_info: { has_next_page: false },
    },
  })
  const trial = await startTrial(world.api)
  await trial.run(RESOURCES)
  expect(liveRecords(trial)).toEqual(['lost', 'won'])
  shown = ['lost']
  expect((await trial.run(RESOURCES)).complete).toBe(true)
  expect(liveRecords(trial)).toEqual(['lost'])
  expect(world.api.requests.filter(({ query }) => query['ids'])).toEqual([])
})

describe('an object whose records are refused', () => {
  test('an unknown object that answers 404 is forgotten', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const { trial, timed } = await watch(world)
    const hint = { feed: 'crm_records.list.changed', scope: 'invoice', key: uuid(5) }
    await trial.store.transaction(() => trial.store.tasks.demand({ ...hint, dueAt: timed.context.now() }))
    await timed.drain()
    expect(world.asked()).toEqual(['invoice 5'])
    expect(tasks(trial)).toEqual([])
    expect(String(timed.context.backoffs.reason('crm_records'))).not.toContain('invoice')
  })

  test('a 400 makes the resource fail, and the record is read with the next list', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const trial = await startTrial(world.api)
    await trial.run(RESOURCES)
    let broken = true
    world.instead['deal'] = ({ query }) => (query['ids'] && broken ? refused(400) : undefined)
    world.records['deal'] = { 1: deal(1) }
    world.activities.push(event(1, 1, ['deal 1']))
    expect(outcomeOf(await trial.run(RESOURCES), 'crm_records')).toBe('failed')
    expect(stateOf(trial, 'crm_records')).toBe('failing')
    broken = false
    expect((await trial.run(RESOURCES)).complete).toBe(true)
    expect(tasks(trial)).toEqual([])
  })

  test('an id that is not a UUID is never requested, whatever names it', async () => {
    const world = await startCrm({ deal: { 1: deal(-60) } })
    const { trial, timed } = await watch(world)
    const hint = (key: string) => ({ feed: 'crm_records.list.changed', scope: 'deal', key })
    await trial.store.transaction(() => {
      for (const key of ['1, 2', uuid(1)]) {
        trial.store.tasks.demand({ ...hint(key), dueAt: timed.context.now() })
      }
    })
    await timed.drain()
    expect(world.asked()).toEqual(['deal 1'])
  })
})

describe('the records that a changed record points at', () => {
  const crm = async () => {
    const world = await startCrm({
      deal: { 1: deal(-60) },
      company: { 11: deal(-60) },
      stage: { 31: deal(-60) },
    })
    world.relations = {
      deal: [
        { name: 'company_id', object: 'company' },
        { name: 'stage_id', object: 'stage' },
        { name: 'owner_id', resource: 'members' },
      ],
      company: [{ name: 'parent_id', object: 'company' }],
    }
    return world
  }

  test('new records are read too, up to three steps away', async () => {
    const world = await crm()
    const { trial, poll } = await watch(world)
    world.records = {
      deal: { 1: deal(1, { company_id: uuid(12), stage_id: uuid(31), note_id: uuid(99) }) },
      company: {
        12: deal(-1, { parent_id: uuid(13) }),
        13: deal(-1, { parent_id: uuid(14) }),
        14: deal(-1, { parent_id: uuid(15) }),
        15: deal(-1),
      },
      stage: { 31: deal(-60) },
    }
    world.activities.push(event(1, 1, ['deal 1']))
    await poll()
    expect(world.asked()).toEqual(['deal 1', 'company 12', 'company 13', 'company 14'])
    expect(trial.column("SELECT id FROM crm_records WHERE object = 'company' ORDER BY 1")).toEqual(
      [11, 12, 13, 14].map(uuid),
    )
    expect(tasks(trial)).toEqual([])
  })

  test('a record that a value names in capitals is requested by its id, once', async () => {
    const world = await crm()
    const { trial, poll } = await watch(world)
    const id = '0000000a-aaaa-4aaa-8aaa-00000000000a'
    const requested: string[] = []
    world.instead['company'] = ({ query: { ids } }) => {
      if (ids === undefined) return undefined
      requested.push(ids)
      return {
        body: { data: [{ id, object: 'company', updated_at: at(1) }], page_info: { has_next_page: false } },
      }
    }
    for (const [minutes, stage] of [
      [1, 'first'],
      [2, 'second'],
    ] as const) {
      world.records['deal'] = { 1: deal(minutes, { company_id: id.toUpperCase(), stage }) }
      world.activities.push(event(minutes, minutes, ['deal 1']))
      await poll()
    }
    expect(requested).toEqual([id])
    expect(trial.column("SELECT fields ->> 'company_id' FROM crm_records WHERE object = 'deal'")).toEqual([
      id.toUpperCase(),
    ])
    expect(tasks(trial)).toEqual([])
  })

  test('a record that cannot be read is requested once', async () => {
    const world = await crm()
    const { trial, timed, poll } = await watch(world)
    world.records['deal'] = { 1: deal(1, { stage_id: uuid(32) }) }
    world.activities.push(event(1, 1, ['deal 1']))
    await poll()
    timed.moveClock(60 * MINUTE)
    await timed.drain()
    expect(world.asked()).toEqual(['deal 1', 'stage 32'])
    expect(tasks(trial)).toEqual([])
  })

  test('no record is read for a change that the list reported', async () => {
    const world = await crm()
    const { trial, timed } = await watch(world)
    world.records['deal'] = { 1: deal(1, { stage_id: uuid(32) }) }
    world.publish()
    timed.readAgain('crm_records')
    await timed.drain()
    expect(trial.column("SELECT count(*) FROM crm_record_changes WHERE field = 'stage_id'")).toEqual([1])
    expect(world.asked()).toEqual([])
  })

  test('the members are listed when a new owner is unknown, and not again for the same one', async () => {
    const world = await crm()
    const { timed, poll } = await watch(world)
    const lists = () => world.api.asked('/v1/members').length
    const before = lists()
    world.records['deal'] = { 1: deal(1, { owner_id: 'mem_1' }) }
    world.activities.push(event(1, 1, ['deal 1']))
    await poll()
    expect(lists()).toBe(before + 1)
    world.records['deal'] = { 1: deal(2, { owner_id: 'mem_1', stage: 'second' }) }
    world.activities.push(event(2, 2, ['deal 1']))
    await poll()
    await timed.drain()
    expect(lists()).toBe(before + 1)
  })
})

describe('a record with a field that the metadata does not name', () => {
  const HOUR = 60 * MINUTE

  test.each(['a list', 'an activity'])(
    'makes the metadata of its object due, if %s shows it',
    async shownBy => {
      const world = await startCrm({ deal: { 1: deal(-60) } })
      world.relations = { deal: [{ name: 'stage' }] }
      const { trial, timed, poll } = await watch(world)
      const read = () => world.api.asked('/v2/objects/{object}').length
      const change = async (minutes: number, fields: object) => {
        world.records['deal'] = { 1: deal(minutes, fields) }
        if (shownBy === 'an activity') world.activities.push(event(minutes, minutes, ['deal 1']))
        else {
          world.publish()
          timed.readAgain('crm_records')
        }
        const before = read()
        await poll()
        return read() - before
      }
      timed.passTime(7 * HOUR)
      await poll()
      expect(await change(421, { stage: 'second' })).toBe(0)
      world.relations = { deal: [{ name: 'stage' }, { name: 'worth' }] }
      expect(await change(422, { worth: 3 })).toBe(1)
      expect(trial.column('SELECT name FROM crm_fields ORDER BY name')).toEqual(['stage', 'worth'])
      expect(await change(423, { strange: 1 })).toBe(0)
      timed.passTime(7 * HOUR)
      await poll()
      expect(await change(850, { strange: 2 })).toBe(1)
      expect(await change(851, { strange: 3 })).toBe(0)
    },
  )
})
