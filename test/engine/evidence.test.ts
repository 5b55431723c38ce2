import { describe, expect, test } from 'vitest'
import type { BackfillResult } from '../../src/engine/run/backfill.ts'
import { readStatusReport } from '../../src/store/status/report.ts'
import { numberedPage, refused, startScriptedApi, v1Page, v2Page } from '../support/scripted-api.ts'
import { scriptedList } from '../support/scripted-lists.ts'
import { message, minutesBack, outcomeOf, startTrial, stateOf, uuid } from './trial-backfill.ts'

const live = (table: string, key = 'id') => `SELECT ${key} FROM ${table} WHERE _deleted_at IS NULL ORDER BY 1`

/** The rows whose deletion a run has confirmed, without resources that have none. */
const deletedRows = ({ resources }: BackfillResult) =>
  Object.fromEntries(resources.filter(one => one.rowsDeleted > 0).map(one => [one.resource, one.rowsDeleted]))

/** An object name that an administrator chose. It must be treated as data everywhere. */
const HOSTILE = `x"'; DROP TABLE crm_records; --/../%2e?#&`

const member = (id: string) => ({ id, name: id, email: null, role: null })
const activity = (number: number, more = {}) => ({
  id: uuid(number),
  type: 'call',
  source_type: 'OBJECT_CHANGE_EVENT',
  source_id: 'x',
  occurred_at: minutesBack(number),
  created_via: null,
  actor: null,
  links: [],
  ...more,
})

const MESSAGES = { time: 'received_at', from: 'received_from', to: 'received_to' } as const
const ACTIVITIES = { time: 'occurred_at', from: 'occurred_from', to: 'occurred_to' } as const

