import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { decodeJson } from '../../src/base/json.ts'
import { tableNamed } from '../../src/catalog/catalog.ts'
import { entity, requestKey } from '../../src/declare/table.ts'
import { compileParser } from '../../src/engine/parse/parse.ts'
import {
  newFolder,
  openAt,
  REJECTS_NOTHING,
  type TemporaryStore,
  temporaryStore,
  withShortcuts,
} from './temporary-store.ts'

const [FIRST, LATER, LATEST] = [
  '2026-01-01T00:00:00.000Z',
  '2026-01-02T00:00:00.000Z',
  '2026-01-03T00:00:00.000Z',
]

const record = (fields: unknown, more = {}) => ({
  id: 'r',
  object: 'deal',
  visibility: 'workspace',
  fields,
  created_at: null,
  updated_at: null,
  created_by: null,
  updated_by: null,
  ...more,
})

describe('a row that is written again', () => {
  test('an unchanged row costs no write', () => {
    const store = temporaryStore()
    const meeting = {
      meeting_id: 'm',
      title: 't',
      mood: { a: 1, b: 2 },
      attendees: [{ attendee_user_name: 'x', teams: [{ team_id: 'y', name: 'z' }] }],
      summaries: [{ chapter_title: 'c', chapter_items: [{ item: 'i', time: 1 }] }],
      transcript_config: { languages: ['ja'] },
    }
    store.put('meetings', [meeting], { now: FIRST })
    const before = store.column('SELECT total_changes()')
    const [written] = store.put('meetings', [{ ...meeting, mood: { b: 2, a: 1 } }], { now: LATER })
    expect(written?.written.status).toBe('unchanged')
    expect(store.column('SELECT total_changes()')).toEqual(before)
    expect(store.column('SELECT _synced_at FROM meetings')).toEqual([FIRST])
  })

  test('a row whose JSON has another field order is unchanged', () => {
    const store = temporaryStore()
    store.put('crm_records', [record({ a: 1, b: { c: 1, d: [1, 2] } })], { requested: 'deal' })
    const [written] = store.put('crm_records', [record({ b: { d: [1, 2], c: 1 }, a: 1 })], {
      requested: 'deal',
    })
    expect(written?.written.status).toBe('unchanged')
    expect(
      store.put('crm_records', [record({ a: 1, b: { c: 1, d: [2, 1] } })], { requested: 'deal' })[0]?.written
        .status,
    ).toBe('changed')
  })

  test('a changed row keeps its first-seen time and moves its synced time', () => {
    const store = temporaryStore()
    store.put('members', [{ id: 'a', name: 'x' }], { now: FIRST })
    store.put('members', [{ id: 'a', name: 'y' }], { now: LATER })
    expect(store.all('SELECT * FROM members')).toEqual([
      {
        id: 'a',
        name: 'y',
        email: null,
        role: null,
        _first_seen_at: FIRST,
        _synced_at: LATER,
        _changed_at: LATER,
        _deleted_at: null,
        _extra: null,
      },
    ])
  })

  test('a deleted row is live again, even when nothing else changed', () => {
    const store = temporaryStore()
    store.put('members', [{ id: 'a' }], { now: FIRST })
    expect(store.tombstone('members', [['a'], ['unknown']], LATER)).toBe(1)
    expect(store.tombstone('members', [['a']], LATEST)).toBe(0)
    expect(store.column('SELECT _deleted_at FROM members')).toEqual([LATER])
    expect(store.column('SELECT count(*) FROM live_members')).toEqual([0])
    expect(store.put('members', [{ id: 'a' }], { now: LATEST })[0]?.written.status).toBe('revived')
    expect(store.column('SELECT _deleted_at FROM members')).toEqual([null])
    expect(store.column('SELECT count(*) FROM live_members')).toEqual([1])
  })

  test('the children of a row are replaced, and the row is touched when only they changed', () => {
    const store = temporaryStore()
    store.put(
      'teams',
      [
        { id: 't', member_ids: ['a', 'b'] },
        { id: 'u', member_ids: ['c'] },
      ],
      { now: FIRST },
    )
    store.put('teams', [{ id: 't', member_ids: ['b', 'd'] }], { now: LATER })
    expect(store.column('SELECT team_id || member_id FROM team_members ORDER BY 1')).toEqual([
      'tb',
      'td',
      'uc',
    ])
    expect(store.column('SELECT _synced_at FROM teams ORDER BY id')).toEqual([LATER, FIRST])
    store.put('teams', [{ id: 't', member_ids: [] }], { now: LATEST })
    expect(store.column('SELECT team_id || member_id FROM team_members')).toEqual(['uc'])
  })

  test('the children of children are replaced too', () => {
    const store = temporaryStore()
    const meeting = (...chapters: string[][]) => ({
      meeting_id: 'm',
      summaries: chapters.map(items => ({ chapter_items: items.map(item => ({ item })) })),
    })
    const items = 'SELECT chapter_position || item FROM meeting_chapter_items ORDER BY 1'
    store.put('meetings', [meeting(['a', 'b'], ['c'])])
    store.put('meetings', [meeting(['a'], ['c', 'd'])])
    expect(store.column(items)).toEqual(['0a', '1c', '1d'])
    store.put('meetings', [meeting(['a'])])
    expect(store.column(items)).toEqual(['0a'])
    expect(store.db.pragma('foreign_key_check')).toEqual([])
  })
})

