import { expect, test } from 'vitest'
import { decodeJson } from '../../src/base/json.ts'
import { dealViews } from '../../src/store/views/deal-views.ts'
import { replaceViews } from '../../src/store/views/replace.ts'
import { type TemporaryStore, temporaryStore } from './temporary-store.ts'

const DAY = (day: number) => `2026-01-${String(day).padStart(2, '0')}T00:00:00.000Z`

const relation = (name: string, target: string | null) => ({
  name,
  label: name,
  type: 'RELATION',
  relation: { type: 'MANY_TO_ONE', target_object: target },
})
const NAME = { name: 'name', label: 'Name', type: 'TEXT' }

function putObject(store: TemporaryStore, name: string, fields: readonly object[]): void {
  store.put('crm_objects', [{ name, label: name, fields }], { requested: name })
}

function putRecord(store: TemporaryStore, object: string, id: string, fields: object, day = 1): void {
  store.put('crm_records', [{ id, object, fields, created_at: DAY(1) }], { requested: object, now: DAY(day) })
}

/** A deal that went through two stages, one that stayed in its first, one without any, and one that is deleted. */
async function dealsWith(field: string, target: string | null = 'stage'): Promise<TemporaryStore> {
  const store = temporaryStore()
  putObject(store, 'deal', [NAME, relation(field, target)])
  putObject(store, 'stage', [NAME])
  for (const id of ['first', 'second']) putRecord(store, 'stage', id, { name: `The ${id}` })
  putRecord(store, 'deal', 'moved', { [field]: 'first' }, 2)
  putRecord(store, 'deal', 'moved', { [field]: 'second' }, 5)
  putRecord(store, 'deal', 'moved', { [field]: 'unknown' }, 9)
  putRecord(store, 'deal', 'stayed', { [field]: 'first' }, 3)
  putRecord(store, 'deal', 'none', { name: 'none' }, 3)
  putRecord(store, 'deal', 'deleted', { [field]: 'first' }, 3)
  store.atomically(() => store.tombstone('crm_records', [['deal', 'deleted']], DAY(4)))
  await store.crmTables.finish()
  return store
}

/** As with `crm.tables = false`. */
const withoutTypedTables = (store: TemporaryStore) =>
  store.atomically(() => {
    store.db.exec('UPDATE crm_objects SET table_name = NULL; UPDATE crm_fields SET column_name = NULL')
    replaceViews(store.db, dealViews(store.db))
  })

const STAYS = `SELECT deal_id, from_stage, stage_id, stage, known_from, entered_at, left_at, is_current,
  iif(left_at IS NULL, NULL, days) AS days FROM deal_stage_history ORDER BY deal_id, known_from`

test.each([
  ['stage_id', 'stage'],
  ['現在の "stage"', 'stage'],
  ['stage_id', null],
])('a deal has a stay for each of its stages, which are read from the field %s', async (field, target) => {
  const store = await dealsWith(field, target)
  const stay = (deal: string, stage: string, known: number, left: number | null, more: object = {}) => ({
    deal_id: deal,
    from_stage: null,
    stage_id: stage,
    stage: stage === 'unknown' ? null : `The ${stage}`,
    known_from: DAY(known),
    entered_at: null,
    left_at: left === null ? null : DAY(left),
    is_current: left === null ? 1 : 0,
    days: left === null ? null : left - known,
    ...more,
  })
  expect(store.all(STAYS)).toEqual([
    stay('moved', 'first', 2, 5),
    stay('moved', 'second', 5, 9, { from_stage: 'The first', entered_at: DAY(5) }),
    stay('moved', 'unknown', 9, null, { from_stage: 'The second', entered_at: DAY(9) }),
    stay('stayed', 'first', 3, null),
  ])
})

test('the stage history is the same without typed tables', async () => {
  const store = await dealsWith('stage_id')
  const typed = store.all(STAYS)
  withoutTypedTables(store)
  expect(store.all(STAYS)).toEqual(typed)
})