describe('deletions that a second pass confirms (members)', () => {
  test('a member missed by two passes in a row is deleted, and revived when it comes back', async () => {
    const api = await startScriptedApi()
    let members = ['a', 'b']
    api.on('/v1/members', () => numberedPage(members.map(member)))
    const trial = await startTrial(api)
    await trial.run(['members'])
    members = ['a']
    const before = api.requests.length
    expect((await trial.run(['members'])).resources[0]?.rowsDeleted).toBe(1)
    expect(api.requests.length - before).toBe(2)
    expect(trial.column(live('members'))).toEqual(['a'])
    members = ['a', 'b']
    await trial.run(['members'])
    expect(trial.column(live('members'))).toEqual(['a', 'b'])
  })

  test('a member that the second pass shows again stays', async () => {
    const api = await startScriptedApi()
    let pass = 0
    api.on('/v1/members', () => numberedPage(pass++ === 1 ? [member('a')] : [member('a'), member('b')]))
    const trial = await startTrial(api)
    await trial.run(['members'])
    expect((await trial.run(['members'])).complete).toBe(true)
    expect(pass).toBe(3)
    expect(trial.column(live('members'))).toEqual(['a', 'b'])
  })

  test('the passes end although each misses another member', async () => {
    const api = await startScriptedApi()
    const all = ['a', 'b', 'c'].map(member)
    let pass = 0
    api.on('/v1/members', () => {
      pass += 1
      if (pass === 1 || pass > 100) return numberedPage(all)
      return numberedPage(pass % 2 === 0 ? [...all.slice(0, 2)] : [...all.slice(1)])
    })
    const trial = await startTrial(api)
    await trial.run(['members'])
    await trial.run(['members'])
    expect(pass).toBeLessThan(20)
    expect(trial.column(live('members'))).toEqual(['a', 'b', 'c'])
  })

  test('a page-numbered list whose size changes during a pass is read again, and no row is suspected', async () => {
    const api = await startScriptedApi()
    const page = (number: number, size: number, ids: string[]) => ({
      body: {
        data: ids.map(member),
        pagination: { page: number, limit: 2, total_size: size, total_pages: 2 },
      },
    })
    const answers = [page(1, 4, ['a', 'b']), page(2, 3, ['d']), page(1, 3, ['b', 'c']), page(2, 3, ['d'])]
    let complete = true
    api.on('/v1/members', ({ query }) => {
      if (complete) return query['page'] === '2' ? page(2, 4, ['c', 'd']) : page(1, 4, ['a', 'b'])
      return (
        answers.shift() ?? page(Number(query['page'] ?? 1), 3, query['page'] === '2' ? ['d'] : ['b', 'c'])
      )
    })
    const trial = await startTrial(api)
    await trial.run(['members'])
    complete = false
    expect((await trial.run(['members'])).complete).toBe(true)
    expect(trial.column(live('members'))).toEqual(['b', 'c', 'd'])
  })

  test.each([
    ['once', [8, 7, 7, 7]],
    ['and changes back', [8, 7, 8, 8]],
  ])('a page-numbered list whose size changes %s in every pass loses no row', async (_, sizes) => {
    const api = await startScriptedApi()
    const rows = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    let isMoving = false
    api.on('/v1/members', ({ query }) => {
      const number = Number(query['page'] ?? 1)
      // Once a row of the first page is gone, the third row is on that page, which was already read.
      const ids =
        isMoving && number > 1
          ? rows.slice(number * 2 - 1, number * 2 + 1)
          : rows.slice(number * 2 - 2, number * 2)
      const size = isMoving ? sizes[number - 1] : rows.length
      return {
        body: {
          data: ids.map(member),
          pagination: { page: number, limit: 2, total_size: size, total_pages: 4 },
        },
      }
    })
    const trial = await startTrial(api)
    await trial.run(['members'])
    isMoving = true
    for (let run = 0; run < 3; run += 1) await trial.run(['members'])
    expect(trial.column(live('members'))).toEqual(rows)
  })

  test('a page-numbered list that shows more rows than it states to have deletes none', async () => {
    const api = await startScriptedApi()
    let shown = ['a', 'b', 'c']
    let size = 3
    api.on('/v1/members', () => ({
      body: {
        data: shown.map(member),
        pagination: { page: 1, limit: 200, total_size: size, total_pages: Math.min(size, 1) },
      },
    }))
    const trial = await startTrial(api)
    await trial.run(['members'])
    shown = ['a', 'b']
    for (size of [0, 1]) {
      for (let run = 0; run < 3; run += 1) await trial.run(['members'])
      expect(trial.column(live('members'))).toEqual(['a', 'b', 'c'])
      expect(trial.logged()).toContain('List shows more rows than it states to have')
    }
    size = 2
    await trial.run(['members'])
    expect(trial.column(live('members'))).toEqual(['a', 'b'])
  })

  test('sync_status says that deletions are not recognised, until a pass shows as many rows as the list states', async () => {
    const api = await startScriptedApi()
    let shown = ['a', 'b', 'c']
    let tooMany = 0
    api.on('/v1/members', () => ({
      body: {
        data: shown.map(member),
        pagination: { page: 1, limit: 200, total_size: shown.length + tooMany, total_pages: 1 },
      },
    }))
    const trial = await startTrial(api)
    const passes = async () => {
      await trial.run(['members'])
      const [row] = trial.all("SELECT state, reason, rows_live FROM sync_status WHERE resource = 'members'")
      const { resources } = readStatusReport({ path: trial.path, now: Date.now(), db: trial.store.db })
      return { ...row, since: resources.find(one => one.resource === 'members')?.size_differs_since }
    }
    const agreed = { state: 'ok', reason: null, since: null }
    expect(await passes()).toEqual({ ...agreed, rows_live: 3 })
    tooMany = 1
    shown = ['a', 'b']
    const begun = await passes()
    const reason = 'Deletions are not recognised: the list shows another number of rows than it states'
    expect(begun).toEqual({ state: 'ok', reason, rows_live: 3, since: expect.any(String) })
    trial.passTime(3_600_000)
    expect(await passes()).toEqual(begun)
    tooMany = 0
    expect(await passes()).toEqual({ ...agreed, rows_live: 2 })
  })

  test('a page-numbered list that shows fewer rows than it states to have deletes none', async () => {
    const api = await startScriptedApi()
    let shown = ['a', 'b', 'c']
    let size = 3
    api.on('/v1/members', () => ({
      body: {
        data: shown.map(member),
        pagination: { page: 1, limit: 200, total_size: size, total_pages: 1 },
      },
    }))
    const trial = await startTrial(api)
    await trial.run(['members'])
    shown = ['a', 'b', 'b']
    await trial.run(['members'])
    expect(trial.column(live('members'))).toEqual(['a', 'b', 'c'])
    shown = ['a', 'b']
    size = 2
    await trial.run(['members'])
    expect(trial.column(live('members'))).toEqual(['a', 'b'])
  })
})

