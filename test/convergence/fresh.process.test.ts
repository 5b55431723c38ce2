import { afterEach, describe, expect, test } from 'vitest'
import type { SimulatorOptions } from '../../src/simulator/server.ts'
import { startTrial, TINY, type Trial } from '../support/trial.ts'
import { contentOf, query } from './changed-tables.ts'

let trial: Trial

afterEach(() => trial.close())

/** Rows of entity tables of which a value was replaced. */
const changedRows = (): string[] =>
  query(
    trial.database,
    "SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = '_changed_at'",
  )
    .map(({ name }) => String(name))
    .flatMap(table =>
      query(trial.database, `SELECT * FROM "${table}" WHERE _changed_at IS NOT NULL`).map(() => table),
    )

const asked = (path: RegExp, from = 0): string[] =>
  trial.tap.requests.slice(from).filter(each => path.test(each))

test('a fresh backfill equals what the API publishes, and one after no change rewrites nothing', async () => {
  trial = await startTrial()
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  expect(await trial.differences()).toEqual([])
  expect(changedRows()).toEqual([])
  const before = contentOf(trial.database)
  const requests = trial.tap.requests.length
  const unread = query(
    trial.database,
    "SELECT id FROM meetings WHERE access = 'open' AND transcript_state <> 'present'",
  ).map(({ id }) => id)

  expect(await trial.backfill()).toMatchObject({ status: 0 })
  expect(contentOf(trial.database)).toEqual(before)
  expect(asked(/^\/v2\/messages\/./, requests)).toEqual([])
  const transcripts = asked(/\/transcript$/, requests).map(path => path.split('/')[3])
  expect(transcripts.filter(id => !unread.includes(id))).toEqual([])
  expect(await trial.differences()).toEqual([])
})

test('names that are hostile to SQL are stored unchanged, and long numbers keep every digit', async () => {
  trial = await startTrial({ messages: 0, meetings: 0, deals: 40, customRecords: 40 })
  expect(await trial.backfill('--only', 'crm_records')).toMatchObject({ status: 0 })
  const records = query(trial.database, 'SELECT object, fields FROM crm_records')
  expect(records.map(({ object }) => object)).toEqual(
    expect.arrayContaining(['order', 'Order', 'site visit', 'x"; drop table members; --', '契約書']),
  )
  const beyond = records.filter(({ fields }) => /:[0-9]{17,}[,}]/.test(String(fields)))
  expect(beyond.length).toBeGreaterThan(20)
  expect(query(trial.database, 'SELECT name FROM crm_objects WHERE table_name IS NULL')).toEqual([])
  expect(query(trial.database, 'SELECT name FROM crm_fields WHERE column_name IS NULL')).toEqual([])
  // The comparison is exact: a digit lost is another number.
  expect(await trial.differences({ tables: ['crm_objects', 'crm_fields', 'crm_records'] })).toEqual([])
})

const TABLES = [
  'meeting_attendees',
  'meeting_chapter_items',
  'collection_meetings',
  'playbook_results',
  'playbooks',
  'playbook_talk_points',
  'crm_objects',
  'crm_fields',
]

const SHAPES: [string, SimulatorOptions['envelopes']][] = [
  ['pages of v2', { meetingList: 'v2', playbookList: 'v2', objectList: 'v2', unstatedSingle: 'bare' }],
  ['cursors of v1', { meetingList: 'v1-cursor', playbookList: 'v1-cursor', objectList: 'v1-cursor' }],
  ['numbered pages', { meetingList: 'v1-page', playbookList: 'v1-page', objectList: 'v1-page' }],
  ['bare arrays', { meetingList: 'bare', playbookList: 'bare', objectList: 'bare', meetingListId: 'id' }],
  [
    'lists that refuse a limit',
    {
      meetingList: 'unlimited',
      playbookList: 'unlimited',
      objectList: 'unlimited',
      unreadyResults: 'not-found',
    },
  ],
]

describe('lists whose shape the API leaves open', () => {
  test.each(SHAPES)('a backfill reads %s to their end', async (_, envelopes = {}) => {
    trial = await startTrial({ ...TINY, meetings: 56, envelopes })
    const only = 'playbook_results,playbooks,crm_objects,collection_meetings'
    expect(await trial.backfill('--only', only)).toMatchObject({ status: 0 })
    expect(await trial.differences({ tables: TABLES })).toEqual([])
  })
})

test('resources that the workspace does not offer are unavailable, and the backfill is complete', async () => {
  trial = await startTrial({ securityOption: false, botConfigured: false, integrations: false, messages: 30 })
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  const states = query(
    trial.database,
    "SELECT resource, state, reason IS NOT NULL AS has_reason FROM sync_status WHERE state = 'unavailable'",
  )
  expect(states).toEqual(
    ['access_logs', 'bot_definition', 'integrations'].map(resource => ({
      resource,
      state: 'unavailable',
      has_reason: 1,
    })),
  )
  expect(await trial.differences({ withheld: ['access_logs'] })).toEqual([])
})