test('a stage whose UUID comes in another letter case is the same stage', async () => {
  const store = temporaryStore()
  const [first, second] = ['c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d', 'f5d4b9e7-30b1-4280-8e6d-81a24d5e6f70']
  putObject(store, 'deal', [relation('stage_id', 'stage')])
  putObject(store, 'stage', [NAME])
  putRecord(store, 'stage', first, { name: 'The first' })
  putRecord(store, 'stage', second, { name: 'The second' })
  putRecord(store, 'deal', 'a', { stage_id: first.toUpperCase() }, 2)
  putRecord(store, 'deal', 'a', { stage_id: first }, 3)
  putRecord(store, 'deal', 'a', { stage_id: second.toUpperCase() }, 4)
  await store.crmTables.finish()
  expect(store.all('SELECT stage_id, stage, left_at FROM deal_stage_history ORDER BY known_from')).toEqual([
    { stage_id: first, stage: 'The first', left_at: DAY(4) },
    { stage_id: second, stage: 'The second', left_at: null },
  ])
  expect(store.column('SELECT stage_id FROM crm_deal')).toEqual([second])
})

test('the stage history exists and is empty when deals have no stages', () => {
  const store = temporaryStore()
  expect(store.all('SELECT * FROM deal_stage_history')).toEqual([])
  putObject(store, 'deal', [NAME])
  expect(store.all('SELECT * FROM deal_stage_history')).toEqual([])
})

function putTimeline(store: TemporaryStore): void {
  const activity = (id: string, source: string, day: number, origins: readonly string[], deal = 'moved') => ({
    id,
    type: 'kind',
    source_type: source,
    source_id: `of ${id}`,
    occurred_at: DAY(day),
    actor: { kind: 'member', id: 'm' },
    links: origins.map(origin => ({ context_type: 'deal', context_id: deal, origin })),
  })
  store.put('members', [{ id: 'm', name: 'Aiko' }])
  store.put('meetings', [{ meeting_id: 'of meeting', title: 'Kick-off' }])
  const copy = { header_message_id: '<h>', subject: 'Hello', received_at: DAY(4), participants: [] }
  store.put('message_copies', [
    { ...copy, id: 'of message 1' },
    { ...copy, id: 'of message 2' },
  ])
  store.put('activities', [
    activity('meeting', 'MEETING', 3, ['DIRECT', 'DERIVED']),
    activity('message 1', 'MESSAGE', 4, ['DERIVED']),
    activity('message 2', 'MESSAGE', 4, ['DIRECT']),
    activity('event', 'OBJECT_CHANGE_EVENT', 6, ['DIRECT']),
    activity('other', 'MEETING', 3, ['DIRECT'], 'stayed'),
    activity('gone', 'MEETING', 3, ['DIRECT']),
  ])
  store.atomically(() => store.tombstone('activities', [['gone']], DAY(9)))
}

test('the timeline of a deal has its meetings, e-mails, other activities and changes, each once, in time order', async () => {
  const store = await dealsWith('stage_id')
  putTimeline(store)
  const rows = store.all(
    "SELECT at, kind, title, actor_name, origin, old_value, new_value FROM deal_timeline WHERE deal_id = 'moved' ORDER BY at",
  )
  const none = { actor_name: 'Aiko', title: null, origin: 'DIRECT', old_value: null, new_value: null }
  const change = { kind: 'change', title: 'stage_id', actor_name: null, origin: null }
  expect(rows).toEqual([
    { ...none, at: DAY(3), kind: 'meeting', title: 'Kick-off' },
    { ...none, at: DAY(4), kind: 'message', title: 'Hello', origin: 'DERIVED' },
    { ...change, at: DAY(5), old_value: '"first"', new_value: '"second"' },
    { ...none, at: DAY(6), kind: 'activity' },
    { ...change, at: DAY(9), old_value: '"second"', new_value: '"unknown"' },
  ])
})

test('the timeline has as many messages as the deal has stored e-mails, and shows the others as activities', async () => {
  const store = await dealsWith('stage_id')
  putTimeline(store)
  const kinds = () =>
    store.all(
      "SELECT kind, count(*) AS rows FROM deal_timeline WHERE deal_id = 'moved' AND origin <> '' GROUP BY kind",
    )
  const meeting = { kind: 'meeting', rows: 1 }
  const message = { kind: 'message', rows: 1 }
  expect(kinds()).toEqual([{ kind: 'activity', rows: 1 }, meeting, message])
  // A copy that the file does not have.
  const links = [{ context_type: 'deal', context_id: 'moved', origin: 'DIRECT' }]
  store.put('activities', [
    {
      id: 'unlisted',
      type: 'kind',
      source_type: 'MESSAGE',
      source_id: 'elsewhere',
      occurred_at: DAY(4),
      links,
    },
  ])
  expect(kinds()).toEqual([{ kind: 'activity', rows: 2 }, meeting, message])
  store.atomically(() => store.tombstone('message_copies', [['of message 1']], DAY(9)))
  expect(kinds()).toEqual([{ kind: 'activity', rows: 3 }, meeting, message])
})