describe('deletions that a single read confirms (teams, collections, activities)', () => {
  test('a team that the list misses is read, and deleted only on 404', async () => {
    const api = await startScriptedApi()
    let teams = ['a', 'b', 'c']
    const team = (id: string) => ({ id, name: id, member_ids: ['m'] })
    api.on('/v1/teams', () => numberedPage(teams.map(team)))
    api.on('/v1/teams/{id}', ({ params: [id = ''] }) =>
      id === 'b' ? { body: { data: team('b') } } : refused(404),
    )
    const trial = await startTrial(api)
    await trial.run(['teams'])
    teams = ['a']
    expect((await trial.run(['teams'])).complete).toBe(true)
    expect(trial.column(live('teams'))).toEqual(['a', 'b'])
    expect(
      api
        .asked('/v1/teams/{id}')
        .map(({ params }) => params[0])
        .sort(),
    ).toEqual(['b', 'c'])
    expect(trial.column('SELECT DISTINCT team_id FROM live_team_members ORDER BY 1')).toEqual(['a', 'b'])
    teams = ['a', 'b', 'c']
    await trial.run(['teams'])
    expect(trial.column(live('teams'))).toEqual(['a', 'b', 'c'])
  })

  test.each([
    [500, 'failed'],
    [400, 'failed'],
  ])('a single read that answers %i denies nothing', async (status, outcome) => {
    const api = await startScriptedApi()
    let collections = [{ id: 'a' }, { id: 'b' }]
    api.on('/v1/collections', () => v1Page(collections))
    api.on('/v1/collections/{id}', () => refused(status))
    const trial = await startTrial(api)
    await trial.run(['collections'])
    collections = [{ id: 'a' }]
    expect(outcomeOf(await trial.run(['collections']), 'collections')).toBe(outcome)
    expect(trial.column(live('collections'))).toEqual(['a', 'b'])
    expect(stateOf(trial, 'collections')).toBe('failing')
  })

  test.each([403, 404, 410])(
    'a collection that its list misses and whose single read answers %i is deleted',
    async status => {
      const api = await startScriptedApi()
      let collections = [{ id: 'a' }, { id: 'b' }]
      api.on('/v1/collections', () => v1Page(collections))
      api.on('/v1/collections/{id}', () => refused(status))
      const trial = await startTrial(api)
      await trial.run(['collections'])
      collections = [{ id: 'a' }]
      expect(outcomeOf(await trial.run(['collections']), 'collections')).toBe('complete')
      expect(trial.column(live('collections'))).toEqual(['a'])
    },
  )

  test('an answer for another record than the requested one denies nothing', async () => {
    const api = await startScriptedApi()
    let collections = [{ id: 'a' }, { id: 'b' }]
    api.on('/v1/collections', () => v1Page(collections))
    api.on('/v1/collections/{id}', () => ({ body: { id: 'something else' } }))
    const trial = await startTrial(api)
    await trial.run(['collections'])
    collections = [{ id: 'a' }]
    await trial.run(['collections'])
    expect(trial.column(live('collections'))).toEqual(['a', 'b'])
  })

  test('an activity that lost all links is kept with the values of the single read, which each backfill repeats', async () => {
    const api = await startScriptedApi()
    const link = { context_type: 'deal', context_id: 'd', origin: 'DIRECT' }
    const list = scriptedList({
      ...ACTIVITIES,
      rows: [1, 2, 3].map(number => activity(number, { links: [link] })),
      pageSize: 100,
    })
    api.on('/v2/activities', list.handler)
    api.on('/v2/activities/{id}', ({ params: [id] }) =>
      id === uuid(2) ? { body: activity(2) } : refused(404),
    )
    const trial = await startTrial(api)
    await trial.run(['activities'])
    list.rows.splice(1, 2)
    expect((await trial.run(['activities'])).complete).toBe(true)
    expect(trial.column(live('activities'))).toEqual([uuid(1), uuid(2)])
    expect(trial.column('SELECT activity_id FROM live_activity_links ORDER BY 1')).toEqual([uuid(1)])
    const asked = api.asked('/v2/activities/{id}').length
    await trial.run(['activities'])
    expect(api.asked('/v2/activities/{id}')).toHaveLength(asked + 1)
  })

  test('a field that only a single read showed goes when the list shows the activity again', async () => {
    const api = await startScriptedApi()
    const list = scriptedList({ ...ACTIVITIES, rows: [1, 2].map(number => activity(number)), pageSize: 100 })
    api.on('/v2/activities', list.handler)
    api.on('/v2/activities/{id}', () => ({ body: activity(2, { shown: 'once' }) }))
    const trial = await startTrial(api)
    const extra = () => trial.column(`SELECT _extra FROM activities WHERE id = '${uuid(2)}'`)[0]
    await trial.run(['activities'])
    const [missing] = list.rows.splice(1, 1)
    await trial.run(['activities'])
    expect(extra()).toBe('{"shown":"once"}')
    list.rows.push(...(missing ? [missing] : []))
    await trial.run(['activities'])
    expect(extra()).toBeNull()
  })
})

