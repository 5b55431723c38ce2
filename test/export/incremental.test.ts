import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Target } from '../../src/export/target.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { putOwn, putTranscript } from '../store/unique-texts.ts'
import { runs } from '../support/effort.ts'
import { openDuck } from './duckdb.ts'
import { contents, emptyTarget, exportTo, filesIn, manifestOf, withLook } from './exporting.ts'

/** All rows have this timestamp, so that changes must be found without timestamps. */
const NOW = '2026-06-30T12:00:00.000Z'

const MONTHS = [
  '2025-12-31T23:59:59.999Z',
  '2026-01-01T00:00:00.000Z',
  '2026-01-20T10:00:00.000Z',
  '2026-03-05T08:00:00.000Z',
]
const KEYS = ['k1', 'k2', 'k3', 'k4', 'k5']
/** All have the same length, so that file sizes do not differ. */
const WORDS = ['alpha', 'bravo', '日本語で', 'delta']

/** The changes of a warehouse between two exports. */
interface Draw {
  key: string
  other: string
  at: string
  word: string
}

const CHANGES: Readonly<Record<string, (store: TemporaryStore, draw: Draw) => void>> = {
  'a copy of a message': (store, { key, other, at, word }) => {
    store.put(
      'message_copies',
      [
        {
          id: key,
          header_message_id: `<${other}>`,
          thread_id: null,
          subject: word,
          received_at: at,
          is_internal: false,
          is_group_email: null,
          participants: [{ handle: `${word}@x.example`, display_name: word, role: 'FROM', contact_id: null }],
        },
      ],
      { now: NOW },
    )
  },
  'a text': (store, { key, word }) => {
    store.merge.applyText(key, { state: 'present', text: word }, NOW)
  },
  'a text that is gone': (store, { key }) => {
    store.merge.applyText(key, { state: 'gone' }, NOW)
  },
  'a meeting': (store, { key, at, word }) => {
    const payload = {
      meeting_id: key,
      title: word,
      start_time: at,
      attendees: [{ attendee_user_name: word, is_internal: true }],
      action_items: [{ id: '1', text: word, completed: false }],
    }
    putOwn(store, { table: 'meetings', payload, own: { access: 'open' }, now: NOW })
  },
  'a meeting without a time': (store, { key, word }) => {
    putOwn(store, {
      table: 'meetings',
      payload: { meeting_id: key, title: word },
      own: { access: 'open' },
      now: NOW,
    })
  },
  'a transcript': (store, { key, word }) => {
    putTranscript(store, key, [{ text: word, words: [{ text: word, start_time: 1, end_time: 2.5 }] }])
  },
  'an activity': (store, { key, other, at, word }) => {
    store.put(
      'activities',
      [
        {
          id: key,
          type: word,
          source_type: 'MEETING',
          source_id: other,
          occurred_at: at,
          links: [{ context_type: 'deal', context_id: other, origin: 'DIRECT' }],
        },
      ],
      { now: NOW },
    )
  },
  'a record': (store, { key, word }) => {
    const payload = {
      id: key,
      object: 'deal',
      visibility: 'workspace',
      fields: { name: word, alpha: 12, delta: true },
    }
    store.put('crm_records', [payload], { now: NOW, requested: 'deal' })
  },
  'an object with its fields': (store, { word }) => {
    const fields = [
      { name: 'name', type: 'text' },
      { name: word, type: 'number' },
      { name: 'delta', type: 'boolean' },
    ]
    store.put('crm_objects', [{ name: 'deal', label: word, fields }], { now: NOW })
  },
  'a link': (store, { key, other }) => {
    store.prepare("INSERT OR IGNORE INTO crm_record_links VALUES ('deal', ?, 'company', ?)").run(key, other)
  },
  'a link that goes': (store, { key }) => {
    store.prepare('DELETE FROM crm_record_links WHERE record_id = ?').run(key)
  },
  'an entry of the access log': (store, { key, at, word }) => {
    putOwn(store, {
      table: 'access_logs',
      payload: { occurred_at: at, path: word },
      own: { id: key },
      now: NOW,
    })
  },
  'a result': (store, { key, other, at, word }) => {
    const answers = [{ id: '1', talk_point_id: 't', question: 'q', answer: word, created_at: at }]
    store.put(
      'playbook_results',
      [{ id: key, playbook_id: 'p', created_at: at, talk_point_results: answers }],
      {
        now: NOW,
        requested: other,
      },
    )
  },
  'a member': (store, { key, word }) => {
    store.put('members', [{ id: key, name: word }], { now: NOW })
  },
  ...Object.fromEntries(
    ['members', 'message_copies', 'meetings', 'activities', 'playbook_results', 'access_logs'].map(table => [
      `the end of a row of ${table}`,
      (store: TemporaryStore, { key }: Draw) => {
        store.tombstone(table, [[key]], NOW)
      },
    ]),
  ),
  'the end of a record': (store, { key }) => {
    store.tombstone('crm_records', [['deal', key]], NOW)
  },
  'the purge of deleted rows': store => {
    store.purger.purge({ before: '9999', limit: 1000, now: '9999' })
  },
  'an item that cannot be stored': (store, { key, word }) => {
    store.rejects.note(
      { resource: 'members', feed: 'members.list', scope: '', item: { key, word }, reason: 'r' },
      NOW,
    )
  },
}

