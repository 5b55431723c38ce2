import { afterEach, expect, test } from 'vitest'
import type { Change } from '../../src/simulator/changes/change.ts'
import { canonicalJson, type Fields, fieldsOf } from '../support/exact-json.ts'
import { startTrial, TINY, type Trial } from '../support/trial.ts'
import { query } from './changed-tables.ts'

let trial: Trial

afterEach(() => trial.close())

const RESOURCES = [
  'messages',
  'activities',
  'meetings',
  'members',
  'teams',
  'collections',
  'playbooks',
] as const
const OBJECTS = ['deal', 'company', 'contact', 'renewal', 'Order'] as const

async function changeEverything(
  kinds: readonly ('edit' | 'hide' | 'delete' | 'publish' | 'publishLate' | 'reveal')[],
) {
  const touched = new Map<string, readonly string[]>()
  for (const kind of kinds) {
    for (const resource of RESOURCES) {
      const { ids } = await trial.simulator.change({ kind, resource, count: kind === 'reveal' ? 20 : 1 })
      touched.set(`${kind} ${resource}`, ids)
    }
    for (const object of OBJECTS) {
      const { ids } = await trial.simulator.change({ kind, resource: 'crm_records', object, count: 1 })
      touched.set(`${kind} ${object}`, ids)
    }
  }
  return (name: string): string[] => [...(touched.get(name) ?? [])]
}

const TABLES = ['message_copies', 'activities', 'members', 'teams', 'collections', 'crm_records'] as const

function tombstoned(): Record<string, string[]> {
  return Object.fromEntries(
    TABLES.map(table => [
      table,
      query(trial.database, `SELECT id FROM ${table} WHERE _deleted_at IS NOT NULL`).map(({ id }) =>
        String(id),
      ),
    ]),
  )
}

/** Live rows of which a value was replaced. */
const changedSince = (table: string): unknown[] =>
  query(
    trial.database,
    `SELECT id FROM ${table} WHERE _changed_at IS NOT NULL AND _deleted_at IS NULL ORDER BY id`,
  ).map(({ id }) => id)

test('every edit, hiding, deletion, late publication and completion is in the warehouse after the next backfill, and revealed items come back', async () => {
  trial = await startTrial({ ...TINY, meetings: 24, members: 20 })
  expect(await trial.backfill()).toMatchObject({ status: 0 })

  const ids = await changeEverything(['edit', 'hide', 'delete', 'publish', 'publishLate'])
  for (const kind of ['completeOverview', 'completeTranscript'] as const) {
    await trial.simulator.change({ kind, count: 3 })
  }
  await trial.simulator.change({ kind: 'editSettings' })
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  expect(await trial.differences()).toEqual([])
  const gone = tombstoned()
  expect(gone['message_copies']).toEqual(
    expect.arrayContaining([...ids('hide messages'), ...ids('delete messages')]),
  )
  for (const table of ['members', 'teams', 'collections'] as const) {
    expect(gone[table]?.sort()).toEqual([...ids(`hide ${table}`), ...ids(`delete ${table}`)].sort())
  }
  expect(gone['crm_records']?.length).toBe(2 * OBJECTS.length)
  for (const table of ['members', 'collections'] as const) {
    expect(changedSince(table)).toEqual(ids(`edit ${table}`).filter(id => !gone[table]?.includes(id)))
  }
  const written = query(trial.database, 'SELECT DISTINCT record_id FROM crm_record_changes ORDER BY 1')
  expect(changedSince('crm_records')).toEqual(
    written.map(row => row['record_id']).filter(id => !gone['crm_records']?.includes(String(id))),
  )

  await changeEverything(['reveal'])
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  expect(await trial.differences()).toEqual([])
  const still = tombstoned()
  expect(still['members']).toEqual(ids('delete members'))
  expect(still['teams']).toEqual(ids('delete teams'))
})

test('each field change of a record that parley sees is stored with both values', async () => {
  trial = await startTrial({ messages: 0, meetings: 0, deals: 8, customRecords: 0, accessLogs: 0 })
  const deals = async (): Promise<Map<string, Fields>> => {
    const records = (await trial.simulator.truth('crm_records')).filter(({ object }) => object === 'deal')
    return new Map(records.map(({ id, fields }) => [String(id), fieldsOf(fields)]))
  }
  await trial.backfill('--only', 'crm_records')
  expect(query(trial.database, 'SELECT * FROM crm_record_changes')).toEqual([])
  const before = await deals()
  const { ids } = await trial.simulator.change({ kind: 'edit', resource: 'crm_records', count: 3 })
  await trial.backfill('--only', 'crm_records')
  const after = await deals()

  const json = (fields: Fields | undefined, name: string): string | null => {
    const value = fields?.[name]
    return value === undefined ? null : canonicalJson(value)
  }
  const expected = ids.flatMap(id => {
    const names = new Set([...Object.keys(before.get(id) ?? {}), ...Object.keys(after.get(id) ?? {})])
    return [...names]
      .map(field => ({
        record_id: id,
        field,
        old: json(before.get(id), field),
        new: json(after.get(id), field),
      }))
      .filter(change => change.old !== change.new)
  })
  expect(expected.length).toBeGreaterThan(3)
  const sorted = (rows: readonly { record_id?: unknown; field?: unknown }[]) =>
    rows.map(row => JSON.stringify([row.record_id, row.field])).sort()
  const noted = query(trial.database, "SELECT record_id, field FROM crm_record_changes WHERE object = 'deal'")
  expect(sorted(noted)).toEqual(sorted(expected))
})

const MANY: [string, Change & { kind: 'hide' | 'delete' }, string, string][] = [
  ['members', { kind: 'hide', resource: 'members', count: 25 }, 'members', 'members'],
  ['messages', { kind: 'delete', resource: 'messages', count: 45 }, 'message_copies', 'messages'],
]

test.each(MANY)(
  '%s: a deletion of more than a fifth at once is held back and reported',
  async (_, change, table, resource) => {
    trial = await startTrial({ ...TINY, members: 60 })
    await trial.backfill('--only', resource)
    const count = `SELECT count(*) AS rows FROM ${table} WHERE _deleted_at IS NULL`
    const [before] = query(trial.database, count)
    await trial.simulator.change(change)
    expect(await trial.backfill('--only', resource)).toMatchObject({ status: 69 })
    expect(query(trial.database, count)).toEqual([before])
    const [status] = query(
      trial.database,
      'SELECT state, reason FROM sync_status WHERE resource = ?',
      resource,
    )
    expect(status).toEqual({ state: 'failing', reason: expect.stringContaining('is held back') })
  },
)

test('held-back deletions are applied when a later round confirms them', async () => {
  trial = await startTrial({ ...TINY, members: 60 }, { PARLEY_SYNC_INTERVAL_SCALE: '0.00001' })
  await trial.backfill('--only', 'members')
  await trial.simulator.change({ kind: 'hide', resource: 'members', count: 25 })
  expect(await trial.backfill('--only', 'members')).toMatchObject({ status: 69 })
  let status: number | null = 69
  for (let runs = 0; runs < 50 && status === 69; runs++) {
    status = (await trial.backfill('--only', 'members')).status
  }
  expect(status).toBe(0)
  expect(await trial.differences({ tables: ['members'] })).toEqual([])
})