describe('an answer whose time of change is before that of the stored row', () => {
  const at = (minutes: number) => new Date(Date.parse(FIRST) + minutes * 60_000).toISOString()
  /** @param answers when they come, in minutes, and the value of which day they show */
  const storedAfter = (answers: readonly (readonly [minutes: number, day: number])[]) => {
    const store = temporaryStore()
    for (const [minutes, day] of answers) {
      const changed = record({ day }, { updated_at: `2025-12-0${day}T00:00:00Z` })
      store.put('crm_records', [changed], {
        requested: 'deal',
        now: at(minutes),
        olderSince: at(minutes - 60),
      })
    }
    return {
      day: store.column("SELECT fields ->> '$.day' FROM crm_records")[0],
      changes: store.column('SELECT old_value || new_value FROM crm_record_changes ORDER BY observed_at'),
      notes: store.column('SELECT count(*) FROM sync_older_answers')[0],
    }
  }

  test.each([
    {
      answers: 'one of them',
      told: [
        [0, 2],
        [1, 1],
      ],
      day: 2,
      changes: [],
      notes: 1,
    },
    {
      answers: 'two within an hour',
      told: [
        [0, 2],
        [1, 1],
        [60, 1],
      ],
      day: 2,
      changes: [],
      notes: 1,
    },
    {
      answers: 'two an hour apart',
      told: [
        [0, 2],
        [1, 1],
        [61, 1],
      ],
      day: 1,
      changes: ['21'],
      notes: 0,
    },
    {
      answers: 'two an hour apart with a newer one between them',
      told: [
        [0, 2],
        [1, 1],
        [30, 3],
        [61, 1],
      ],
      day: 3,
      changes: ['23'],
      notes: 1,
    },
    {
      answers: 'two an hour apart with the stored one between them',
      told: [
        [0, 2],
        [1, 1],
        [30, 2],
        [61, 1],
      ],
      day: 2,
      changes: [],
      notes: 1,
    },
  ] as const)('after $answers, day $day is stored', ({ told, day, changes, notes }) => {
    expect(storedAfter(told)).toEqual({ day, changes, notes })
  })

  test('a deleted row is live again with what the answer shows', () => {
    const store = temporaryStore()
    const put = (day: number) =>
      store.put('crm_records', [record({ day }, { updated_at: `2025-12-0${day}T00:00:00Z` })], {
        requested: 'deal',
      })
    put(2)
    store.exec("UPDATE crm_records SET _deleted_at = '2026-01-01T00:00:00.000Z'")
    put(1)
    expect(store.column("SELECT fields ->> '$.day' FROM live_crm_records")).toEqual([1])
  })
})

describe('a child that cannot be stored', () => {
  test('the child becomes a reject, and its parent and siblings are stored', () => {
    const store = temporaryStore()
    const rejected: string[] = []
    const report = {
      drift: () => undefined,
      reject: (table: string, _item: unknown, reason: string) => rejected.push(`${table}: ${reason}`),
    }
    const payload = {
      id: 'p',
      name: 'x',
      talk_points: [{ id: 'a' }, { question: 'q' }, { id: 'a', order: 2 }, 7],
    }
    const item = compileParser(tableNamed('playbooks'))(payload, report)
    if (!item) throw new Error('rejected')
    store.write('playbooks', [item], { ticket: store.freshness.begin(), now: FIRST })
    expect(store.column('SELECT id FROM playbook_talk_points')).toEqual(['a'])
    expect(store.column('SELECT name FROM playbooks')).toEqual(['x'])
    expect(rejected).toEqual([
      'playbook_talk_points: no identity: id is missing or not text (in talk_points of p)',
      'playbook_talk_points: repeated within its parent (in talk_points of p)',
      'playbook_talk_points: not an object (in talk_points of p)',
    ])
  })
})

