import { describe, expect, test } from 'vitest'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import type { ResourceName } from '../../src/declare/resource-names.ts'
import { acceptDeletions } from '../../src/engine/deletions/apply.ts'
import { CONFIRM_AFTER_MS } from '../../src/engine/deletions/deletion-states.ts'
import { recordOutcome } from '../../src/engine/run/round-end.ts'
import { askWriter } from '../../src/store/file/handed-over.ts'
import { startCrm } from '../engine/crm-world.ts'
import { message, outcomeOf, startTrial, uuid } from '../engine/trial-backfill.ts'
import { startTimed, type TimedSources } from '../engine/trial-timed.ts'
import {
  numberedPage,
  refused,
  type ScriptedAnswer,
  startScriptedApi,
  v1Page,
  v2Page,
} from '../support/scripted-api.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

async function goOn(timed: TimedSources, resource: ResourceName, ms: number): Promise<void> {
  timed.passTime(ms)
  await timed.drain()
  const { context } = timed
  await context.store.transaction(() => recordOutcome(context, resourceNamed(resource), true))
}

test('the deletion of most meetings is applied in the daemon once the hold is over and a round confirms it', async () => {
  const api = await startScriptedApi()
  const all = Array.from({ length: 60 }, (_, number) => `m${number}`)
  let published = all
  api.on('/v1/meetings', () => v1Page(published.map(id => ({ meeting_id: id }))))
  api.on('/v1/meetings/{id}', ({ params: [id = ''] }) =>
    published.includes(id)
      ? { body: { data: { meeting_id: id, overview_status: 'COMPLETED' } } }
      : refused(404),
  )
  const trial = await startTrial(api)
  const chosen = ['activities', 'meetings'] as const
  await trial.run(chosen)
  const timed = await startTimed(api, trial, chosen)
  const live = () => trial.column('SELECT count(*) FROM live_meetings')[0]
  published = all.slice(0, 20)
  await goOn(timed, 'meetings', HOUR)
  await goOn(timed, 'meetings', CONFIRM_AFTER_MS)
  expect(live()).toBe(60)
  expect(trial.column("SELECT state FROM sync_status WHERE resource = 'meetings'")).toEqual(['failing'])
  await goOn(timed, 'meetings', DAY)
  expect(live()).toBe(60)
  // The confirming round: the list, then each missing meeting, then the verdict.
  for (let step = 0; step < 3; step += 1) await goOn(timed, 'meetings', 2 * CONFIRM_AFTER_MS)
  expect(live()).toBe(20)
  expect(trial.column("SELECT held_since FROM sync_resources WHERE resource = 'meetings'")).toEqual([null])
})

test('the deletion of an object is held back when it would delete too many records, and the reports name the records', async () => {
  const api = await startScriptedApi()
  const records = Array.from({ length: 50 }, (_, number) => uuid(number))
  let offered = true
  api.on('/v2/objects', () => ({ body: { data: offered ? [{ name: 'deal' }] : [] } }))
  api.on('/v2/objects/{object}', ({ params: [name] }) =>
    offered && name === 'deal' ? { body: { name, fields: [] } } : refused(404),
  )
  api.on('/v2/objects/{object}/records', ({ params: [object] }) =>
    object === 'deal'
      ? v2Page(records.map(id => ({ id, object, visibility: 'workspace', fields: {} })))
      : refused(404),
  )
  const trial = await startTrial(api)
  const chosen = ['crm_objects', 'crm_records'] as const
  await trial.run(chosen)
  offered = false
  expect(outcomeOf(await trial.run(chosen), 'crm_objects')).toBe('failed')
  expect(trial.column('SELECT count(*) FROM live_crm_records')).toEqual([50])
  expect(trial.column('SELECT name FROM live_crm_objects')).toEqual(['deal'])
  const reports = () => ({
    reason: trial.column("SELECT reason FROM sync_status WHERE resource = 'crm_objects'")[0],
    logged: trial
      .logged()
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
      .filter(({ msg }) => msg === 'Deletions are held back')
      .map(({ table, rows, command }) => ({ table, rows, command })),
  })
  const command = 'parley accept-deletions crm_objects'
  const reason = expect.stringMatching(
    /^Deletion of 50 rows of crm_records is held back until .* crm_objects$/,
  )
  const line = { table: 'crm_records', rows: 50, command }
  expect(reports()).toEqual({ reason, logged: [line] })
  // The next run reports the same hold again.
  expect(outcomeOf(await trial.run(chosen), 'crm_objects')).toBe('failed')
  expect(reports()).toEqual({ reason, logged: [line, line] })
})

