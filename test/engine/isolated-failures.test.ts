import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import { wantList } from '../../src/engine/due/wants.ts'
import { recordOutcome } from '../../src/engine/run/round-end.ts'
import { runs, share } from '../support/effort.ts'
import {
  refused,
  type ScriptedAnswer,
  type ScriptedApi,
  startScriptedApi,
  v1Page,
  v2Page,
} from '../support/scripted-api.ts'
import { scriptedList } from '../support/scripted-lists.ts'
import {
  message,
  minutesBack,
  NEWEST,
  outcomeOf,
  startTrial,
  stateOf,
  type Trial,
  uuid,
} from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

/** A single bad item is put off and reported. Everything next to it is read. */

type AtEnd = ScriptedApi['atEnd']

describe('an id that no request can contain', () => {
  const HOSTILE = [
    'half \ud800',
    '\udc00',
    '\ud800\ud800',
    'nul \u0000',
    '\u0000',
    '../..',
    '.',
    '%2f',
    'é',
    'é',
  ]

  test.concurrent('the id is rejected from a list of keys, and the run reads all others', async context => {
    const id = fc.oneof(
      fc.constantFrom(...HOSTILE, 'x'.repeat(100_000)),
      fc.string({ unit: 'binary', maxLength: 5 }),
      fc.string({ unit: fc.integer({ min: 0xd7f0, max: 0xe010 }).map(code => String.fromCharCode(code)) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(id, { maxLength: 12 }), async ids => {
        const api = await startScriptedApi(context.onTestFinished)
        const stopping = new AbortController()
        api.on('/v1/meetings', () => v1Page(ids.map(one => ({ meeting_id: one }))))
        api.on('/v1/meetings/{id}', ({ params: [one] }) => {
          if (api.requests.length > 10 * (1 + ids.length)) stopping.abort()
          return { body: { data: { meeting_id: one } } }
        })
        const trial = await startTrial(api)
        await trial.run(['meetings'], { signal: stopping.signal })
        const nameable = ids.filter(one => one !== '' && one.isWellFormed())
        const readable = nameable.filter(one => one.length < 10_000)
        expect(trial.column('SELECT id FROM live_meetings').toSorted()).toEqual(readable.toSorted())
        // An id too long for the server is named in a request, and the meeting that it lists is never read.
        expect(trial.column('SELECT count(*) FROM sync_rejects')).toEqual([ids.length - readable.length])
        expect(api.requests.length).toBeLessThan(10 * (1 + ids.length))
      }),
      { numRuns: runs(12) },
    )
  })
})

describe('a failing page of a timeline', () => {
  const MESSAGES = { time: 'received_at', from: 'received_from', to: 'received_to' } as const

  /** A list on which a page with one of the bad rows answers with this status. */
  async function startHostile(atEnd: AtEnd, count: number, bad: readonly number[], status: number) {
    const api = await startScriptedApi(atEnd)
    const rows = Array.from({ length: count }, (_, index) => message(index + 1))
    const badIds = new Set(bad.map(uuid))
    const list = scriptedList({
      ...MESSAGES,
      rows,
      pageSize: 100,
      spoilt: ({ id }) => (badIds.has(id) ? refused(status) : undefined),
    })
    api.on('/v2/messages', list.handler)
    const trial = await startTrial(api)
    return { api, trial, mend: () => badIds.clear() }
  }

  const stored = 'SELECT id FROM live_message_copies ORDER BY 1'
  const unread = 'SELECT count(*) FROM sync_rejects WHERE resolved_at IS NULL'
  const all = (count: number, but: readonly number[]) =>
    Array.from({ length: count }, (_, index) => index + 1)
      .filter(number => !but.includes(number))
      .map(uuid)

  const BAD_ROWS: [where: string, status: number, bad: number[]][] = [
    ['two next to each other', 500, [77, 78]],
    ['in the middle', 500, [150]],
    ['the newest', 500, [1]],
    ['the oldest', 500, [300]],
    ['in the middle', 410, [150]],
    ['the newest', 410, [1]],
    ['the newest', 422, [1]],
    ['several', 500, [3, 99, 100, 101, 250]],
  ]

  test.concurrent.for(share(BAD_ROWS))(
    'the failing page costs only its bad row: %s (%i)',
    async ([, status, bad], context) => {
      const { api, trial, mend } = await startHostile(context.onTestFinished, 300, bad, status)
      expect(outcomeOf(await trial.run(['messages']), 'messages')).toBe('failed')
      expect(trial.column(stored)).toEqual(all(300, bad))
      // Bounds are inclusive and rounded up, so that up to three neighbouring spans of a millisecond hold the row.
      const open = Number(trial.column(unread))
      expect(open).toBeGreaterThanOrEqual(bad.length)
      expect(open).toBeLessThanOrEqual(3 * bad.length)
      expect(api.requests.length).toBeLessThan(50 + 250 * bad.length)
      mend()
      expect(outcomeOf(await trial.run(['messages']), 'messages')).toBe('complete')
      expect(trial.column(stored)).toEqual(all(300, []))
      expect(trial.column(unread)).toEqual([0])
    },
  )
})

describe('a failing single read', () => {
  const MINUTE = 60_000
  const HOUR = 60 * MINUTE

  /** Makes keys due, the last one first. */
  const demand = ({ store }: Trial, feed: string, keys: readonly string[], scope = '') =>
    store.transaction(() => {
      keys.forEach((key, index) => {
        const sortAt = new Date(Date.UTC(2026, 0, 1) + index).toISOString()
        store.tasks.demand({ feed, scope, key, sortAt, dueAt: new Date().toISOString() })
      })
    })
  const failuresOf = ({ all }: Trial, feed: string) =>
    all(`SELECT key, failures FROM sync_tasks WHERE feed = '${feed}' AND failures > 0 ORDER BY key`)
  const timesAsked = (api: ScriptedApi, route: string, key: string) =>
    api.asked(route).filter(({ params: [one] }) => one === key).length

  test.concurrent.for([500, 400])(
    'the read is postponed with growing waits, and the others are made at once (%i)',
    async (status, context) => {
      const api = await startScriptedApi(context.onTestFinished)
      api.on('/v1/collections/{id}', ({ params: [id] }) =>
        id === 'bad' ? refused(status) : { body: { data: { id } } },
      )
      const trial = await startTrial(api)
      const timed = await startTimed(api, trial, ['collections'])
      const probe = 'collections.list.probe'
      await demand(trial, probe, ['a', 'b', 'bad'])
      await timed.drain()
      const asked = (key: string) => timesAsked(api, '/v1/collections/{id}', key)
      expect(['a', 'b', 'bad'].map(asked)).toEqual([1, 1, 1])
      expect(failuresOf(trial, probe)).toEqual([{ key: 'bad', failures: 1 }])
      expect(trial.store.tasks.countWaiting(probe, null), 'it is not the API that is not ready').toBe(0)
      const afterMinutes = async (minutes: number) => {
        timed.moveClock(minutes * MINUTE)
        await timed.drain()
        return asked('bad')
      }
      expect(await afterMinutes(14)).toBe(1)
      expect(await afterMinutes(2)).toBe(2)
      expect(await afterMinutes(28)).toBe(2)
      expect(await afterMinutes(4)).toBe(3)
    },
  )

  test.concurrent('a failing read waits no longer because its earlier answers were not final', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    let fails = false
    const withoutText = message(1, { received_at: new Date().toISOString() })
    api.on('/v2/messages', () => v2Page([withoutText]))
    api.on('/v2/messages/{id}', () => (fails ? refused(400) : { body: withoutText }))
    const trial = await startTrial(api)
    const resources = ['messages', 'message_bodies'] as const
    await trial.run(resources)
    const timed = await startTimed(api, trial, resources)
    const asked = () => timesAsked(api, '/v2/messages/{id}', uuid(1))
    const afterHours = async (hours: number) => {
      timed.moveClock(hours * HOUR)
      await timed.drain()
      return asked()
    }
    for (const hours of [3, 5, 9, 17]) await afterHours(hours)
    const before = asked()
    fails = true
    expect(await afterHours(33)).toBe(before + 1)
    expect(await afterHours(0.2)).toBe(before + 1)
    expect(await afterHours(0.1)).toBe(before + 2)
  })

  const COPIES = [1, 2, 3].map(number =>
    message(number, { header_message_id: '<one>', received_at: minutesBack(10 - number) }),
  )

  /** An e-mail with three copies. The text of a copy is its id, and the read of a bad copy answers as given. */
  async function startCopies(atEnd: AtEnd, bad: ReadonlyMap<string, ScriptedAnswer>) {
    const api = await startScriptedApi(atEnd)
    api.on('/v2/messages', () => v2Page(COPIES.toReversed()))
    api.on(
      '/v2/messages/{id}',
      ({ params: [id = ''] }) =>
        bad.get(id) ?? { body: { ...COPIES.find(copy => copy.id === id), text: `of ${id}` } },
    )
    const trial = await startTrial(api)
    return {
      ...{ api, trial },
      asked: () => COPIES.map(({ id }) => timesAsked(api, '/v2/messages/{id}', id)),
      texts: () => trial.all('SELECT text, text_state FROM messages'),
    }
  }
  const BODIES = ['messages', 'message_bodies'] as const
  const WAITING = "SELECT key FROM sync_tasks WHERE feed = 'message_bodies.read'"
  const withText = (number: number) => [{ text: `of ${uuid(number)}`, text_state: 'present' }]

  test.concurrent.for<[what: string, answer: ScriptedAnswer]>([
    ['refused with 403', refused(403)],
    ['failing with 500', refused(500)],
    ['of another form', { body: { ...COPIES[0], text: 7 } }],
    ['without an id', { body: { ...COPIES[0], id: null, text: 'lost' } }],
  ])(
    'an e-mail has the text of its next copy while the read of the first one is %s',
    async ([, answer], context) => {
      const bad = new Map([[uuid(1), answer]])
      const { trial, asked, texts } = await startCopies(context.onTestFinished, bad)
      await trial.run(BODIES)
      expect(texts()).toEqual(withText(2))
      expect(trial.column(WAITING)).toEqual([uuid(1)])
      const [tries = 0, ...others] = asked()
      expect(others).toEqual([1, 0])
      bad.clear()
      trial.passTime(25 * HOUR)
      expect(outcomeOf(await trial.run(BODIES), 'message_bodies')).toBe('complete')
      expect(texts()).toEqual(withText(1))
      expect(asked()).toEqual([tries + 1, 1, 0])
    },
  )

  test.concurrent('a failing copy is read no more once an earlier copy has the text', async context => {
    const bad = new Map([1, 2].map(number => [uuid(number), refused(403)]))
    const { api, trial, asked, texts } = await startCopies(context.onTestFinished, bad)
    const timed = await startTimed(api, trial, BODIES)
    await timed.drain()
    expect(texts()).toEqual(withText(3))
    expect(asked()).toEqual([1, 1, 1])
    expect(stateOf(trial, 'message_bodies')).toBe('failing')
    bad.delete(uuid(1))
    timed.moveClock(HOUR)
    await timed.drain()
    expect(texts()).toEqual(withText(1))
    timed.moveClock(30 * 24 * HOUR)
    await timed.drain()
    expect(asked()).toEqual([2, 2, 1])
    expect(trial.column(WAITING)).toEqual([])
  })

  test.concurrent('a failing read of a backfill delays no other, and the next run retries it', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    let isBad = true
    api.on('/v1/collections/{id}', ({ params: [id] }) =>
      isBad && id === 'bad' ? refused(400) : { body: { data: { id } } },
    )
    const trial = await startTrial(api)
    const probe = 'collections.list.probe'
    const good = Array.from({ length: 9 }, (_, index) => `a${index}`)
    await demand(trial, probe, [...good, 'bad'])
    const oneByOne = { concurrency: 1 }
    expect(outcomeOf(await trial.run(['collections'], oneByOne), 'collections')).toBe('failed')
    expect(trial.column('SELECT id FROM collections ORDER BY 1')).toEqual(good)
    isBad = false
    expect(outcomeOf(await trial.run(['collections']), 'collections')).toBe('complete')
    expect(trial.column('SELECT id FROM collections ORDER BY 1')).toEqual([...good, 'bad'])
  })

  test.concurrent('a bad id among a hundred of one request is found by halving', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    const bad = [17, 18, 99].map(uuid)
    const answered: string[] = []
    api.on('/v2/messages', ({ query: { ids = '' } }) => {
      const keys = ids.split(',')
      if (keys.some(key => bad.includes(key))) return refused(500)
      answered.push(...keys)
      return v2Page(keys.map(key => message(Number(key.slice(-4)))))
    })
    const trial = await startTrial(api)
    const timed = await startTimed(api, trial, ['messages'])
    await demand(
      trial,
      'messages.list.probe',
      Array.from({ length: 150 }, (_, index) => uuid(index + 1)),
    )
    await timed.drain()
    expect(answered.filter(key => key !== '')).toHaveLength(147)
    expect(failuresOf(trial, 'messages.list.probe')).toEqual(bad.map(key => ({ key, failures: 1 })))
    expect(api.requests.length).toBeLessThan(2 * 7 * bad.length + 10)
  })

  test.concurrent('a failing read of a changed record leaves the other changes to be read', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    const shown = (key: string) => ({ id: key, object: 'deal', fields: {}, updated_at: null })
    api.on('/v2/objects/{object}/records', ({ query: { ids = '' } }) => {
      const keys = ids === '' ? [] : ids.split(',')
      return keys.includes(uuid(1)) ? refused(500) : v2Page(keys.map(shown))
    })
    const trial = await startTrial(api)
    const timed = await startTimed(api, trial, ['crm_objects', 'crm_records'])
    await demand(trial, 'crm_records.list.changed', [1, 2, 3].map(uuid), 'deal')
    await demand(trial, 'crm_records.list.changed', [4].map(uuid), 'contact')
    await timed.drain()
    expect(trial.column('SELECT id FROM crm_records ORDER BY 1')).toEqual([2, 3, 4].map(uuid))
  })

  test.concurrent('ten failing reads of the newest items do not end a backfill of the others', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    const ids = Array.from({ length: 40 }, (_, index) => `m${String(index).padStart(2, '0')}`)
    const bad = new Set(ids.slice(0, 15))
    const start = (id: string) => new Date(Date.UTC(2026, 0, 50 - Number(id.slice(1)))).toISOString()
    api.on('/v1/meetings', () => v1Page(ids.map(id => ({ meeting_id: id, start_time: start(id) }))))
    api.on('/v1/meetings/{id}', ({ params: [id = ''] }) =>
      bad.has(id) ? refused(400) : { body: { data: { meeting_id: id } } },
    )
    const trial = await startTrial(api)
    const oneByOne = { concurrency: 1 }
    expect(outcomeOf(await trial.run(['meetings'], oneByOne), 'meetings')).toBe('failed')
    expect(trial.column('SELECT id FROM meetings ORDER BY 1')).toEqual(ids.filter(id => !bad.has(id)))
  })

  test.concurrent('a backfill whose single reads all fail leaves them to the next run after a few requests', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    const ids = Array.from({ length: 40 }, (_, index) => `m${String(index).padStart(2, '0')}`)
    let isBroken = true
    api.on('/v1/meetings', () => v1Page(ids.map(id => ({ meeting_id: id }))))
    api.on('/v1/meetings/{id}', ({ params: [id = ''] }) =>
      isBroken ? refused(500) : { body: { data: { meeting_id: id } } },
    )
    const trial = await startTrial(api)
    expect(outcomeOf(await trial.run(['meetings']), 'meetings')).toBe('failed')
    const asked = api.requests.filter(({ path }) => path.startsWith('/v1/meetings/'))
    expect(asked.length).toBeLessThan(20)
    const [reason] = trial.column("SELECT reason FROM sync_status WHERE resource = 'meetings'")
    expect(reason).toMatch(/Requests on this route keep failing: .*\. Run the command again later/)
    isBroken = false
    expect(outcomeOf(await trial.run(['meetings']), 'meetings')).toBe('complete')
    expect(trial.column('SELECT id FROM meetings ORDER BY 1')).toEqual(ids)
  })

  test.concurrent('the tasks of an unavailable object do not hide those of other objects', async context => {
    const api = await startScriptedApi(context.onTestFinished)
    api.on('/v2/objects/{object}/records', ({ params: [object] }) =>
      object === 'company' ? refused(404) : v2Page([]),
    )
    const trial = await startTrial(api)
    const timed = await startTimed(api, trial, ['crm_objects', 'crm_records', 'crm_record_links'])
    await timed.drain()
    const feed = 'crm_record_links.read'
    const many = Array.from({ length: 300 }, (_, index) => uuid(index + 1))
    await demand(trial, feed, [uuid(900)], 'contact<deal')
    await demand(trial, feed, many, 'company<deal')
    await timed.drain()
    await demand(trial, feed, [uuid(901)], 'contact<deal')
    await demand(trial, feed, many, 'company<deal')
    await timed.drain()
    const asked = api.requests.flatMap(({ params: [object], query }) =>
      object === 'contact' && query['related_id'] ? [query['related_id']] : [],
    )
    expect(asked).toEqual([900, 901].map(uuid))
  })
})

