import { describe, expect, test } from 'vitest'
import { HOUR_MS } from '../../src/base/clock.ts'
import { wantList } from '../../src/engine/due/wants.ts'
import { refused, v2Page } from '../support/scripted-api.ts'
import { type CrmWorld, event, startCrm } from './crm-world.ts'
import { startTrial, type Trial, uuid } from './trial-backfill.ts'
import { startTimed, type TimedSources } from './trial-timed.ts'

const RESOURCES = ['activities', 'crm_objects', 'crm_records', 'crm_record_links'] as const
const DAY = 86_400_000

interface Watched {
  trial: Trial
  timed: TimedSources
  /** Reads what is due, a list first, and returns the requests for links that this took. */
  read(list?: 'activities.list' | 'crm_records.list'): Promise<string[]>
  /** Denies the denied links once more, and applies the deletions. */
  confirm(): Promise<void>
}

async function watch(world: CrmWorld): Promise<Watched> {
  const trial = await startTrial(world.api)
  expect((await trial.run(RESOURCES)).complete).toBe(true)
  const timed = await startTimed(world.api, trial, RESOURCES)
  const read = async (list?: string) => {
    const before = world.askedLinks().length
    if (list === 'activities.list') wantList(timed.context, list)
    // A confirming round reads every list of a resource.
    if (list === 'crm_records.list') timed.readAgain('crm_records')
    await timed.drain()
    return world.askedLinks().slice(before).sort()
  }
  const confirm = async () => {
    timed.passTime(HOUR_MS)
    await timed.drain()
    await timed.settle('crm_record_links')
  }
  return { trial, timed, read, confirm }
}

const count = (trial: Trial, scope: string) =>
  trial.column(`SELECT count(*) FROM sync_tasks WHERE feed = 'crm_record_links.read' AND scope = '${scope}'`)

const pairs = ({ trial }: Watched) =>
  trial
    .all('SELECT object, record_id, related_object, related_id FROM crm_record_links')
    .map(
      row =>
        `${row['object']} ${last(row['record_id'])}, ${row['related_object']} ${last(row['related_id'])}`,
    )
    .sort()

const last = (id: unknown) => Number(String(id).split('-').at(-1))

const record = (updated = -60, more: object = {}) => ({ updated, ...more })

const rows = (from: number, count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [from + index, record()]))

/** Two deals, three companies and four contacts, so that links are read from deals and companies. */
async function startLinked(): Promise<CrmWorld> {
  const world = await startCrm({ deal: rows(1, 2), company: rows(11, 3), contact: rows(21, 4) })
  world.links = new Set(['deal 1, company 11', 'deal 1, contact 21', 'company 11, contact 21'])
  return world
}