const draws = fc.record({
  change: fc.constantFrom(...Object.keys(CHANGES)),
  key: fc.constantFrom(...KEYS),
  other: fc.constantFrom(...KEYS),
  at: fc.constantFrom(...MONTHS),
  word: fc.constantFrom(...WORDS),
})

/** Typed tables are created again when the metadata changed. */
async function apply(store: TemporaryStore, changes: readonly (Draw & { change: string })[]): Promise<void> {
  store.atomically(() => {
    for (const { change, ...draw } of changes) CHANGES[change]?.(store, draw)
  })
  await store.crmTables.finish()
}

/** The content of both manifests without their instants. */
const withoutInstants = (folder: string) =>
  JSON.parse(JSON.stringify(manifestOf(folder), (key, value) => (key === 'exported_at' ? null : value)))

/** Fails when the n-th file is renamed to its final name, as a process that is killed there. */
function dyingAfter(files: number): (target: Target) => Target {
  let left = files
  return target =>
    withLook(target, () => {
      if (left === 0) throw new Error('killed here')
      left -= 1
    })
}

describe('an incremental export after any changes', () => {
  test('an incremental export equals a full one byte by byte, and writes only what changed', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(draws, { minLength: 1, maxLength: 12 }), { minLength: 2, maxLength: 4 }),
        async rounds => {
          const store = temporaryStore()
          const target = emptyTarget()
          for (const changes of rounds) {
            await apply(store, changes)
            const before = filesIn(target)
            await exportTo(store.path, target)
            for (const [name, { inode, content }] of filesIn(target)) {
              const same = before.get(name)
              if (same?.content === content) expect(inode, name).toBe(same.inode)
            }
          }
          const full = emptyTarget()
          await exportTo(store.path, full)
          expect(contents(target)).toEqual(contents(full))
          expect(withoutInstants(target)).toEqual(withoutInstants(full))
        },
      ),
      { numRuns: runs(10), endOnFailure: true },
    )
  })

  test('the next export repairs one that was interrupted at any point', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(draws, { minLength: 5, maxLength: 15 }),
        fc.array(draws, { minLength: 1, maxLength: 10 }),
        fc.nat(25),
        async (first, second, files) => {
          const store = temporaryStore()
          const target = emptyTarget()
          await apply(store, first)
          await exportTo(store.path, target)
          const manifest = manifestOf(target)
          await apply(store, second)
          await exportTo(store.path, target, { through: dyingAfter(files) }).catch(error => {
            expect(error).toMatchObject({ message: 'killed here' })
            expect(manifestOf(target)).toEqual(manifest)
          })
          await exportTo(store.path, target)
          const full = emptyTarget()
          await exportTo(store.path, full)
          expect(contents(target)).toEqual(contents(full))
        },
      ),
      { numRuns: runs(6), endOnFailure: true },
    )
  })
})

const setMember = (store: TemporaryStore, name: string) =>
  store.put('members', [{ id: 'm', name }], { now: NOW })

const membersIn = (folder: string) => filesIn(folder).get('members/part-00000.parquet')

test('the manifest does not describe a file of an interrupted export', async () => {
  const store = temporaryStore()
  const target = emptyTarget()
  setMember(store, 'first')
  await exportTo(store.path, target)
  const first = membersIn(target)
  setMember(store, 'other')
  store.put('teams', [{ id: 't', name: 'T', member_ids: [] }], { now: NOW })
  await expect(exportTo(store.path, target, { through: dyingAfter(1) })).rejects.toThrow('killed here')
  expect(membersIn(target)?.content).not.toBe(first?.content)
  setMember(store, 'first')
  // The same rows as in the first export, as if the other rows had never existed.
  store.db.exec('UPDATE members SET _changed_at = NULL')
  await exportTo(store.path, target)
  expect(membersIn(target)?.content).toBe(first?.content)
})