/** Two rows of a list whose endpoint leaves one of them out, by time and by `ids`. The other endpoint answers as given. */
const LEFT_OUT = {
  messages: {
    table: 'message_copies',
    list: '/v2/messages',
    read: '/v2/messages/{id}',
    row: (number: number): object => message(number),
  },
  crm_records: {
    table: 'crm_records',
    list: '/v2/objects/{object}/records',
    read: '/v2/objects/{object}/records/{id}',
    row: (number: number): object => ({
      id: uuid(number),
      object: 'deal',
      visibility: 'workspace',
      fields: {},
    }),
  },
} as const

describe('a row that its list and a request by ids leave out', () => {
  const start = async (resource: keyof typeof LEFT_OUT, status: number) => {
    const { table, list, read, row } = LEFT_OUT[resource]
    const api = await startScriptedApi()
    let shown = [1, 2]
    api.on('/v2/objects', () => ({ body: { data: [{ name: 'deal' }] } }))
    api.on('/v2/objects/{object}', ({ params: [name] }) =>
      name === 'deal' ? { body: { name, fields: [] } } : refused(404),
    )
    api.on(list, ({ params: [object = 'deal'] }) =>
      object === 'deal' ? v2Page(shown.map(row)) : refused(404),
    )
    api.on(read, () => (status === 200 ? { body: row(2) } : refused(status)))
    const trial = await startTrial(api)
    const chosen =
      resource === 'messages' ? (['messages'] as const) : (['crm_objects', 'crm_records'] as const)
    await trial.run(chosen)
    shown = [1]
    const outcome = outcomeOf(await trial.run(chosen), resource)
    return { api, read, outcome, left: trial.column(live(table)) }
  }

  describe.each(['messages', 'crm_records'] as const)('%s', resource => {
    test.each([
      ['is deleted when its single read answers 404', 404, 'complete', [1]],
      ['is deleted when its single read answers 403', 403, 'complete', [1]],
      ['is deleted when its single read answers 410', 410, 'complete', [1]],
      ['is deleted when its single read refuses the id', 400, 'complete', [1]],
      ['stays when its single read shows it', 200, 'complete', [1, 2]],
      ['stays when its single read fails', 500, 'failed', [1, 2]],
    ])('%s', async (_, status, outcome, left) => {
      const run = await start(resource, status)
      expect(run.left).toEqual(left.map(uuid))
      expect(run.outcome).toBe(outcome)
    })

    test('costs one single read, found or not', async () => {
      for (const status of [200, 404]) {
        const { api, read } = await start(resource, status)
        expect(api.asked(read)).toHaveLength(1)
      }
    })
  })
})