describe('the links that are read again', () => {
  test('the links of a changed record are read from its own side, and outdated ones are deleted', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    world.links = new Set(['deal 1, company 11', 'company 12, contact 21'])
    world.records['contact'] = { ...rows(21, 4), 21: record(1) }
    world.publish()
    expect(await watched.read('crm_records.list')).toEqual(['company of contact 21', 'deal of contact 21'])
    expect(pairs(watched)).toHaveLength(4)
    await watched.confirm()
    expect(pairs(watched)).toEqual(['company 12, contact 21', 'deal 1, company 11'])
    expect(await watched.read('crm_records.list')).toEqual([])
  })

  test('the links of a new record that was read for an activity are read', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    world.records['contact'] = rows(21, 5)
    world.links.add('company 13, contact 25')
    world.activities.push(event(1, 1, ['contact 25']))
    // Once, although the activity names it and it is new.
    expect(await watched.read('activities.list')).toEqual(['company of contact 25', 'deal of contact 25'])
    expect(pairs(watched)).toContain('company 13, contact 25')
  })

  test('the links of a record in a new activity are read, though the record shows no change', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    world.links.add('deal 2, contact 22')
    world.activities.push(event(1, 1, ['deal 2', 'company 11']))
    expect(await watched.read('activities.list')).toEqual(
      ['company of deal 2', 'contact of deal 2', 'deal of company 11'].sort(),
    )
    expect(pairs(watched)).toContain('deal 2, contact 22')
    watched.timed.moveClock(5000)
    // The record is read again until it shows the change; its links are not.
    expect(await watched.read()).toEqual([])
    expect(world.asked()).toEqual(['deal 2', 'deal 2'])
  })

  test('the links of records that an e-mail names together are read when their association is unknown', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    const mail = { source_type: 'MESSAGE' }
    world.activities.push(event(1, 1, ['deal 1', 'company 11', 'contact 21'], mail))
    expect(await watched.read('activities.list')).toEqual([])
    world.links = new Set([...world.links, 'company 12, contact 22'])
    world.activities.push(event(2, 2, ['contact 22', 'company 12'], mail))
    expect(await watched.read('activities.list')).toEqual(['company of contact 22', 'contact of company 12'])
    expect(pairs(watched)).toContain('company 12, contact 22')
  })

  test('no links are read for a hint that brings nothing new', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    const { store } = watched.trial
    const hint = { feed: 'crm_records.list.changed', scope: 'deal', key: uuid(1) }
    await store.transaction(() => store.tasks.demand({ ...hint, dueAt: watched.timed.context.now() }))
    expect(await watched.read()).toEqual([])
    expect(world.asked()).toEqual(['deal 1'])
  })

  test('no links are read for changes from before the records were listed', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    world.activities.push(event(1, -30, ['deal 2', 'contact 22']))
    expect(await watched.read('activities.list')).toEqual([])
  })

  test('the audit reads links from the chosen side only', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    world.records['contact'] = { ...rows(21, 4), 21: record(1) }
    world.publish()
    await watched.read('crm_records.list')
    watched.timed.moveClock(6 * DAY)
    expect(await watched.read()).toEqual([])
    world.links.add('company 13, contact 24')
    watched.timed.moveClock(1.1 * DAY)
    expect(await watched.read()).toEqual([
      'company of deal 1',
      'company of deal 2',
      'contact of company 11',
      'contact of company 12',
      'contact of company 13',
      'contact of deal 1',
      'contact of deal 2',
    ])
    expect(pairs(watched)).toContain('company 13, contact 24')
  })

  test('the links of a record are read when it comes back after they were deleted with it', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    const { timed } = watched
    world.records['deal'] = { 2: record() }
    world.publish()
    await watched.read('crm_records.list')
    await watched.confirm()
    await timed.settle('crm_records')
    expect(pairs(watched)).toEqual(['company 11, contact 21'])
    timed.moveClock(8 * DAY)
    const audit = await watched.read()
    expect(audit).toContain('company of deal 2')
    expect(audit.filter(line => line.includes('unknown'))).toEqual([])
    world.records['deal'] = { 1: record(), 2: record() }
    world.publish()
    expect(await watched.read('crm_records.list')).toEqual(['company of deal 1', 'contact of deal 1'])
    expect(pairs(watched)).toHaveLength(3)
  })

  test('the links of a record that comes back while the other object is unavailable are read later', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    const { timed, trial } = watched
    world.records['deal'] = { 2: record() }
    world.publish()
    await watched.read('crm_records.list')
    await watched.confirm()
    await timed.settle('crm_records')
    timed.moveClock(8 * DAY)
    await watched.read()
    world.records['deal'] = rows(1, 2)
    world.publish()
    world.instead['company'] = () => refused(404)
    await trial.store.transaction(() => {
      for (const segment of trial.store.segments.of('crm_records.list', 'company'))
        trial.store.segments.save({ ...segment, unavailableSince: timed.context.now() })
    })
    await watched.read('crm_records.list')
    expect(pairs(watched)).not.toContain('deal 1, company 11')
    world.instead = {}
    timed.moveClock(8 * DAY)
    await watched.read('crm_records.list')
    expect(pairs(watched)).toContain('deal 1, company 11')
    timed.moveClock(8 * DAY)
    expect(await watched.read()).toContain('company of deal 1')
  })

  test('links are read from the chosen side only until they were read completely once', async () => {
    const world = await startLinked()
    world.activities.push(event(1, 1, ['contact 21']))
    const trial = await startTrial(world.api)
    const timed = await startTimed(world.api, trial, RESOURCES)
    await timed.drain()
    wantList(timed.context, 'activities.list')
    world.activities.push(event(2, 2, ['contact 21']))
    await timed.drain()
    expect(world.askedLinks()).toHaveLength(2 + 2 + 3)
  })

  test('a backfill reads links from the chosen side only', async () => {
    const world = await startLinked()
    const trial = await startTrial(world.api)
    expect((await trial.run(RESOURCES)).complete).toBe(true)
    expect(world.askedLinks()).toHaveLength(2 + 2 + 3)
    // A backfill reads every record of the chosen side anyway, so a change costs no extra request.
    world.records['contact'] = { ...rows(21, 4), 21: record(2) }
    world.publish()
    expect((await trial.run(RESOURCES)).complete).toBe(true)
    expect(world.askedLinks()).toHaveLength(2 * 7)
  })
})