describe('a list of which one scope fails', () => {
  async function startObjects(atEnd: AtEnd, answer: () => ScriptedAnswer) {
    const api = await startScriptedApi(atEnd)
    const objects = ['deal', 'company', 'contact'].map(name => ({ name }))
    api.on('/v2/objects', () => ({ body: { data: objects } }))
    api.on('/v2/objects/{object}', ({ params: [name] }) => ({ body: { name, fields: [] } }))
    api.on('/v2/objects/{object}/records', ({ params: [object] }) =>
      object === 'company' ? answer() : v2Page([{ id: uuid(1), object, fields: {} }]),
    )
    return { api, trial: await startTrial(api) }
  }
  const RESOURCES = ['crm_objects', 'crm_records'] as const

  test.concurrent('the scope is postponed alone, gives a reason, and is read at most each quarter of an hour', async context => {
    let answer = refused(500)
    const { api, trial } = await startObjects(context.onTestFinished, () => answer)
    const timed = await startTimed(api, trial, RESOURCES)
    const settle = async () => {
      await timed.drain()
      await trial.store.transaction(() => {
        for (const name of RESOURCES) recordOutcome(timed.context, resourceNamed(name), true)
      })
      for (const name of RESOURCES) timed.context.runs.begin(name)
    }
    const asked = () => api.requests.filter(({ params: [object] }) => object === 'company').length
    await settle()
    expect(trial.column('SELECT object FROM crm_records ORDER BY 1')).toEqual(['contact', 'deal'])
    expect(stateOf(trial, 'crm_records')).toBe('failing')
    // The first requests are for the object itself, and for its records with full and with smaller pages.
    for (let minutes = 0; minutes < 24 * 60; minutes += 5) {
      timed.moveClock(5 * 60_000)
      await timed.drain()
    }
    expect(asked()).toBeLessThan(10 + (24 * 60) / 15)
    answer = v2Page([{ id: uuid(2), object: 'company', fields: {} }])
    timed.moveClock(15 * 60_000)
    await settle()
    await settle()
    expect(trial.column('SELECT object FROM crm_records ORDER BY 1')).toEqual(['company', 'contact', 'deal'])
    expect(stateOf(trial, 'crm_records')).toBe('ok')
  })

  test.concurrent('the scope is read in smaller pages from its top when a page is too large', async context => {
    const { api, trial } = await startObjects(context.onTestFinished, () => v2Page([]))
    const rows = Array.from({ length: 30 }, (_, index) => ({
      id: uuid(index),
      object: 'company',
      fields: {},
    }))
    api.on('/v2/objects/{object}/records', ({ params: [object], query: { limit, cursor } }) => {
      if (object !== 'company') return v2Page([])
      if (limit !== '10') return { text: `"${'x'.repeat(1_100_000)}"` }
      const from = Number(cursor ?? 0)
      return v2Page(rows.slice(from, from + 10), from + 10 < rows.length ? String(from + 10) : undefined)
    })
    expect((await trial.run(RESOURCES)).complete).toBe(true)
    expect(trial.column('SELECT count(*) FROM crm_records')).toEqual([30])
  })
})