test('the mass deletion of meetings in collections and of record links is held back, though they have no _deleted_at', async () => {
  const api = await startScriptedApi()
  const meetings = Array.from({ length: 40 }, (_, number) => ({ meeting_id: `m${number}` }))
  let listed: typeof meetings = meetings
  api.on('/v1/collections', () => v1Page([{ id: 'c' }]))
  api.on('/v1/meetings', ({ query }) => v1Page(query['collection_id'] === 'c' ? listed : []))
  const trial = await startTrial(api)
  const chosen = ['collections', 'collection_meetings'] as const
  await trial.run(chosen)
  listed = []
  expect(outcomeOf(await trial.run(chosen), 'collection_meetings')).toBe('failed')
  expect(trial.column('SELECT count(*) FROM live_collection_meetings')).toEqual([40])
  trial.passTime(DAY)
  expect(outcomeOf(await trial.run(chosen), 'collection_meetings')).toBe('complete')
  expect(trial.column('SELECT count(*) FROM live_collection_meetings')).toEqual([0])
})

test('the deletion of a few records with a long history is not held back', async () => {
  const api = await startScriptedApi()
  let stage = 1
  let records = Array.from({ length: 20 }, (_, number) => uuid(number))
  const names = Array.from({ length: 10 }, (_, number) => `field${number}`)
  api.on('/v2/objects', () => ({ body: { data: [{ name: 'deal' }] } }))
  api.on('/v2/objects/{object}', ({ params: [name] }) =>
    name === 'deal' ? { body: { name, fields: [] } } : refused(404),
  )
  api.on('/v2/objects/{object}/records', ({ params: [object], query }) => {
    if (object !== 'deal') return refused(404)
    const fieldsOf = (id: string) =>
      Object.fromEntries(names.map(name => [name, Number(id.slice(-4)) < 3 ? stage : 0]))
    const shown = records.filter(id => query['ids'] === undefined || query['ids'].split(',').includes(id))
    return v2Page(shown.map(id => ({ id, object: 'deal', visibility: 'workspace', fields: fieldsOf(id) })))
  })
  const trial = await startTrial(api)
  const chosen = ['crm_objects', 'crm_records'] as const
  await trial.run(chosen)
  stage = 2
  await trial.run(chosen)
  expect(trial.column('SELECT count(*) FROM crm_record_changes')).toEqual([30])
  records = records.slice(3)
  expect(outcomeOf(await trial.run(chosen), 'crm_records')).toBe('complete')
  expect(trial.column('SELECT count(*) FROM live_crm_records')).toEqual([17])
  expect(trial.column('SELECT count(*) FROM crm_record_changes')).toEqual([30])
})

test('a suspected meeting of a collection is no longer suspected once the collection is deleted', async () => {
  const api = await startScriptedApi()
  let collections = [{ id: 'c' }, { id: 'd' }]
  let listed = [{ meeting_id: 'm1' }, { meeting_id: 'm2' }]
  let readings = 0
  let isGone = false
  api.on('/v1/collections', () => v1Page(collections))
  api.on('/v1/collections/{id}', ({ params: [id] }) =>
    id === 'c' && isGone ? refused(404) : { body: { data: { id } } },
  )
  api.on('/v1/meetings', ({ query }) => {
    if (query['collection_id'] !== 'c') return v1Page([])
    readings += 1
    return isGone && readings > 1 ? refused(404) : v1Page(listed)
  })
  const trial = await startTrial(api)
  const chosen = ['collections', 'collection_meetings'] as const
  const suspected = () =>
    trial.column("SELECT key FROM sync_suspicions WHERE table_name = 'collection_meetings'")
  await trial.run(chosen)
  listed = [{ meeting_id: 'm1' }]
  readings = 0
  isGone = true
  await trial.run(chosen)
  expect(suspected()).toEqual(['m2'])
  collections = [{ id: 'd' }]
  await trial.run(chosen)
  expect(trial.column('SELECT id FROM live_collections')).toEqual(['d'])
  expect(suspected()).toEqual([])
})