test('a child that its list repeats without a difference is stored once and is no reject', () => {
  const rejected: unknown[] = []
  const report = {
    drift: () => undefined,
    reject: (_table: string, item: unknown) => rejected.push(item),
  }
  const link = { context_type: 'deal', context_id: 'd', origin: 'DIRECT' }
  const links = [link, { ...link }, { ...link, note: 'other' }, { ...link, context_id: 'e' }]
  const item = compileParser(tableNamed('activities'))({ id: 'a', links }, report)
  const rows = item?.children.get('activity_links') ?? []
  expect(rows.map(({ cells }) => cells)).toEqual([
    ['a', 'deal', 'd', 'DIRECT'],
    ['a', 'deal', 'e', 'DIRECT'],
  ])
  expect(rejected).toEqual([{ ...link, note: 'other' }])
})

describe('fields without a column', () => {
  const message = { id: 'a', header_message_id: 'h', received_at: FIRST, participants: [] }

  /** The fields of the single message after these answers. */
  function extraAfter(
    store: TemporaryStore,
    answers: readonly (readonly ['list' | 'single', object])[],
  ): unknown {
    for (const [shownBy, fields] of answers) {
      const keepsLive = shownBy === 'single'
      store.put('message_copies', [{ ...message, ...fields }], { shownBy, keepsLive })
    }
    const [extra] = store.column('SELECT _extra FROM message_copies')
    return extra === null ? null : JSON.parse(String(extra))
  }

  test.each([
    [
      'that the list has dropped are removed',
      [
        ['list', { a: 1, b: 2 }],
        ['list', { b: 2 }],
      ],
      { b: 2 },
    ],
    [
      'that were the last are removed',
      [
        ['list', { a: 1 }],
        ['list', {}],
      ],
      null,
    ],
    [
      'that only single reads show stay when the list is read',
      [
        ['list', {}],
        ['single', { a: 1 }],
        ['list', {}],
      ],
      { a: 1 },
    ],
    [
      'that only the list shows stay when the row is read singly',
      [
        ['list', { a: 1 }],
        ['single', { b: 2 }],
      ],
      { a: 1, b: 2 },
    ],
    [
      'that single reads have dropped are removed',
      [
        ['list', {}],
        ['single', { a: 1, b: 2 }],
        ['single', { b: 2 }],
      ],
      { b: 2 },
    ],
    [
      'that both have shown are dropped by the list',
      [
        ['list', { a: 1 }],
        ['single', { a: 1 }],
        ['single', {}],
        ['list', {}],
      ],
      null,
    ],
    [
      'that both show have the newest value',
      [
        ['list', { a: 1 }],
        ['single', { a: 2 }],
      ],
      { a: 2 },
    ],
  ] as const)('fields %s', (_, answers, expected) => {
    expect(extraAfter(temporaryStore(), answers)).toEqual(expected)
  })

  test('fields that another row has shown are dropped from this one too, also by a later process', () => {
    const folder = newFolder()
    const path = join(folder, 'parley.db')
    const first = withShortcuts(openAt(path), folder, path)
    extraAfter(first, [['list', { a: 1 }]])
    first.close()
    const second = withShortcuts(openAt(path), folder, path)
    expect(extraAfter(second, [['list', {}]])).toBeNull()
    second.close()
  })

  test('fields that a rolled-back transaction recorded are recorded again', async () => {
    const store = temporaryStore()
    const failed = store.transaction(() => {
      extraAfter(store, [['list', { a: 1 }]])
      throw new Error('undone')
    })
    await expect(failed).rejects.toThrow('undone')
    expect(
      extraAfter(store, [
        ['list', { a: 1 }],
        ['list', {}],
      ]),
    ).toBeNull()
  })

  test('fields that no list has shown stay in _extra', () => {
    const store = temporaryStore()
    const extra = () =>
      store.column('SELECT _extra FROM message_copies').map(text => JSON.parse(String(text)))
    store.put('message_copies', [{ ...message, mailbox: 'x', size: 1 }], { shownBy: 'single' })
    store.put('message_copies', [{ ...message, size: 2 }])
    expect(extra()).toEqual([{ mailbox: 'x', size: 2 }])
    store.put('message_copies', [{ ...message, size: 2, subject: 5 }])
    expect(extra()).toEqual([{ mailbox: 'x', size: 2, subject: 5 }])
    store.put('message_copies', [{ ...message, size: 2, subject: 'words' }])
    expect(extra()).toEqual([{ mailbox: 'x', size: 2 }])
    const before = store.column('SELECT total_changes()')
    store.put('message_copies', [{ ...message, size: 2, subject: 'words' }])
    expect(store.column('SELECT total_changes()')).toEqual(before)
  })
})

