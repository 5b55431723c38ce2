import { describe, expect, test } from 'vitest'
import { canonicalId, withCanonicalIds } from '../../src/base/uuid.ts'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { keyOf } from '../../src/engine/parse/key.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import {
  numberedPage,
  type ScriptedAnswer,
  startScriptedApi,
  v1Page,
  v2Page,
} from '../support/scripted-api.ts'
import { message, minutesBack, startTrial } from './trial-backfill.ts'

const LOWER = 'abcdef00-0000-4000-8000-00000000000a'
const UPPER = LOWER.toUpperCase()

describe('an id', () => {
  test.each([
    [UPPER, LOWER],
    [LOWER, LOWER],
    ['ABCDEF00-0000-4000-8000-00000000000a', LOWER],
    [`${UPPER} `, `${UPPER} `],
    [`id:${UPPER}`, `id:${UPPER}`],
    [UPPER.replaceAll('-', ''), UPPER.replaceAll('-', '')],
    ['MTG_1', 'MTG_1'],
    ['', ''],
  ])('%j is stored as %j', (sent, stored) => {
    expect(canonicalId(sent)).toBe(stored)
    expect(keyOf(sent, [])).toBe(stored === '' ? undefined : stored)
    expect(keyOf({ id: sent }, ['meeting_id', 'id'])).toBe(stored === '' ? undefined : stored)
  })
})

describe('JSON with ids', () => {
  test.each<[sent: unknown, stored: unknown]>([
    [UPPER, LOWER],
    [
      [UPPER, 'A', [UPPER]],
      [LOWER, 'A', [LOWER]],
    ],
    [
      { stage_id: UPPER, name: `of ${UPPER}`, n: 1.5 },
      { stage_id: LOWER, name: `of ${UPPER}`, n: 1.5 },
    ],
    [{ [UPPER]: UPPER }, { [UPPER]: LOWER }],
    [[`"${UPPER}"`], [`"${UPPER}"`]],
    [[`,"${UPPER}"`], [`,"${UPPER}"`]],
    [
      ['x,', UPPER],
      ['x,', LOWER],
    ],
    [
      ['\\', UPPER, '"'],
      ['\\', LOWER, '"'],
    ],
  ])('%j is stored as %j', (sent, stored) => {
    expect(withCanonicalIds(JSON.stringify(sent))).toBe(JSON.stringify(stored))
  })
})

const member = (id: string) => ({ id, name: 'M', email: null, role: null })
const activity = (id: string) => ({
  id,
  type: 'call',
  source_type: 'MESSAGE',
  source_id: id,
  occurred_at: minutesBack(1),
  created_via: null,
  actor: { kind: 'member', id },
  links: [{ context_type: 'deal', context_id: id, origin: 'DIRECT' }],
})
const mail = (id: string) =>
  message(1, { id, participants: [{ role: 'TO', handle: 'a@e', display_name: null, contact_id: id }] })
const meeting = (id: string) => ({ data: { meeting_id: id, title: 'T', overview_status: 'COMPLETED' } })

interface Routes {
  resources: readonly ResourceName[]
  table: string
  on: Readonly<Record<string, (id: string) => ScriptedAnswer>>
}

const LISTS: Routes[] = [
  { resources: ['members'], table: 'members', on: { '/v1/members': id => numberedPage([member(id)]) } },
  {
    resources: ['collections'],
    table: 'collections',
    on: {
      '/v1/collections': id => v1Page([{ id, name: 'C' }]),
      '/v1/collections/{id}': id => ({ body: { id, name: 'C' } }),
    },
  },
  {
    resources: ['activities'],
    table: 'activities',
    on: {
      '/v2/activities': id => v2Page([activity(id)]),
      '/v2/activities/{id}': id => ({ body: activity(id) }),
    },
  },
  {
    resources: ['messages', 'message_bodies'],
    table: 'message_copies',
    on: {
      '/v2/messages': id => v2Page([mail(id)]),
      '/v2/messages/{id}': id => ({ body: { ...mail(id), text: 'Hello' } }),
    },
  },
  {
    resources: ['meetings'],
    table: 'meetings',
    on: {
      '/v1/meetings': id => ({ body: [{ meeting_id: id }] }),
      '/v1/meetings/{id}': id => ({ body: meeting(id) }),
    },
  },
]

describe.each(LISTS)('the rows of $table', ({ resources, table, on }) => {
  test.each([
    [LOWER, UPPER],
    [UPPER, LOWER],
  ])('are the same when a backfill finds %s and the next %s', async (first, second) => {
    const api = await startScriptedApi()
    let id = first
    for (const [route, answer] of Object.entries(on)) api.on(route, () => answer(id))
    const trial = await startTrial(api)
    const rows = () => trial.all(`SELECT * FROM ${table}`)
    expect((await trial.run(resources)).complete).toBe(true)
    const before = rows()
    expect(before.map(row => row['id'])).toEqual([LOWER])
    id = second
    const { complete, resources: results } = await trial.run(resources)
    expect(complete).toBe(true)
    expect(results.map(({ rowsChanged, rowsDeleted }) => rowsChanged + rowsDeleted)).toEqual(
      resources.map(() => 0),
    )
    expect(rows()).toEqual(before)
    expect(trial.all('SELECT * FROM sync_suspicions')).toEqual([])
  })

  test('are asked for in lower case', async () => {
    const api = await startScriptedApi()
    for (const [route, answer] of Object.entries(on)) api.on(route, () => answer(UPPER))
    const trial = await startTrial(api)
    await trial.run(resources)
    expect(api.requests.filter(({ path, query }) => `${path}${query['ids']}`.includes(UPPER))).toEqual([])
  })
})

test('the id of a record is stored in lower case, and its values as they are sent', () => {
  const store = temporaryStore()
  store.put('crm_records', [{ id: UPPER, object: 'deal', fields: { guid: UPPER } }], { requested: 'deal' })
  expect(store.all('SELECT id, fields FROM crm_records')).toEqual([
    { id: LOWER, fields: JSON.stringify({ guid: UPPER }) },
  ])
})