describe('the side from which links are read', () => {
  test('the side stays until it is more than twice as large, and new records are read from it', async () => {
    const world = await startCrm({ deal: rows(1, 2), company: rows(11, 3) })
    const watched = await watch(world)
    world.records = { deal: rows(1, 6), company: rows(11, 3) }
    world.publish()
    const asked = await watched.read('crm_records.list')
    // The links of each new deal are read from its own side, for companies and for contacts.
    expect(asked).toEqual(
      [3, 4, 5, 6]
        .flatMap(number => [`company of deal ${number}`])
        .concat(asked.filter(isOfContacts))
        .sort(),
    )
    expect(count(watched.trial, 'company<deal')).toEqual([6])
    expect(count(watched.trial, 'deal<company')).toEqual([0])

    world.records = { deal: rows(1, 7), company: rows(11, 3) }
    world.publish()
    const turned = await watched.read('crm_records.list')
    // The activity reports the new deal too.
    expect(turned.filter(line => !isOfContacts(line))).toEqual([
      'deal of company 11',
      'deal of company 12',
      'deal of company 13',
    ])
    expect(count(watched.trial, 'company<deal')).toEqual([0])
    expect(count(watched.trial, 'deal<company')).toEqual([3])
  })

  test('a later process plans the side again without a request', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    const again = await startTimed(world.api, watched.trial, RESOURCES)
    const before = world.askedLinks().length
    await again.drain()
    expect(world.askedLinks().length).toBe(before)
  })

  test('a bare string in a list of links is rejected and creates no association', async () => {
    const world = await startLinked()
    const bare = 'no record at all'
    world.instead['contact'] = ({ query }) =>
      query['related_id'] === undefined ? undefined : v2Page([bare, { id: uuid(21) }, 42])
    const watched = await watch(world)
    expect(watched.trial.column('SELECT DISTINCT related_id FROM crm_record_links')).not.toContain(bare)
    expect(pairs(watched)).toContain('deal 1, contact 21')
    const rejected = watched.trial.column(
      "SELECT DISTINCT item FROM sync_rejects WHERE resource = 'crm_record_links' ORDER BY item",
    )
    expect(rejected).toEqual([JSON.stringify(bare), '42'])
  })

  test('a record whose id cannot be part of a request is left out', async () => {
    const world = await startLinked()
    const odd = { id: 'not-a-uuid', object: 'deal', updated_at: null, fields: {} }
    world.instead['deal'] = ({ query }) =>
      query['related_id'] === undefined
        ? { body: { data: [odd], page_info: { has_next_page: false, end_cursor: 'end' } } }
        : undefined
    const trial = await startTrial(world.api)
    expect((await trial.run(RESOURCES)).complete).toBe(true)
    expect(world.askedLinks().some(line => line.endsWith('of unknown NaN'))).toBe(false)
  })
})

const isOfContacts = (line: string) => line.startsWith('contact of')