describe('a transaction of rows', () => {
  test('a transaction that throws leaves no change', async () => {
    const store = temporaryStore()
    const work = store.transaction(() => {
      store.put('members', [{ id: 'a' }])
      store.state.setMeta('x', 'y')
      throw new Error('as the test says')
    })
    await expect(work).rejects.toThrow('as the test says')
    expect(store.column('SELECT count(*) FROM members')).toEqual([0])
    expect(store.state.meta('x')).toBe(undefined)
  })

  test('a transaction that throws does not roll back others of the same moment', async () => {
    const store = temporaryStore()
    const insert = (id: string) => store.db.prepare('INSERT INTO sync_meta VALUES (?, 1)').run(id)
    const settled = await Promise.allSettled([
      store.transaction(() => insert('a')),
      store.transaction(() => {
        insert('b')
        throw new Error('as the test says')
      }),
      store.transaction(() => insert('c')),
    ])
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(store.column("SELECT key FROM sync_meta WHERE key IN ('a', 'b', 'c') ORDER BY 1")).toEqual([
      'a',
      'c',
    ])
  })

  test('a transaction is stored when it resolves: another connection sees it', async () => {
    const store = temporaryStore()
    const { openDatabase } = await import('../../src/store/file/open.ts')
    const reader = openDatabase({ path: store.path, readonly: true })
    await store.transaction(() => store.state.setMeta('x', 'y'))
    expect(reader.prepare("SELECT value FROM sync_meta WHERE key = 'x'").pluck().get()).toBe('y')
    reader.close()
  })
})

describe('tombstones of related rows', () => {
  test('a deleted meeting takes its results with it, and those of other meetings stay', () => {
    const store = temporaryStore()
    store.put('meetings', [{ meeting_id: 'm' }, { meeting_id: 'n' }])
    store.put('playbook_results', [{ id: 'r1', talk_point_results: [{ id: 'a' }] }, { id: 'r2' }], {
      requested: 'm',
    })
    store.put('playbook_results', [{ id: 'r3' }], { requested: 'n' })
    store.tombstone('meetings', [['m']], LATER)
    expect(store.column('SELECT id FROM live_playbook_results')).toEqual(['r3'])
    expect(store.column('SELECT _deleted_at FROM playbook_results ORDER BY id')).toEqual([LATER, LATER, null])
    expect(store.column('SELECT count(*) FROM talk_point_results')).toEqual([1])
    expect(store.column('SELECT count(*) FROM live_talk_point_results')).toEqual([0])
  })

  test('a deleted object takes its records and their links on either side with it', () => {
    const store = temporaryStore()
    store.put('crm_objects', [{ name: 'deal' }, { name: 'company' }])
    store.put('crm_records', [record({}, { id: 'd' })], { requested: 'deal' })
    store.put(
      'crm_records',
      [record({}, { id: 'c1', object: 'company' }), record({}, { id: 'c2', object: 'company' })],
      {
        requested: 'company',
      },
    )
    store.db.exec(`INSERT INTO crm_record_links VALUES ('deal', 'd', 'company', 'c1'), ('deal', 'd', 'company', 'c2'),
      ('company', 'c1', 'contact', 'p')`)
    store.tombstone('crm_records', [['company', 'c1']], LATER)
    expect(store.column('SELECT object || record_id || related_id FROM crm_record_links')).toEqual([
      'dealdc2',
    ])
    store.tombstone('crm_objects', [['deal']], LATER)
    expect(store.column('SELECT count(*) FROM crm_record_links')).toEqual([0])
    expect(store.column('SELECT id FROM live_crm_records')).toEqual(['c2'])
  })

  test('the e-mail of a deleted copy is merged again, and deleted with its last copy', () => {
    const store = temporaryStore()
    const copy = (id: string, subject: string) => ({
      id,
      header_message_id: 'h',
      subject,
      received_at: `2026-01-0${id}T00:00:00Z`,
    })
    store.put('message_copies', [copy('1', 'one'), copy('2', 'two')])
    store.tombstone('message_copies', [['1']], LATER)
    expect(store.all('SELECT id, copy_count, subject FROM live_messages')).toEqual([
      { id: '2', copy_count: 1, subject: 'two' },
    ])
    store.tombstone('message_copies', [['2']], LATER)
    expect(store.all('SELECT id FROM live_messages')).toEqual([])
    store.put('message_copies', [copy('2', 'two')])
    expect(store.all('SELECT id, copy_count FROM live_messages')).toEqual([{ id: '2', copy_count: 1 }])
  })
})