describe('deletions that a request by ids and a single read confirm (messages, CRM records)', () => {
  test('copies that the list misses are deleted when a read by ids does not show them either', async () => {
    const api = await startScriptedApi()
    const list = scriptedList({ ...MESSAGES, rows: [1, 2, 3, 4].map(n => message(n)), pageSize: 2 })
    let hidden: string[] = []
    api.on('/v2/messages', request => {
      if (request.query['ids'] !== undefined) return list.handler(request)
      const all = list.rows
      list.rows = all.filter(({ id }) => !hidden.includes(id))
      const answer = list.handler(request)
      list.rows = all
      return answer
    })
    const trial = await startTrial(api)
    await trial.run(['messages'])
    hidden = [uuid(2), uuid(3)]
    list.rows = list.rows.filter(({ id }) => id !== uuid(3))
    expect((await trial.run(['messages'])).complete).toBe(true)
    expect(trial.column(live('message_copies'))).toEqual([uuid(1), uuid(2), uuid(4)])
    const probes = api.requests.filter(({ query }) => query['ids'] !== undefined)
    expect(probes).toHaveLength(1)
    expect(probes[0]?.query['ids']?.split(',').sort()).toEqual([uuid(2), uuid(3)])
    expect(probes[0]?.query['limit']).toBe('100')
    hidden = []
    list.rows.push(message(3))
    await trial.run(['messages'])
    expect(trial.column(live('message_copies'))).toEqual([uuid(1), uuid(2), uuid(3), uuid(4)])
    expect(trial.column(live('messages'))).toEqual([uuid(1), uuid(2), uuid(3), uuid(4)])
  })

  test('the text of the next copy is read in the run that deletes the copy with the text', async () => {
    const api = await startScriptedApi()
    const copies = [1, 2].map(number => message(number, { header_message_id: '<one@mail>' }))
    const list = scriptedList({ ...MESSAGES, rows: copies, pageSize: 100 })
    api.on('/v2/messages', list.handler)
    api.on('/v2/messages/{id}', ({ params: [id] }) => {
      const copy = list.rows.find(row => row.id === id)
      return copy ? { body: { ...copy, text: `of ${id}` } } : refused(404)
    })
    const trial = await startTrial(api)
    const chosen = ['messages', 'message_bodies'] as const
    await trial.run([...chosen])
    const [first = ''] = trial.column('SELECT id FROM live_messages')
    list.rows = list.rows.filter(({ id }) => id !== first)
    expect((await trial.run([...chosen])).complete).toBe(true)
    const [left = ''] = list.rows.map(({ id }) => id)
    expect(trial.column('SELECT text FROM live_messages')).toEqual([`of ${left}`])
  })

  test('an answer in several pages is read to its end before any row is denied', async () => {
    const api = await startScriptedApi()
    const list = scriptedList({ ...MESSAGES, rows: [1, 2, 3].map(n => message(n)), pageSize: 100 })
    let hiding = false
    api.on('/v2/messages', request => {
      const { ids, cursor } = request.query
      if (ids !== undefined) return cursor === 'more' ? v2Page([message(3)]) : v2Page([message(2)], 'more')
      return hiding ? v2Page([message(1)]) : list.handler(request)
    })
    const trial = await startTrial(api)
    await trial.run(['messages'])
    hiding = true
    await trial.run(['messages'])
    expect(trial.column(live('message_copies'))).toEqual([uuid(1), uuid(2), uuid(3)])
  })

  test('a key that is not a UUID does not spoil the request for the others', async () => {
    const api = await startScriptedApi()
    api.on('/v2/activities', () =>
      v2Page([
        activity(1, { source_type: 'MESSAGE', source_id: 'odd one' }),
        activity(2, { source_type: 'MESSAGE', source_id: uuid(22) }),
      ]),
    )
    api.on('/v2/messages', ({ query: { ids } }) => {
      if (ids === undefined) return v2Page([])
      if (!ids.split(',').every(id => /^[0-9a-f-]{36}$/.test(id))) return refused(400)
      return v2Page([message(22)])
    })
    const trial = await startTrial(api)
    expect((await trial.run(['activities', 'messages'])).complete).toBe(true)
    expect(trial.column(live('message_copies'))).toEqual([uuid(22)])
    // Now only the odd key is left to request.
    expect((await trial.run(['activities', 'messages'])).complete).toBe(true)
  })

  test('a deleted record loses its links, and the other objects stay', async () => {
    const api = await startScriptedApi()
    const record = (object: string, number: number) => ({
      id: uuid(number),
      object,
      visibility: 'workspace',
      fields: {},
      created_at: null,
      updated_at: null,
      created_by: null,
      updated_by: null,
    })
    const stored: Record<string, number[]> = { deal: [1, 2], company: [11, 12], contact: [21] }
    api.on('/v2/objects', () => ({ body: { data: [{ name: 'deal' }] } }))
    api.on('/v2/objects/{object}', ({ params: [name] }) => ({ body: { name, fields: [] } }))
    api.on('/v2/objects/{object}/records', ({ params: [object = ''], query }) => {
      const all = (stored[object] ?? []).map(number => record(object, number))
      return v2Page(all.filter(({ id }) => query['ids'] === undefined || query['ids'].includes(id)))
    })
    const trial = await startTrial(api)
    const chosen = ['crm_objects', 'crm_records', 'crm_record_links'] as const
    expect((await trial.run(chosen)).complete).toBe(true)
    expect(trial.column('SELECT count(*) FROM crm_record_links')).toEqual([2 * 2 + 2 + 2])
    stored['deal'] = [1]
    await trial.run(['crm_objects', 'crm_records'])
    expect(trial.column(live('crm_records'))).toEqual([1, 11, 12, 21].map(uuid))
    expect(trial.column(`SELECT count(*) FROM crm_record_links WHERE record_id = '${uuid(2)}'`)).toEqual([0])
    stored['deal'] = [1, 2]
    await trial.run(chosen)
    expect(trial.column('SELECT count(*) FROM crm_record_links')).toEqual([2 * 2 + 2 + 2])
  })
})