describe('answers from both sides of an association', () => {
  const SIDES = { contact: ['company<contact', 21], company: ['contact<company', 12] } as const

  /** Asks for the pair of company 12 and contact 21 from one side, then from the other; the later answers first. */
  async function askBoth({ trial, timed }: Watched, first: keyof typeof SIDES, between: () => void) {
    const second = first === 'contact' ? 'company' : 'contact'
    const answers: Awaited<ReturnType<TimedSources['ask']>>[] = []
    for (const side of [first, second] as const) {
      const [scope, number] = SIDES[side]
      const task = { feed: 'crm_record_links.read', scope, key: uuid(number), dueAt: timed.context.now() }
      await trial.store.transaction(() => trial.store.tasks.demand(task))
      answers.push(await timed.ask('crm_record_links.read'))
      if (side === first) between()
    }
    for (const answer of answers.reverse()) await answer.apply()
  }

  test.each(['contact', 'company'] as const)('the later request wins (%s first)', async first => {
    const world = await startLinked()
    const watched = await watch(world)
    world.links.add('company 12, contact 21')
    await askBoth(watched, first, () => world.links.delete('company 12, contact 21'))
    expect(pairs(watched)).not.toContain('company 12, contact 21')
    await watched.timed.drain()
    expect(pairs(watched)).toEqual(['company 11, contact 21', 'deal 1, company 11', 'deal 1, contact 21'])
  })

  test.each(['contact', 'company'] as const)(
    'an older answer does not delete what a newer one shows (%s first)',
    async first => {
      const world = await startLinked()
      const watched = await watch(world)
      await askBoth(watched, first, () => world.links.add('company 12, contact 21'))
      expect(pairs(watched)).toContain('company 12, contact 21')
      await watched.timed.drain()
      expect(pairs(watched)).toContain('company 12, contact 21')
    },
  )

  test.each(['contact', 'company'] as const)(
    'an older answer does not restore what a newer one denies (%s first)',
    async first => {
      const world = await startLinked()
      world.links.add('company 12, contact 21')
      const watched = await watch(world)
      world.links.delete('company 12, contact 21')
      await askBoth(watched, first, () => world.links.add('company 12, contact 21'))
      expect(pairs(watched)).toContain('company 12, contact 21')
    },
  )

  test('two records that share a linked record both keep it, whichever is answered first', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    const { trial, timed } = watched
    world.links.add('deal 1, contact 24').add('deal 2, contact 24')
    const answers: Awaited<ReturnType<TimedSources['ask']>>[] = []
    for (const deal of [1, 2]) {
      const task = { feed: 'crm_record_links.read', scope: 'contact<deal', key: uuid(deal) }
      await trial.store.transaction(() => trial.store.tasks.demand({ ...task, dueAt: timed.context.now() }))
      answers.push(await timed.ask('crm_record_links.read'))
    }
    for (const answer of answers.reverse()) await answer.apply()
    expect(pairs(watched)).toEqual(expect.arrayContaining(['deal 1, contact 24', 'deal 2, contact 24']))
  })

  test('the part of an answer that a later request has not overtaken is stored', async () => {
    const world = await startLinked()
    world.links.add('company 12, contact 21')
    const watched = await watch(world)
    world.links.add('company 13, contact 21')
    await askBoth(watched, 'contact', () => world.links.delete('company 12, contact 21'))
    expect(pairs(watched)).toContain('company 13, contact 21')
    await watched.confirm()
    expect(pairs(watched)).not.toContain('company 12, contact 21')
  })

  test('an answer in several pages is as old as its first page', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    const { trial, timed } = watched
    const demand = async (scope: string, number: number) => {
      const task = { feed: 'crm_record_links.read', scope, key: uuid(number), dueAt: timed.context.now() }
      await trial.store.transaction(() => trial.store.tasks.demand(task))
    }
    world.instead['contact'] = ({ query }) => {
      if (query['related_id'] !== uuid(12)) return undefined
      const [shown, next] = query['cursor'] === undefined ? [21, 'more'] : [22, null]
      const page_info = { has_next_page: next !== null, end_cursor: next }
      return { body: { data: [{ id: uuid(shown), object: 'contact' }], page_info } }
    }
    await demand('contact<company', 12)
    const first = await timed.ask('crm_record_links.read')
    // Requested between the first page and the second: contact 21 no longer belongs to company 12.
    await demand('company<contact', 21)
    await (await timed.ask('crm_record_links.read')).apply()
    await first.apply()
    await (await timed.ask('crm_record_links.read')).apply()
    expect(pairs(watched)).not.toContain('company 12, contact 21')
    expect(pairs(watched)).toContain('company 12, contact 22')
  })

  test('an answer that is interrupted after its first page is read again from that page', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    const { trial, timed } = watched
    const id = 'crm_record_links.read'
    const cursors: (string | undefined)[] = []
    world.instead['contact'] = ({ query }) => {
      if (query['related_id'] !== uuid(12)) return undefined
      cursors.push(query['cursor'])
      const next = query['cursor'] === undefined ? 'more' : null
      const page_info = { has_next_page: next !== null, end_cursor: next }
      return { body: { data: [{ id: uuid(next ? 22 : 23), object: 'contact' }], page_info } }
    }
    const task = { feed: id, scope: 'contact<company', key: uuid(12), dueAt: timed.context.now() }
    await trial.store.transaction(() => trial.store.tasks.demand(task))
    await (await timed.ask(id)).apply()
    timed.context.backoffs.failed(id, '')
    expect(() => timed.ask(id)).toThrow('nothing of crm_record_links.read is due')
    timed.context.backoffs.answered(id)
    await timed.drain()
    expect(cursors).toEqual([undefined, undefined, 'more'])
    expect(pairs(watched)).toEqual(
      expect.arrayContaining(['company 12, contact 22', 'company 12, contact 23']),
    )
  })

  test('an answer for a record that was deleted meanwhile is dropped, from either side', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    const { trial, timed } = watched
    world.links.add('company 12, contact 21')
    for (const [scope, number, gone] of [
      ['company<contact', 21, ['contact', uuid(21)]],
      ['contact<company', 11, ['contact', uuid(21)]],
    ] as const) {
      const task = { feed: 'crm_record_links.read', scope, key: uuid(number), dueAt: timed.context.now() }
      await trial.store.transaction(() => trial.store.tasks.demand(task))
      const answer = await timed.ask('crm_record_links.read')
      await trial.store.transaction(() => trial.store.tombstone('crm_records', [gone], timed.context.now()))
      await answer.apply()
    }
    expect(pairs(watched)).toEqual(['deal 1, company 11'])
  })

  test('links that became due again while the answer was on its way are read again', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    const { timed } = watched
    const tell = async (number: number) => {
      world.activities.push(event(number, number, ['contact 22', 'company 12'], { source_type: 'MESSAGE' }))
      wantList(timed.context, 'activities.list')
      await (await timed.ask('activities.list')).apply()
    }
    await tell(1)
    const answers = [await timed.ask('crm_record_links.read'), await timed.ask('crm_record_links.read')]
    timed.moveClock(1000)
    world.links.add('company 12, contact 22')
    await tell(2)
    for (const answer of answers) await answer.apply()
    expect(pairs(watched)).not.toContain('company 12, contact 22')
    await timed.drain()
    expect(pairs(watched)).toContain('company 12, contact 22')
  })
})

