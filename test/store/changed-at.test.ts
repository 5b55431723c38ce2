import { describe, expect, test } from 'vitest'
import type { TextResult } from '../../src/store/rows/merge/texts.ts'
import { type TemporaryStore, temporaryStore } from './temporary-store.ts'
import { putTranscript } from './unique-texts.ts'

/** `_changed_at` moves when a value is replaced or removed. It stays when a row is only completed. */

const [FIRST, LATER, LATEST] = [
  '2026-01-01T00:00:00.000Z',
  '2026-01-02T00:00:00.000Z',
  '2026-01-03T00:00:00.000Z',
] as const

interface Times {
  _synced_at: string
  _changed_at: string | null
}

const timesOf = (store: TemporaryStore, table: string): Times =>
  store.all(`SELECT _synced_at, _changed_at FROM ${table}`)[0] as unknown as Times

const DETAIL = { meeting_id: 'm', title: 'First', attendees: [{ attendee_user_name: 'A' }], action_items: [] }
const RECORD = {
  id: 'd',
  object: 'deal',
  visibility: 'workspace',
  fields: { name: 'Big', amount: 1, date: null },
}

type Case = [what: string, table: string, before: object, after: object, requested?: string]

const CHANGES: readonly Case[] = [
  ['another value', 'members', { id: 'a', name: 'x' }, { id: 'a', name: 'y' }],
  ['a null in place of a value', 'members', { id: 'a', name: 'x' }, { id: 'a', name: null }],
  ['a missing child row', 'teams', { id: 't', member_ids: ['a', 'b'] }, { id: 't', member_ids: ['a'] }],
  [
    'another value in a child row',
    'meetings',
    DETAIL,
    { ...DETAIL, attendees: [{ attendee_user_name: 'B' }] },
  ],
  [
    'another value in a field of a record',
    'crm_records',
    RECORD,
    { ...RECORD, fields: { ...RECORD.fields, amount: 2 } },
    'deal',
  ],
  [
    'a first value in a field of a record',
    'crm_records',
    RECORD,
    { ...RECORD, fields: { ...RECORD.fields, date: '2026-05-01' } },
    'deal',
  ],
  [
    'another value in a field without a column',
    'members',
    { id: 'a', mood: { is: 1 } },
    { id: 'a', mood: { is: 2 } },
  ],
]

const COMPLETIONS: readonly Case[] = [
  ['a first value', 'members', { id: 'a', name: null }, { id: 'a', name: 'x' }],
  ['a first child row', 'teams', { id: 't', member_ids: [] }, { id: 't', member_ids: ['a'] }],
  ['another child row', 'teams', { id: 't', member_ids: ['a'] }, { id: 't', member_ids: ['a', 'b'] }],
  ['a new field without a column', 'members', { id: 'a' }, { id: 'a', mood: 1 }],
  ['a missing field without a column', 'members', { id: 'a', mood: 1, age: 2 }, { id: 'a', age: 2 }],
  [
    'a new field of all records without a value',
    'crm_records',
    RECORD,
    { ...RECORD, fields: { ...RECORD.fields, later: null } },
    'deal',
  ],
]

function stored([, table, before, after, requested]: Case): Times {
  const store = temporaryStore()
  const put = (payload: object, now: string) =>
    store.put(table, [payload], { now, ...(requested === undefined ? {} : { requested }) })
  put(before, FIRST)
  expect(timesOf(store, table)).toEqual({ _synced_at: FIRST, _changed_at: null })
  put(after, LATER)
  return timesOf(store, table)
}

describe('the changes that move _changed_at', () => {
  test.each(CHANGES)('%s moves _changed_at', (...given) => {
    expect(stored(given)).toEqual({ _synced_at: LATER, _changed_at: LATER })
  })
})

describe('the completions that leave _changed_at', () => {
  test.each(COMPLETIONS)('%s leaves _changed_at as it was', (...given) => {
    expect(stored(given)).toEqual({ _synced_at: LATER, _changed_at: null })
  })
})

