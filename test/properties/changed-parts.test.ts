import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { createFingerprint } from '../../src/export/fingerprint.ts'
import type { Partition } from '../../src/export/partitions.ts'
import { partsToCompare } from '../../src/publish/comparison.ts'
import { type PublishedTable, publishedTables } from '../../src/publish/published-tables.ts'
import { createPartReader } from '../../src/publish/row-ranges.ts'
import { type ChangePoint, changesSince, currentPoint } from '../../src/store/changes/changes-since.ts'
import type { Sqlite, StoredCell } from '../../src/store/database/sqlite-types.ts'
import { readDatabase } from '../../src/store/file/open.ts'
import type { TextResult } from '../../src/store/rows/merge/texts.ts'
import { openAt, type TemporaryStore, withShortcuts } from '../store/temporary-store.ts'
import { putOwn, putTranscript } from '../store/unique-texts.ts'
import { runs } from '../support/effort.ts'

/** Whatever is written, each part of a published table whose rows differ from before is noted as changed. */

const IDS = ['a', 'b', 'bb', 'c', 'd', '語']
const id = fc.constantFrom(...IDS)
const time = fc.constantFrom(
  '2026-01-01T00:00:00.000Z',
  '2026-02-02T00:00:00.000Z',
  '2025-02-03T00:00:00.000Z',
  null,
)
const text = fc.constantFrom('one', 'two', null)

const message = fc.record({
  id,
  header_message_id: fc.constantFrom('<1>', '<2>', null),
  subject: text,
  received_at: time,
  participants: fc.array(
    fc.record({
      handle: fc.constantFrom('x@e', 'y@e'),
      role: fc.constantFrom('FROM', 'TO'),
      display_name: text,
    }),
    { maxLength: 2 },
  ),
})
const activity = fc.record({
  id,
  type: text,
  occurred_at: time,
  links: fc.uniqueArray(
    fc.record({ context_type: fc.constant('deal'), context_id: id, origin: fc.constant('DIRECT') }),
    { maxLength: 2, selector: link => link.context_id },
  ),
})
const meeting = fc.record({ meeting_id: id, title: text, start_time: time })
const result = fc.constantFrom<TextResult>({ state: 'present', text: 'said' }, { state: 'gone' })
const object = fc.constantFrom('deal', 'contact')
const field = fc.record({
  name: fc.constantFrom('name', 'stage', 'amount'),
  type: fc.constantFrom('TEXT', 'NUMBER'),
})
const deletable = fc.constantFrom('message_copies', 'activities', 'meetings', 'members')

/** Writes to the store, each in one transaction. */
const WRITES = {
  messages: fc.array(message, { maxLength: 3 }).map(rows => (store: TemporaryStore) => {
    store.put('message_copies', rows)
  }),
  text: fc.tuple(id, result).map(([copy, read]) => (store: TemporaryStore, now: string) => {
    store.atomically(() => store.merge.applyText(copy, read, now))
  }),
  activities: fc.array(activity, { maxLength: 3 }).map(rows => (store: TemporaryStore) => {
    store.put('activities', rows)
  }),
  meeting: meeting.map(fields => (store: TemporaryStore, now: string) => {
    const payload = { ...(resourceNamed('meetings').example['detail'] as object), ...fields }
    store.atomically(() => putOwn(store, { table: 'meetings', payload, own: { access: 'open' }, now }))
  }),
  transcript: fc.tuple(id, fc.array(text, { maxLength: 3 })).map(([of, said]) => (store: TemporaryStore) => {
    const entries = said.map(spoken => ({ text: spoken, words: [] }))
    store.atomically(() => putTranscript(store, of, entries))
  }),
  member: fc.tuple(id, text).map(([of, name]) => (store: TemporaryStore) => {
    store.put('members', [{ id: of, name }])
  }),
  metadata: fc
    .tuple(object, fc.uniqueArray(field, { selector: each => each.name }))
    .map(([name, fields]) => (store: TemporaryStore) => {
      store.put('crm_objects', [{ name, label: 'Label', fields }], { requested: name })
    }),
  record: fc.tuple(object, id, text).map(([of, record, name]) => (store: TemporaryStore) => {
    store.put('crm_records', [{ id: record, object: of, fields: { name } }], { requested: of })
  }),
  deletion: fc.tuple(deletable, id).map(([table, key]) => (store: TemporaryStore, now: string) => {
    store.atomically(() => store.tombstone(table, [[key]], now))
  }),
  recordDeletion: fc.tuple(object, id).map(([of, key]) => (store: TemporaryStore, now: string) => {
    store.atomically(() => store.tombstone('crm_records', [[of, key]], now))
  }),
  objectDeletion: object.map(name => (store: TemporaryStore, now: string) => {
    store.atomically(() => store.tombstone('crm_objects', [[name]], now))
  }),
  purge: fc.constant((store: TemporaryStore, now: string) => {
    store.atomically(() => store.purger.purge({ before: '9999', limit: 100, now }))
  }),
  /** Leaves participants without an e-mail. Entries of a transcript may also come before their meeting. */
  owner: id.map(copy => (store: TemporaryStore) => store.exec(`DELETE FROM messages WHERE id = '${copy}'`)),
  run: fc.constant((store: TemporaryStore, now: string) => {
    store.atomically(() => store.runs.begin('members', 'audit', now))
  }),
  segment: fc.tuple(time, time).map(([from, to]) => (store: TemporaryStore) => {
    const { segments } = store
    const known = segments.of('activities.list').find(segment => segment.from === from)
    store.atomically(() => {
      if (known) segments.save({ ...known, listedAt: to })
      else segments.add({ feed: 'activities.list', scope: '', from, to })
    })
  }),
  /** Two writes share a commit, and one of them fails. */
  failure: fc.tuple(id, text).map(([of, name]) => async (store: TemporaryStore) => {
    const rename = (key: string) =>
      store.db.prepare('UPDATE members SET name = ? WHERE id = ?').run(name, key)
    const failed = store.transaction(() => {
      rename('a')
      throw new Error('refused')
    })
    await Promise.all([expect(failed).rejects.toThrow('refused'), store.transaction(() => rename(of))])
  }),
  filling: fc.constant(async (store: TemporaryStore) => store.crmTables.finish()),
  /** The tables for reports follow, and with them the views over their internal tables. */
  reports: fc.constant(async (store: TemporaryStore) => {
    await store.reports.update(REPORTS)
  }),
}