describe('deletions that a detail confirms (meetings, playbooks, objects)', () => {
  const meeting = (id: string) => ({ meeting_id: id, title: id, overview_status: 'COMPLETED' })
  const chosen = ['activities', 'meetings', 'playbook_results'] as const

  test('a meeting that its list misses and whose detail answers 404 is deleted with its results', async () => {
    const api = await startScriptedApi()
    let listed = ['a', 'b', 'c']
    const readable = new Set(listed)
    api.on('/v1/meetings', () => v1Page(listed.map(meeting)))
    api.on('/v1/meetings/{id}', ({ params: [id = ''] }) =>
      readable.has(id) ? { body: { data: meeting(id) } } : refused(404),
    )
    api.on('/v1/meetings/{id}/playbook-results', ({ params: [id = ''] }) =>
      readable.has(id) ? { body: { data: [{ id: `result of ${id}` }] } } : refused(404),
    )
    const trial = await startTrial(api)
    expect((await trial.run(chosen)).complete).toBe(true)
    listed = ['a']
    readable.delete('c')
    expect(deletedRows(await trial.run(chosen))).toEqual({ meetings: 1, playbook_results: 1 })
    expect(trial.column(live('meetings'))).toEqual(['a', 'b'])
    expect(trial.column(live('playbook_results'))).toEqual(['result of a', 'result of b'])
    listed = ['a', 'b', 'c']
    readable.add('c')
    expect((await trial.run(chosen)).complete).toBe(true)
    expect(trial.column(live('meetings'))).toEqual(['a', 'b', 'c'])
    expect(trial.column(live('playbook_results'))).toEqual(['result of a', 'result of b', 'result of c'])
  })

  test('an inactive playbook stays live, though the list leaves it out', async () => {
    const api = await startScriptedApi()
    let active = true
    const playbook = () => ({ id: 'p', name: 'p', active, updated_at: null, talk_points: [] })
    api.on('/v1/playbooks', () => v1Page(active ? [{ id: 'p' }] : []))
    api.on('/v1/playbooks/{id}', () => ({ body: { data: playbook() } }))
    const trial = await startTrial(api)
    await trial.run(['playbooks'])
    active = false
    expect((await trial.run(['playbooks'])).complete).toBe(true)
    expect(trial.all('SELECT id, active FROM live_playbooks')).toEqual([{ id: 'p', active: 0 }])
  })

  test('an object that left its list and answers 404 is deleted with its records', async () => {
    const api = await startScriptedApi()
    let offered = true
    api.on('/v2/objects', () => ({ body: offered ? [{ name: HOSTILE }] : [] }))
    api.on('/v2/objects/{object}', ({ params: [name] }) =>
      offered && name === HOSTILE ? { body: { name, fields: [] } } : refused(404),
    )
    api.on('/v2/objects/{object}/records', ({ params: [object] }) =>
      offered && object === HOSTILE
        ? v2Page([{ id: uuid(1), object, visibility: 'workspace', fields: {} }])
        : refused(404),
    )
    const trial = await startTrial(api)
    expect((await trial.run(['crm_objects', 'crm_records'])).complete).toBe(true)
    expect(trial.column(live('crm_records'))).toEqual([uuid(1)])
    offered = false
    expect(deletedRows(await trial.run(['crm_objects', 'crm_records']))).toEqual({
      crm_objects: 1,
      crm_records: 1,
    })
    expect(trial.column("SELECT sum(rows_deleted) FROM sync_runs WHERE resource = 'crm_records'")).toEqual([
      1,
    ])
    expect(trial.column(live('crm_objects', 'name'))).toEqual([])
    expect(trial.column(live('crm_records'))).toEqual([])
  })

  test('a result that is missing from the complete answer of its meeting is deleted', async () => {
    const api = await startScriptedApi()
    let results = ['r1', 'r2']
    api.on('/v1/meetings', () => v1Page([meeting('a')]))
    api.on('/v1/meetings/{id}', () => ({ body: { data: meeting('a') } }))
    api.on('/v1/meetings/{id}/playbook-results', () => ({ body: { data: results.map(id => ({ id })) } }))
    const trial = await startTrial(api)
    await trial.run(chosen)
    results = ['r2']
    await trial.run(chosen)
    expect(trial.column(live('playbook_results'))).toEqual(['r2'])
  })
})