test('a file of an interrupted export is not written twice', async () => {
  const store = temporaryStore()
  const target = emptyTarget()
  setMember(store, 'first')
  await expect(exportTo(store.path, target, { through: dyingAfter(5) })).rejects.toThrow('killed here')
  const members = membersIn(target)
  await exportTo(store.path, target)
  expect(membersIn(target)).toEqual(members)
  expect([...filesIn(target).keys()].filter(name => name.endsWith('.tmp'))).toEqual([])
})

test('a full export writes everything again', async () => {
  const store = temporaryStore()
  const target = emptyTarget()
  setMember(store, 'first')
  await exportTo(store.path, target)
  const before = filesIn(target)
  const { tables } = await exportTo(store.path, target, { full: true })
  expect(tables.every(({ files, files_written }) => files === files_written)).toBe(true)
  const after = filesIn(target)
  expect([...after.keys()]).toEqual([...before.keys()])
  for (const [name, { inode }] of after) expect(inode, name).not.toBe(before.get(name)?.inode)
})

test('purged content leaves the export at its next run', async () => {
  const store = temporaryStore()
  const target = emptyTarget()
  const draw: Draw = { key: 'k1', other: 'k1', at: MONTHS[1] ?? '', word: 'Rumpelstilzchen' }
  await apply(
    store,
    ['a meeting', 'a transcript', 'a copy of a message', 'a text', 'a record'].map(change => ({
      ...draw,
      change,
    })),
  )
  await exportTo(store.path, target)
  const says = () =>
    [...filesIn(target)].filter(([, { content }]) => Buffer.from(content, 'base64').includes(draw.word))
  expect(says().length).toBeGreaterThan(5)
  const ends = ['the end of a row of message_copies', 'the end of a row of meetings', 'the end of a record']
  await apply(
    store,
    [...ends, 'the purge of deleted rows'].map(change => ({ ...draw, change })),
  )
  await exportTo(store.path, target)
  expect(says().map(([name]) => name)).toEqual([])
})

/** The fields of an object in a CRM over time. */
const SHAPES: readonly (readonly { name: string; type: string }[])[] = [
  [
    { name: 'title', type: 'text' },
    { name: 'size', type: 'number' },
  ],
  [
    { name: 'title', type: 'text' },
    { name: 'size', type: 'number' },
    { name: 'Größe "neu"', type: 'datetime' },
  ],
  [
    { name: 'title', type: 'number' },
    { name: 'size', type: 'text' },
  ],
  [
    { name: 'SIZE', type: 'boolean' },
    { name: 'title', type: 'text' },
  ],
  [],
]

test('the table of a CRM object follows its metadata: fields are added, retyped, renamed and removed', async () => {
  const store = temporaryStore()
  const target = emptyTarget()
  const duck = await openDuck()
  const found: unknown[] = []
  for (const fields of SHAPES) {
    store.put('crm_objects', [{ name: 'deal', label: 'Deal', fields }], { requested: 'deal', now: NOW })
    const values = { title: 'T', size: 12, SIZE: true, 'Größe "neu"': NOW }
    store.put('crm_records', [{ id: 'r', object: 'deal', fields: values }], { requested: 'deal', now: NOW })
    await store.crmTables.finish()
    await exportTo(store.path, target)
    const { types, rows } = await duck.table(target, 'crm_deal')
    found.push([Object.entries(types).slice(1, -3), rows[0]?.slice(1, -3)])
    const full = emptyTarget()
    await exportTo(store.path, full)
    expect(contents(target)).toEqual(contents(full))
  }
  const [text, real, boolean, time] = ['VARCHAR', 'DOUBLE', 'BOOLEAN', 'TIMESTAMP WITH TIME ZONE']
  expect(found).toEqual([
    [
      [
        ['title', text],
        ['size', real],
        ['size_exact', text],
      ],
      ['T', 12, null],
    ],
    [
      [
        ['title', text],
        ['size', real],
        ['size_exact', text],
        ['Größe "neu"', time],
      ],
      ['T', 12, null, NOW],
    ],
    [
      [
        ['title', real],
        ['title_exact', text],
        ['size', text],
      ],
      [null, null, '12'],
    ],
    [
      [
        ['SIZE', boolean],
        ['title', text],
      ],
      [true, 'T'],
    ],
    [[], []],
  ])
})