const REPORTS = loadSettings({ flags: {}, env: {}, cwd: '/', requireApi: false }).settings

const write: fc.Arbitrary<(store: TemporaryStore, now: string) => void | Promise<void>> = fc.oneof(
  ...Object.values(WRITES),
)
const step = fc.oneof(
  { weight: 30, arbitrary: write },
  { weight: 1, arbitrary: fc.constant('start again' as const) },
)

const LIMITS = { first: 2, grown: 3 }

type Digests = ReadonlyMap<Partition, string>

/** The digest of each part, in the order of the rows. */
function digestsOf({ read }: PublishedTable, rows: Iterable<StoredCell[]>): Digests {
  const prints = new Map<Partition, ReturnType<typeof createFingerprint>>()
  for (const row of rows) {
    const part = row.pop() as Partition
    const print = prints.get(part) ?? createFingerprint(read.columns)
    prints.set(part, print)
    print.add(row)
  }
  return new Map([...prints].map(([part, print]) => [part, print.finish().fingerprint]))
}

interface Published {
  point: ChangePoint | undefined
  tables: ReadonlyMap<string, Digests>
}

/** Every part by its digest, as a publication finds them that looks only where it must. */
function published(db: Sqlite, before: Published): { exact: Published; found: Published['tables'] } {
  const changed = before.point && changesSince(db, before.point)
  const exact = new Map<string, Digests>()
  const found = new Map<string, Digests>()
  for (const table of publishedTables(db)) {
    const { name } = table.read
    const known = before.tables.get(name) ?? new Map<Partition, string>()
    const reader = createPartReader(db, table.read, [...known.keys()], LIMITS)
    const notes = changed && known.size > 0 ? partsToCompare(db, table.read, changed) : 'all'
    const looked = notes === 'all' ? 'all' : reader.noted(notes)
    const kept = looked === 'all' ? [] : [...known].filter(([part]) => !looked.includes(part))
    const digests = [...kept, ...digestsOf(table, reader.rows(looked))]
    found.set(name, new Map(digests.toSorted(([one], [other]) => reader.compare(one, other))))
    exact.set(name, digestsOf(table, reader.rows('all')))
  }
  return { exact: { point: currentPoint(db), tables: exact }, found }
}

/** What is written between two publications. */
const period = fc.array(step, { minLength: 1, maxLength: 6 })

test('a publication that looks only at the noted parts finds what one finds that reads every row', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(period, { minLength: 8, maxLength: 12 }), async periods => {
      const folder = mkdtempSync(join(tmpdir(), 'parley-parts-'))
      const path = join(folder, 'parley.db')
      let store = withShortcuts(openAt(path), folder, path)
      store.exec("UPDATE sync_resources SET first_complete_at = '2026-01-01T00:00:00.000Z'")
      let before: Published = { point: undefined, tables: new Map() }
      try {
        for (const [index, steps] of periods.entries()) {
          for (const take of steps) {
            if (take === 'start again') {
              store.close()
              store = withShortcuts(openAt(path), folder, path)
            } else await take(store, `2026-03-01T00:00:${String(index).padStart(2, '0')}.000Z`)
          }
          const { exact, found } = readDatabase({ path }, db => published(db, before))
          expect(found).toEqual(exact.tables)
          before = exact
        }
      } finally {
        store.close()
        rmSync(folder, { recursive: true, force: true })
      }
    }),
    { numRuns: runs(6) },
  )
})