test('a row keeps the time of its last change when it is completed, deleted or comes back', () => {
  const store = temporaryStore()
  const put = (payload: object, now: string) => store.put('members', [{ id: 'a', ...payload }], { now })
  put({ name: 'x' }, FIRST)
  put({ name: 'y' }, LATER)
  put({ name: 'y', email: 'a@example.com' }, LATEST)
  expect(timesOf(store, 'members')).toEqual({ _synced_at: LATEST, _changed_at: LATER })
  store.atomically(() => store.tombstone('members', [['a']], LATEST))
  put({ name: 'y', email: 'a@example.com' }, LATEST)
  expect(timesOf(store, 'members')).toEqual({ _synced_at: LATEST, _changed_at: LATER })
})

test('a meeting is completed by its first transcript, and has changed when the transcript differs', () => {
  const store = temporaryStore()
  store.put('meetings', [DETAIL], { now: FIRST })
  const say = (now: string, ...words: string[]) =>
    store.atomically(() =>
      putTranscript(
        store,
        'm',
        words.map(text => ({ text })),
        now,
      ),
    )
  say(LATER, 'one')
  expect(timesOf(store, 'meetings')).toEqual({ _synced_at: LATER, _changed_at: null })
  say(LATEST, 'two')
  expect(timesOf(store, 'meetings')).toEqual({ _synced_at: LATEST, _changed_at: LATEST })
})

describe('the last change of an e-mail', () => {
  const copy = (id: string, more: object = {}) => ({
    id,
    header_message_id: '<mail>',
    subject: 'Hello',
    received_at: '2025-12-02T00:00:00.000Z',
    participants: [{ role: 'FROM', handle: 'a@example.com', display_name: 'A', contact_id: null }],
    ...more,
  })
  const put = (store: TemporaryStore, now: string, ...copies: object[]) =>
    store.put('message_copies', copies, { now })
  const read = (store: TemporaryStore, id: string, result: TextResult, now: string) =>
    store.atomically(() => store.merge.applyText(id, result, now))

  test('an e-mail is completed by its text, by an earlier copy with other values, and by the text of that copy', () => {
    const store = temporaryStore()
    put(store, FIRST, copy('b'))
    read(store, 'b', { state: 'present', text: 'one' }, LATER)
    expect(timesOf(store, 'messages')).toEqual({ _synced_at: LATER, _changed_at: null })
    put(store, LATER, copy('a', { subject: 'Another', received_at: '2025-12-01T00:00:00.000Z' }))
    read(store, 'a', { state: 'present', text: 'two' }, LATEST)
    expect(store.column('SELECT subject || text FROM messages')).toEqual(['Anothertwo'])
    expect(timesOf(store, 'messages')).toEqual({ _synced_at: LATEST, _changed_at: null })
  })

  test.each<[string, (store: TemporaryStore) => unknown]>([
    ['the subject of a copy is another', store => put(store, LATER, copy('a', { subject: 'Other' }))],
    ['a participant has gone', store => put(store, LATER, copy('a', { participants: [] }))],
    ['its text is another', store => read(store, 'a', { state: 'present', text: 'two' }, LATER)],
    ['its text has gone', store => read(store, 'a', { state: 'gone' }, LATER)],
    [
      'the copy that it was merged from is deleted, and the other copy differs',
      store => {
        put(store, FIRST, copy('b', { subject: 'Other' }))
        store.atomically(() => store.tombstone('message_copies', [['a']], LATER))
      },
    ],
  ])('an e-mail has changed when %s', (_, change) => {
    const store = temporaryStore()
    put(store, FIRST, copy('a'))
    read(store, 'a', { state: 'present', text: 'one' }, FIRST)
    change(store)
    expect(timesOf(store, "messages WHERE header_message_id = '<mail>'")).toEqual({
      _synced_at: LATER,
      _changed_at: LATER,
    })
  })

  test('a copy that gets a Message-ID is a copy of another e-mail, and no value was replaced', () => {
    const store = temporaryStore()
    put(store, FIRST, copy('a', { header_message_id: null }))
    put(store, LATER, copy('a'))
    expect(store.all('SELECT mail_id, _changed_at FROM message_copies')).toEqual([
      { mail_id: '<mail>', _changed_at: null },
    ])
    expect(store.column('SELECT header_message_id FROM live_messages')).toEqual(['<mail>'])
  })

  test('an e-mail with changed participants only has a new _synced_at', () => {
    const store = temporaryStore()
    put(store, FIRST, copy('a', { participants: [] }))
    put(store, LATER, copy('a'))
    expect(timesOf(store, 'messages')).toEqual({ _synced_at: LATER, _changed_at: null })
  })
})