test('the timeline has no rows of a deleted deal, and has the activities of a deal whose record was not read', async () => {
  const store = await dealsWith('stage_id')
  putTimeline(store)
  const deals = () => store.column('SELECT DISTINCT deal_id FROM deal_timeline ORDER BY deal_id')
  expect(deals()).toEqual(['moved', 'stayed'])
  store.atomically(() => store.tombstone('crm_records', [['deal', 'moved']], DAY(9)))
  expect(deals()).toEqual(['stayed'])
  store.db.exec("DELETE FROM crm_records WHERE id = 'stayed'")
  expect(deals()).toEqual(['stayed'])
})

test('an e-mail has the known subject of any of its copies', async () => {
  const store = await dealsWith('stage_id')
  putTimeline(store)
  const hidden = { header_message_id: '<h>', subject: null, received_at: DAY(4), participants: [] }
  store.put('message_copies', [{ ...hidden, id: 'of message 1' }])
  expect(store.column("SELECT title FROM deal_timeline WHERE kind = 'message'")).toEqual(['Hello'])
})

test('stages whose ids are numbers are distinguished by every digit', async () => {
  const store = temporaryStore()
  const digits = '12345678901234567890'
  const large = decodeJson(digits).value
  putObject(store, 'deal', [relation('stage_id', 'stage')])
  putObject(store, 'stage', [NAME])
  putRecord(store, 'stage', digits, { name: 'The large one' })
  putRecord(store, 'deal', 'a', { stage_id: 7 }, 2)
  putRecord(store, 'deal', 'a', { stage_id: large }, 3)
  putRecord(store, 'deal', 'a', { stage_id: null }, 4)
  putRecord(store, 'deal', 'a', { stage_id: large }, 5)
  await store.crmTables.finish()
  expect(
    store.all('SELECT from_stage_id, stage_id, stage, left_at FROM deal_stage_history ORDER BY known_from'),
  ).toEqual([
    { from_stage_id: null, stage_id: '7', stage: null, left_at: DAY(3) },
    { from_stage_id: '7', stage_id: digits, stage: 'The large one', left_at: DAY(4) },
    { from_stage_id: null, stage_id: digits, stage: 'The large one', left_at: null },
  ])
})

test('a stage that is nested thousands of levels deep leaves the history of the other deals readable', async () => {
  const store = await dealsWith('stage_id')
  const readable = store.all('SELECT * FROM deal_stage_history')
  const deep = (inner: unknown) =>
    JSON.parse(`${'['.repeat(2000)}${JSON.stringify(inner)}${']'.repeat(2000)}`)
  putRecord(store, 'deal', 'deep', { stage_id: deep(1) }, 2)
  putRecord(store, 'deal', 'deep', { stage_id: deep(2) }, 3)
  expect(store.all("SELECT * FROM deal_stage_history WHERE deal_id <> 'deep'")).toEqual(readable)
  withoutTypedTables(store)
  expect(store.all("SELECT * FROM deal_stage_history WHERE deal_id <> 'deep'")).toHaveLength(readable.length)
})

test('the timeline of a deal keeps a meeting that is withheld, without its title', async () => {
  const store = await dealsWith('stage_id')
  putTimeline(store)
  store.db.exec("UPDATE meetings SET access = 'withheld'")
  const titles = store.column("SELECT title FROM deal_timeline WHERE deal_id = 'moved' AND kind = 'meeting'")
  expect(titles).toEqual([null])
})

test.each(['deal_timeline', 'deal_stage_history'])('%s of one deal reads no whole table', async view => {
  const store = await dealsWith('stage_id')
  const plan = store.all(`EXPLAIN QUERY PLAN SELECT * FROM ${view} WHERE deal_id = 'moved'`)
  const scans = plan
    .map(({ detail }) => String(detail))
    .filter(detail => /^SCAN (?!s$|deal_|\()/.test(detail))
  expect(plan.length).toBeGreaterThan(5)
  expect(scans).toEqual([])
})