/** Records of two objects; most deals are gone, and the list of companies can be made to fail. */
async function heldDeals() {
  const api = await startScriptedApi()
  const deals = Array.from({ length: 60 }, (_, number) => uuid(number))
  let published = deals
  let failure: ScriptedAnswer | undefined
  const page = (object: string, ids: readonly string[]) =>
    v2Page(ids.map(id => ({ id, object, visibility: 'workspace', fields: {} })))
  api.on('/v2/objects', () => ({ body: { data: [{ name: 'deal' }, { name: 'company' }] } }))
  api.on('/v2/objects/{object}', ({ params: [name] }) =>
    name === 'deal' || name === 'company' ? { body: { name, fields: [] } } : refused(404),
  )
  api.on('/v2/objects/{object}/records', ({ params: [object], query }) => {
    if (object === 'company') return failure ?? page('company', [uuid(101), uuid(102)])
    if (object !== 'deal') return refused(404)
    const ids = query['ids']?.split(',')
    return page(
      'deal',
      published.filter(id => ids === undefined || ids.includes(id)),
    )
  })
  const trial = await startTrial(api)
  const chosen = ['crm_objects', 'crm_records'] as const
  await trial.run(chosen)
  published = deals.slice(0, 20)
  expect(outcomeOf(await trial.run(chosen), 'crm_records')).toBe('failed')
  return {
    api,
    trial,
    chosen,
    failCompanies: (answer: ScriptedAnswer) => {
      failure = answer
    },
    counts: () => trial.all('SELECT object, count(*) AS rows FROM live_crm_records GROUP BY object'),
    held: () => trial.column("SELECT held_since FROM sync_resources WHERE resource = 'crm_records'"),
  }
}

describe.each([
  ['500', { status: 500, body: {} }],
  ['403', refused(403)],
  ['no list', { body: { data: { nothing: 1 } } }],
] as const)('a list that answers %s in the round that confirms', (_name, answer) => {
  test('the list holds back no other deletion of its resource in a backfill', async () => {
    const world = await heldDeals()
    world.trial.passTime(DAY)
    world.failCompanies(answer)
    await world.trial.run(world.chosen)
    expect(world.counts()).toEqual([
      { object: 'company', rows: 2 },
      { object: 'deal', rows: 20 },
    ])
    expect(world.held()).toEqual([null])
  })

  test('the list holds back no other deletion of its resource in the daemon', async () => {
    const world = await heldDeals()
    const timed = await startTimed(world.api, world.trial, world.chosen)
    world.failCompanies(answer)
    await goOn(timed, 'crm_records', DAY)
    for (let step = 0; step < 6; step += 1) await goOn(timed, 'crm_records', 2 * CONFIRM_AFTER_MS)
    expect(world.counts()).toEqual([
      { object: 'company', rows: 2 },
      { object: 'deal', rows: 20 },
    ])
    expect(world.held()).toEqual([null])
  })
})

test('the deletions of several passes within a day count together', async () => {
  const api = await startScriptedApi()
  const all = Array.from({ length: 100 }, (_, number) => ({
    id: `m${number}`,
    name: 'n',
    email: null,
    role: null,
  }))
  let published = all
  api.on('/v1/members', () => numberedPage(published))
  const trial = await startTrial(api)
  await trial.run(['members'])
  const timed = await startTimed(api, trial, ['members'])
  for (const left of [82, 64]) {
    published = all.slice(0, left)
    await goOn(timed, 'members', 6 * HOUR)
    await goOn(timed, 'members', CONFIRM_AFTER_MS)
  }
  expect(trial.column('SELECT count(*) FROM live_members')).toEqual([82])
  expect(trial.column("SELECT reason FROM sync_status WHERE resource = 'members'")[0]).toMatch(
    /^Deletion of 18 more rows of members \(36 within a day\) is held back/,
  )
})

const members = (count: number) =>
  Array.from({ length: count }, (_, number) => ({ id: `m${number}`, name: 'n', email: null, role: null }))

/** A trial whose guard holds back 40 of 60 members; `publish` changes how many the API shows. */
async function heldMembers() {
  const api = await startScriptedApi()
  let published = 60
  api.on('/v1/members', () => numberedPage(members(published)))
  const trial = await startTrial(api)
  const run = async () => outcomeOf(await trial.run(['members']), 'members')
  await run()
  published = 20
  expect(await run()).toBe('failed')
  const publish = (count: number) => {
    published = count
  }
  return { api, trial, run, publish, live: () => trial.column('SELECT count(*) FROM live_members')[0] }
}

test('accepted deletions that are held back are applied by the next run', async () => {
  const { trial, run, live } = await heldMembers()
  expect(live()).toBe(60)
  await askWriter(trial.path, { kind: 'accept-deletions', resource: 'members' }, trial.clock)
  expect(await run()).toBe('complete')
  expect(live()).toBe(20)
  expect(trial.column("SELECT held_since FROM sync_resources WHERE resource = 'members'")).toEqual([null])
})