describe('a value that is nested thousands of levels deep', () => {
  const deep = (inner: unknown): unknown =>
    JSON.parse(`${'{"a":['.repeat(2000)}${JSON.stringify(inner)}${']}'.repeat(2000)}`)

  test.each([
    ['a field of a record', 'crm_records', (inner: unknown) => record({ plain: 1, layout: deep(inner) })],
    ['an unknown field', 'members', (inner: unknown) => ({ id: 'm', layout: deep(inner) })],
    [
      'an unknown field of a child',
      'meetings',
      (inner: unknown) => ({ meeting_id: 'm', action_items: [{ id: 'a', layout: deep(inner) }] }),
    ],
  ])('a change of a deep value is stored like any other: %s', (_, table, payload) => {
    const store = temporaryStore()
    const statusOf = (inner: unknown) =>
      store.put(table, [payload(inner)], { requested: 'deal' })[0]?.written.status
    expect([1, 1, 2].map(statusOf)).toEqual(['inserted', 'unchanged', 'changed'])
    expect(store.column('SELECT count(*) FROM crm_record_changes')).toEqual([table === 'crm_records' ? 1 : 0])
  })

  test('a deep value is kept next to the words of a transcript, which stay readable', () => {
    const transcript = entity('transcript', {
      about: '',
      key: ['id'],
      columns: { id: requestKey('') },
      children: [{ table: tableNamed('transcript_entries'), list: ['entries'], items: 'object' }],
    })
    const store = temporaryStore()
    const words = [{ text: deep(1), start_time: 1, end_time: 2 }, { text: 'b' }]
    const parsed = compileParser(transcript)({ entries: [{ words }] }, REJECTS_NOTHING, 'm')
    const rows = parsed?.children.get('transcript_entries') ?? []
    store.atomically(() => store.rows.replaceChildren('transcript_entries', 'm', rows, LATER))
    expect(store.column('SELECT text FROM transcript_words')).toEqual([null, 'b'])
    expect(store.column('SELECT _extra FROM transcript_entries')).toEqual([JSON.stringify({ words })])
  })
})

describe('the changes of records', () => {
  test('a change has every field with its old and new value; an absent field is SQL NULL and a JSON null is null', () => {
    const store = temporaryStore()
    const put = (fields: unknown, now: string) =>
      store.put('crm_records', [record(fields)], { requested: 'deal', now })
    const changes = () =>
      store.all('SELECT field, old_value, new_value FROM crm_record_changes ORDER BY observed_at, field')
    put({ a: 1, b: null, c: { x: 1, y: 2 } }, FIRST)
    expect(changes()).toEqual([])
    put({ b: 'x', c: { x: 1, y: 2 }, d: null }, LATER)
    expect(changes()).toEqual([
      { field: 'a', old_value: '1', new_value: null },
      { field: 'b', old_value: 'null', new_value: '"x"' },
      { field: 'd', old_value: null, new_value: 'null' },
    ])
    put({ b: 'x', c: { x: 1, y: 2 }, d: null }, LATEST)
    expect(changes()).toHaveLength(3)
  })

  test('another field order in a value is no change, even when other fields changed', () => {
    const store = temporaryStore()
    store.put('crm_records', [record({ a: { x: 1, y: 2 }, b: 1 })], { requested: 'deal', now: FIRST })
    store.put('crm_records', [record({ a: { y: 2, x: 1 }, b: 2 })], { requested: 'deal', now: LATER })
    expect(store.column('SELECT field FROM crm_record_changes')).toEqual(['b'])
  })

  test('no change overwrites an earlier one, even within one millisecond', () => {
    const store = temporaryStore()
    for (const b of [1, 2, 3]) store.put('crm_records', [record({ b })], { requested: 'deal', now: FIRST })
    const told = store.all('SELECT old_value, new_value FROM crm_record_changes ORDER BY observed_at')
    expect(told[0]?.['old_value']).toBe('1')
    expect(told.at(-1)?.['new_value']).toBe('3')
  })

  test.each([
    ['a list', '["x"]'],
    ['a number of many digits', '12345678901234567890'],
    ['text', '"words"'],
  ])('fields that are %s have no names, so only the fields of the object next to them change', (_, json) => {
    const store = temporaryStore()
    const put = (fields: unknown, now: string) =>
      store.put('crm_records', [record(fields)], { requested: 'deal', now })
    put({ b: 1 }, FIRST)
    put(decodeJson(json).value, LATER)
    put({ b: 2 }, LATEST)
    expect(store.column('SELECT DISTINCT field FROM crm_record_changes')).toEqual(['b'])
  })

  test('changes keep every digit and hostile field names', () => {
    const store = temporaryStore()
    const amounts = ['12345678901234567890', '12345678901234567891']
    for (const [index, amount] of amounts.entries()) {
      const fields = { [`a"; DROP TABLE crm_records; --`]: 1 }
      store.put('crm_records', [record(fields)], { requested: 'deal', now: FIRST })
      store.db.prepare('UPDATE crm_records SET fields = ?').run(`{"amount":${amount}}`)
      store.put('crm_records', [record({})], { requested: 'deal', now: index === 0 ? LATER : LATEST })
    }
    expect(
      store.column("SELECT old_value FROM crm_record_changes WHERE field = 'amount' ORDER BY observed_at"),
    ).toEqual(amounts)
  })
})