describe('a workspace with bad rows anywhere', () => {
  const MESSAGES = { time: 'received_at', from: 'received_from', to: 'received_to' } as const
  const RESOURCES = ['messages', 'message_bodies', 'meetings'] as const

  const POLLS = 12

  const FAULTS = {
    error: refused(500),
    garbled: { text: '<html>' },
    cut: { cut: true },
    // Larger than the trial's limit for a response.
    large: { text: `"${'x'.repeat(1_100_000)}"` },
  } satisfies Record<string, ScriptedAnswer>

  interface Bad {
    messages: readonly number[]
    texts: readonly number[]
    meetings: readonly number[]
    fault: keyof typeof FAULTS
  }

  const numbers = (size: number, most: number) => fc.uniqueArray(fc.nat(size - 1), { maxLength: most })
  const worlds = fc.integer({ min: 20, max: 250 }).chain(size =>
    fc.record({
      size: fc.constant(size),
      /** Time between two messages, in ms. */
      apart: fc.constantFrom(5, 900, 60_000, 7_200_000),
      bad: fc.record({
        messages: numbers(size, 3),
        texts: numbers(size, 4),
        meetings: numbers(size, 4),
        fault: fc.constantFrom<keyof typeof FAULTS>('error', 'garbled', 'cut', 'large'),
      }),
    }),
  )

  /** Every answer with a bad item fails, until all items are repaired. */
  async function startWorkspace(atEnd: AtEnd, size: number, apart: number, bad: Bad) {
    const api = await startScriptedApi(atEnd)
    const names = Array.from({ length: size }, (_, number) => `m${number}`)
    let isMended = false
    const faultFor = (which: readonly number[], number: number) =>
      !isMended && which.includes(number) ? FAULTS[bad.fault] : undefined
    const numberOf = (id: string) => Number(id.split('-').at(-1))
    const received = (number: number) => minutesBack((number * apart) / 60_000)
    const list = scriptedList({
      ...MESSAGES,
      rows: names.map((_, number) => message(number, { received_at: received(number) })),
      pageSize: 100,
      spoilt: ({ id }) => faultFor(bad.messages, numberOf(id)),
    })
    api.on('/v2/messages', list.handler)
    api.on('/v2/messages/{id}', ({ params: [id = ''] }) => {
      const row = list.rows.find(one => one.id === id)
      return (
        faultFor(bad.texts, numberOf(id)) ?? (row ? { body: { ...row, text: `of ${id}` } } : refused(404))
      )
    })
    api.on('/v1/meetings', () => v1Page(names.map(name => ({ meeting_id: name }))))
    api.on(
      '/v1/meetings/{id}',
      ({ params: [id = ''] }) =>
        faultFor(bad.meetings, Number(id.slice(1))) ?? { body: { data: { meeting_id: id, title: id } } },
    )
    return {
      api,
      list,
      expected: () => {
        const shown = (which: readonly number[], number: number) => isMended || !which.includes(number)
        const rows = list.rows.map(({ id }) => id).filter(id => shown(bad.messages, numberOf(id)))
        return {
          messages: rows.toSorted(),
          texts: rows.filter(id => shown(bad.texts, numberOf(id))).toSorted(),
          meetings: names.filter((_, number) => shown(bad.meetings, number)).toSorted(),
        }
      },
      mend: () => {
        isMended = true
      },
      /** The requests that it takes to read everything and to find each bad item. */
      budget: 50 + 2 * size + 250 * (bad.messages.length + bad.texts.length + bad.meetings.length),
    }
  }

  const storedIn = ({ column }: Trial) => ({
    messages: column('SELECT id FROM live_message_copies ORDER BY 1'),
    texts: column("SELECT id FROM message_copies WHERE text_state = 'present' ORDER BY 1"),
    meetings: column('SELECT id FROM live_meetings ORDER BY 1'),
  })

  test.concurrent('a backfill reads everything except the bad rows, and the next one reads those after a repair', async context => {
    await fc.assert(
      fc.asyncProperty(worlds, async ({ size, apart, bad }) => {
        const world = await startWorkspace(context.onTestFinished, size, apart, bad)
        const trial = await startTrial(world.api)
        const isBad = [bad.messages, bad.texts, bad.meetings].some(({ length }) => length > 0)
        expect((await trial.run(RESOURCES)).complete).toBe(!isBad)
        expect(storedIn(trial)).toEqual(world.expected())
        expect(world.api.requests.length).toBeLessThan(world.budget)
        world.mend()
        expect((await trial.run(RESOURCES)).complete).toBe(true)
        expect(storedIn(trial)).toEqual(world.expected())
        expect(trial.column('SELECT count(*) FROM sync_rejects WHERE resolved_at IS NULL')).toEqual([0])
      }),
      { numRuns: runs(6) },
    )
  })

  test.concurrent('the daemon reads everything except the bad rows, and polls the newest end meanwhile', async context => {
    await fc.assert(
      fc.asyncProperty(worlds, async ({ size, apart, bad }) => {
        const world = await startWorkspace(context.onTestFinished, size, apart, bad)
        const trial = await startTrial(world.api)
        const timed = await startTimed(world.api, trial, RESOURCES)
        for (let polls = 0; polls < POLLS; polls += 1) {
          const id = size + polls
          const receivedAt = new Date(NEWEST + 1_000 * (polls + 1)).toISOString()
          world.list.rows.push(message(id, { received_at: receivedAt }))
          wantList(timed.context, 'messages.list')
          await timed.drain()
          timed.moveClock(10_000)
          // A bad row on the newest page is found first.
          if (polls > 1 + 2 * bad.messages.length) expect(storedIn(trial).messages).toContain(uuid(id))
        }
        expect(storedIn(trial)).toEqual(world.expected())
        expect(world.api.requests.length).toBeLessThan(world.budget + 10 * POLLS)
        world.mend()
        timed.moveClock(8 * 86_400_000)
        await timed.drain()
        expect(storedIn(trial)).toEqual(world.expected())
      }),
      { numRuns: runs(6) },
    )
  })
})

test.concurrent('a meeting leaves a collection whose id contains a NUL', async context => {
  const api = await startScriptedApi(context.onTestFinished)
  let listed = ['x', 'y']
  api.on('/v1/collections', () => v1Page([{ id: 'a\u0000b' }]))
  api.on('/v1/meetings', () => v1Page(listed.map(meeting_id => ({ meeting_id }))))
  const trial = await startTrial(api)
  const read = async () => {
    await trial.run(['collections', 'collection_meetings'])
    trial.passTime(86_400_000)
    return trial.column('SELECT meeting_id FROM collection_meetings ORDER BY 1')
  }
  expect(await read()).toEqual(['x', 'y'])
  listed = ['x']
  await read()
  expect(await read()).toEqual(['x'])
})