describe('an item of an answer that is not a record', () => {
  const open = ({ trial }: Watched) =>
    trial.column('SELECT count(*) FROM sync_rejects WHERE resolved_at IS NULL')[0]

  /** Asks for one side of the first deal alone. */
  const ask = async ({ trial, timed }: Watched, scope: string) => {
    const task = { feed: 'crm_record_links.read', scope, key: uuid(1), dueAt: timed.context.now() }
    await trial.store.transaction(() => trial.store.tasks.demand(task))
    await timed.drain()
  }

  test('the reject is resolved by the next answer from the same side, and by no other side', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    world.instead['company'] = ({ query }) => (query['related_id'] ? v2Page([{ fields: {} }]) : undefined)
    await ask(watched, 'company<deal')
    await ask(watched, 'contact<deal')
    expect(open(watched)).toBe(1)
    delete world.instead['company']
    await ask(watched, 'company<deal')
    expect(open(watched)).toBe(0)
  })

  test('the side that is not chosen is read again after a week while it has a reject, also in a backfill', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    const isUnchosen = (line: string) => line.startsWith('deal of company')
    world.instead['deal'] = ({ query }) => (query['related_id'] ? v2Page([{ fields: {} }]) : undefined)
    const task = { feed: 'crm_record_links.read', scope: 'deal<company', key: uuid(11) }
    const { trial, timed } = watched
    await trial.store.transaction(() => trial.store.tasks.demand({ ...task, dueAt: timed.context.now() }))
    await timed.drain()
    expect([open(watched), count(trial, 'deal<company')]).toEqual([1, [1]])
    expect(pairs(watched)).toContain('deal 1, company 11')
    const before = world.askedLinks().filter(isUnchosen).length
    await trial.run(RESOURCES)
    expect(world.askedLinks().filter(isUnchosen).length).toBe(before + 1)
    delete world.instead['deal']
    await trial.run(RESOURCES)
    expect([open(watched), count(trial, 'deal<company')]).toEqual([0, [0]])
  })

  test('the reject is not resolved by a later page of the same answer', async () => {
    const world = await startLinked()
    const watched = await watch(world)
    world.instead['company'] = ({ query }) => {
      if (query['related_id'] === undefined) return undefined
      return query['cursor'] === undefined ? v2Page([{ fields: {} }], 'two') : v2Page([])
    }
    await ask(watched, 'company<deal')
    expect(open(watched)).toBe(1)
  })
})