describe('rejects that repeat', () => {
  const reject = {
    resource: 'members',
    feed: 'members.list',
    scope: '',
    item: { name: 'x' },
    reason: 'no identity',
  }
  test('a reject that returns after it was resolved begins again', () => {
    const store = temporaryStore()
    store.rejects.note(reject, FIRST)
    store.rejects.resolve(reject.feed, null, LATER, LATER)
    store.rejects.note(reject, LATEST)
    expect(store.all('SELECT first_seen_at, last_seen_at, resolved_at FROM sync_rejects')).toEqual([
      { first_seen_at: LATEST, last_seen_at: LATEST, resolved_at: null },
    ])
  })

  test('a repeated reject of an item only moves its last-seen time', () => {
    const store = temporaryStore()
    store.rejects.note(reject, FIRST)
    store.rejects.note(reject, LATER)
    store.rejects.note({ ...reject, item: { name: 'y' } }, LATER)
    expect(
      store.all('SELECT item, first_seen_at, last_seen_at, resolved_at FROM sync_rejects ORDER BY id'),
    ).toEqual([
      { item: '{"name":"x"}', first_seen_at: FIRST, last_seen_at: LATER, resolved_at: null },
      { item: '{"name":"y"}', first_seen_at: LATER, last_seen_at: LATER, resolved_at: null },
    ])
    store.rejects.resolve('members.list', null, LATEST, LATEST)
    expect(store.column('SELECT resolved_at FROM sync_rejects')).toEqual([LATEST, LATEST])
    store.rejects.note(reject, LATEST)
    expect(store.column('SELECT resolved_at FROM sync_rejects ORDER BY id')).toEqual([null, LATEST])
  })
})

test('a text whose request started before an unchanged list was stored is stored too', () => {
  const store = temporaryStore()
  const copy = {
    id: '00000000-0000-4000-8000-000000000001',
    subject: 'x',
    received_at: '2026-01-01T00:00:00Z',
  }
  store.put('message_copies', [copy])
  const [single, list] = [store.freshness.begin(), store.freshness.begin()]
  expect(store.putAs('message_copies', [copy], list)).toHaveLength(1)
  expect(store.putAs('message_copies', [copy], single, { keepsLive: true })).toHaveLength(1)
})

test.each([
  ['deleted', 'tombstone'],
  ['withheld', 'withhold'],
] as const)(
  'a row that was %s takes no answer whose request started before that, and takes a later one',
  (_, verb) => {
    const store = temporaryStore()
    const meeting = { meeting_id: 'm', title: 'x' }
    store.put('meetings', [meeting])
    const earlier = store.freshness.begin()
    store[verb]('meetings', [['m']], LATER)
    expect(store.putAs('meetings', [meeting], earlier)).toEqual([])
    expect(store.putAs('meetings', [meeting], store.freshness.begin())).toHaveLength(1)
  },
)