test('accepted deletions do not count against later ones of the same day in the daemon', async () => {
  const { api, trial, publish, live } = await heldMembers()
  const timed = await startTimed(api, trial, ['members'])
  await trial.store.transaction(() => acceptDeletions(timed.context, 'members'))
  expect(live()).toBe(20)
  publish(19)
  await goOn(timed, 'members', 6 * HOUR)
  await goOn(timed, 'members', CONFIRM_AFTER_MS)
  expect(live()).toBe(19)
})

test('accepting the deletion of records ends the hold of the links that went with them', async () => {
  const records = (count: number, from: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [from + index, { updated: -60 }]))
  const world = await startCrm({ deal: records(1, 1), company: records(60, 101) })
  for (let number = 101; number <= 160; number += 1) world.links.add(`deal 1, company ${number}`)
  const trial = await startTrial(world.api)
  const chosen = ['crm_objects', 'crm_records', 'crm_record_links'] as const
  expect((await trial.run(chosen)).complete).toBe(true)
  world.records['company'] = records(20, 101)
  world.publish()
  const held = await trial.run(chosen)
  expect([outcomeOf(held, 'crm_records'), outcomeOf(held, 'crm_record_links')]).toEqual(['failed', 'failed'])
  const { context } = await startTimed(world.api, trial, chosen)
  await trial.store.transaction(() => acceptDeletions(context, 'crm_records'))
  expect(trial.column('SELECT count(*) FROM crm_record_links')).toEqual([20])
  expect(trial.column('SELECT held_since FROM sync_resources WHERE held_since IS NOT NULL')).toEqual([])
  expect(trial.all("SELECT resource, reason FROM sync_status WHERE state = 'failing'")).toEqual([])
})

test('an acceptance applies to the deletions that are held back now, and does not outlast them', async () => {
  const { trial, run, publish, live } = await heldMembers()
  publish(60)
  await run()
  await askWriter(trial.path, { kind: 'accept-deletions', resource: 'members' }, trial.clock)
  await run()
  publish(20)
  expect(await run()).toBe('failed')
  expect(live()).toBe(60)
})

test('a hold that was noted under a clock ahead of time ends with the next run that confirms it', async () => {
  const { trial, run, live } = await heldMembers()
  trial.moveClock(-300 * DAY)
  expect(await run()).toBe('complete')
  expect(live()).toBe(20)
})

test('the reason of a hold and its log line name the time after which a pass confirms it and the command that accepts it', async () => {
  const { trial } = await heldMembers()
  const [heldSince] = trial.column("SELECT held_since FROM sync_resources WHERE resource = 'members'")
  const until = new Date(Date.parse(String(heldSince)) + DAY).toISOString()
  expect(trial.column("SELECT reason FROM sync_status WHERE resource = 'members'")).toEqual([
    `Deletion of 40 rows of members is held back until a complete pass after ${until.slice(0, 16).replace('T', ' ')} UTC confirms it (limit: 20 rows and 20 %). To delete them now: parley accept-deletions members`,
  ])
  const lines = trial.logged().trim().split('\n')
  expect(lines.map(line => JSON.parse(line))).toContainEqual(
    expect.objectContaining({
      level: 'error',
      msg: 'Deletions are held back',
      resource: 'members',
      table: 'members',
      rows: 40,
      until,
      command: 'parley accept-deletions members',
    }),
  )
  expect(trial.logged()).not.toContain('Failed to read resource')
})

test('the guard counts rows that wait for their single read, however long they have waited', async () => {
  const api = await startScriptedApi()
  const rows = Array.from({ length: 100 }, (_, number) => message(number))
  api.on('/v2/messages', () => v2Page(rows))
  const trial = await startTrial(api)
  await trial.run(['messages'])
  const timed = await startTimed(api, trial, ['messages'])
  const { suspicions, tasks } = trial.store
  const since = new Date(trial.clock.now() - 3 * HOUR).toISOString()
  const denied = rows.slice(0, 40).map(({ id }) => ({ table: 'message_copies', scope: '', key: id }))
  const feed = 'messages.list.probe.single'
  await trial.store.transaction(() => {
    for (const [index, row] of denied.entries()) {
      suspicions.note(row, { since, means: 'absent' })
      if (index < 15) suspicions.confirm(row)
      else tasks.add({ feed, key: row.key, dueAt: since })
    }
  })
  const live = () => trial.column('SELECT count(*) FROM live_message_copies')[0]
  await timed.settle('messages')
  expect(live()).toBe(100)
  await trial.store.transaction(() =>
    tasks.removeAll(
      feed,
      '',
      denied.map(({ key }) => key),
    ),
  )
  await timed.settle('messages')
  expect(live()).toBe(85)
})