describe('deletions that the list itself confirms (collection_meetings)', () => {
  test('a meeting that left the collection is deleted when the list was read to its end, and not before', async () => {
    const api = await startScriptedApi()
    let meetings = ['m1', 'm2', 'm3']
    let whole = true
    api.on('/v1/collections', () => v1Page([{ id: 'c' }]))
    api.on('/v1/meetings', ({ query }) => {
      if (query['cursor'] !== undefined && !whole) return refused(500)
      const [first = '', ...rest] = meetings
      return query['cursor'] === undefined
        ? v1Page([{ id: first }], 'rest')
        : v1Page(rest.map(id => ({ id })))
    })
    const trial = await startTrial(api)
    const chosen = ['collections', 'collection_meetings'] as const
    const rows = 'SELECT meeting_id FROM live_collection_meetings ORDER BY 1'
    expect((await trial.run(chosen)).complete).toBe(true)
    expect(trial.column(rows)).toEqual(['m1', 'm2', 'm3'])
    meetings = ['m1', 'm3']
    whole = false
    expect((await trial.run(chosen)).complete).toBe(false)
    expect(trial.column(rows)).toEqual(['m1', 'm2', 'm3'])
    whole = true
    expect((await trial.run(chosen)).complete).toBe(true)
    expect(trial.column(rows)).toEqual(['m1', 'm3'])
  })
})

describe('an incomplete pass', () => {
  test('an incomplete pass deletes nothing, whatever it did not show', async () => {
    const api = await startScriptedApi()
    const rows = [1, 2, 3, 4, 5, 6].map(number => message(number))
    const list = scriptedList({ ...MESSAGES, rows, pageSize: 2 })
    let failing = false
    api.on('/v2/messages', request => {
      if (!failing) return list.handler(request)
      if (request.query['ids'] !== undefined) return v2Page([])
      return request.query['cursor'] === undefined ? v2Page([message(4)], 'more') : refused(500)
    })
    const trial = await startTrial(api)
    await trial.run(['messages'])
    failing = true
    expect(outcomeOf(await trial.run(['messages']), 'messages')).toBe('failed')
    expect(trial.column(live('message_copies'))).toEqual([1, 2, 3, 4, 5, 6].map(uuid))
    failing = false
    expect((await trial.run(['messages'])).complete).toBe(true)
    expect(trial.column(live('message_copies'))).toEqual([1, 2, 3, 4, 5, 6].map(uuid))
  })
})

describe('the mass-deletion guard', () => {
  const collections = (count: number) => Array.from({ length: count }, (_, index) => ({ id: `c${index}` }))

  test('the guard holds back more than 20 rows and more than a fifth until a second round a day later', async () => {
    const api = await startScriptedApi()
    let present = collections(100)
    api.on('/v1/collections', () => v1Page(present))
    const trial = await startTrial(api)
    await trial.run(['collections'])
    present = collections(79)
    expect(outcomeOf(await trial.run(['collections']), 'collections')).toBe('failed')
    expect(trial.column('SELECT count(*) FROM live_collections')).toEqual([100])
    expect(stateOf(trial, 'collections')).toBe('failing')
    trial.moveClock(3_600_000)
    expect(outcomeOf(await trial.run(['collections']), 'collections')).toBe('failed')
    expect(trial.column('SELECT count(*) FROM live_collections')).toEqual([100])
    trial.moveClock(24 * 3_600_000)
    expect(outcomeOf(await trial.run(['collections']), 'collections')).toBe('complete')
    expect(trial.column('SELECT count(*) FROM live_collections')).toEqual([79])
    expect(stateOf(trial, 'collections')).toBe('ok')
  })

  test('the guard lets a fifth of the rows, and twenty of any number, be deleted', async () => {
    const api = await startScriptedApi()
    let present = collections(110)
    api.on('/v1/collections', () => v1Page(present))
    const trial = await startTrial(api)
    await trial.run(['collections'])
    present = collections(88)
    await trial.run(['collections'])
    expect(trial.column('SELECT count(*) FROM live_collections')).toEqual([88])
    present = collections(68)
    await trial.run(['collections'])
    expect(trial.column('SELECT count(*) FROM live_collections')).toEqual([68])
  })

  test('a denial that turns out wrong does not count for a later one', async () => {
    const api = await startScriptedApi()
    let present = collections(100)
    api.on('/v1/collections', () => v1Page(present))
    const trial = await startTrial(api)
    await trial.run(['collections'])
    present = []
    await trial.run(['collections'])
    present = collections(100)
    expect((await trial.run(['collections'])).complete).toBe(true)
    trial.moveClock(48 * 3_600_000)
    present = []
    expect(outcomeOf(await trial.run(['collections']), 'collections')).toBe('failed')
    expect(trial.column('SELECT count(*) FROM live_collections')).toEqual([100])
  })
})

describe('rows at one instant across the end of a page', () => {
  test.each([1, 2, 3, 4])('rows that are listed are not suspected (%i a page)', async pageSize => {
    const api = await startScriptedApi()
    const at = minutesBack(1)
    const rows = [message(0), ...[1, 2, 3, 4, 5].map(n => message(n, { received_at: at })), message(6)]
    const list = scriptedList({ ...MESSAGES, rows, pageSize })
    api.on('/v2/messages', list.handler)
    const trial = await startTrial(api)
    await trial.run(['messages'])
    await trial.run(['messages'])
    expect(api.requests.filter(({ query }) => query['ids'] !== undefined)).toEqual([])
    expect(trial.column('SELECT count(*) FROM live_message_copies')).toEqual([7])
  })

  test.each([
    [2, 1],
    [2, 3],
    [2, 5],
    [3, 2],
    [3, 5],
    [1, 3],
    [4, 0],
    [4, 6],
  ])('with %i a page, the deletion of row %i is found', async (pageSize, gone) => {
    const api = await startScriptedApi()
    const at = minutesBack(1)
    const rows = [message(0), ...[1, 2, 3, 4, 5].map(n => message(n, { received_at: at })), message(6)]
    const list = scriptedList({ ...MESSAGES, rows, pageSize })
    api.on('/v2/messages', list.handler)
    const trial = await startTrial(api)
    await trial.run(['messages'])
    list.rows = list.rows.filter(({ id }) => id !== uuid(gone))
    await trial.run(['messages'])
    expect(trial.column(live('message_copies'))).toEqual(
      [0, 1, 2, 3, 4, 5, 6].filter(number => number !== gone).map(uuid),
    )
  })
})
