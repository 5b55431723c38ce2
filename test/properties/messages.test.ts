import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TextResult } from '../../src/store/rows/merge/texts.ts'
import { openAt, type TemporaryStore, withShortcuts } from '../store/temporary-store.ts'
import { runs } from '../support/effort.ts'

/** The merge of copies, told a second time and as simply as WAREHOUSE tells it ("Messages"). */

interface Copy {
  id: string
  header_message_id: string | null
  thread_id: string | null
  subject: string | null
  received_at: string | null
  is_internal: boolean | null
  is_group_email: boolean
  participants: { handle: string; role: string; display_name: string | null; contact_id: string | null }[]
}

interface Known {
  copy: Copy
  live: boolean
  text: { state: string; text?: string }
}

const keyOf = ({ header_message_id: header, id }: Copy): string => header?.trim() || `id:${id}`

function canonically(one: Known, other: Known): number {
  const [a, b] = [one.copy.received_at ?? '~', other.copy.received_at ?? '~']
  if (a !== b) return a < b ? -1 : 1
  return one.copy.id < other.copy.id ? -1 : 1
}

const FIELDS = ['thread_id', 'subject', 'received_at', 'is_internal', 'is_group_email'] as const

const cell = (value: unknown) => (typeof value === 'boolean' ? Number(value) : (value ?? null))

/** The expected rows of `live_messages`, without the text. */
function mergedModel(known: readonly Known[]): Record<string, unknown>[] {
  const groups = new Map<string, Known[]>()
  for (const each of known.filter(({ live }) => live)) {
    groups.set(keyOf(each.copy), [...(groups.get(keyOf(each.copy)) ?? []), each])
  }
  return [...groups]
    .map(([header, copies]) => {
      const sorted = copies.sort(canonically)
      const merged = FIELDS.map(name => [
        name,
        cell(sorted.find(({ copy }) => copy[name] !== null)?.copy[name]),
      ])
      return {
        header_message_id: header,
        id: sorted[0]?.copy.id,
        copy_count: copies.length,
        ...Object.fromEntries(merged),
      }
    })
    .sort((one, other) => (one.header_message_id < other.header_message_id ? -1 : 1))
}

function participantsModel(known: readonly Known[]): unknown[] {
  const rows = new Map<string, Record<string, unknown>>()
  for (const { copy } of known.filter(({ live }) => live).sort(canonically)) {
    for (const { role, handle, display_name, contact_id } of copy.participants) {
      const name = JSON.stringify([keyOf(copy), role, handle])
      const row = rows.get(name) ?? { header_message_id: keyOf(copy), role, handle }
      row['display_name'] ??= display_name
      row['contact_id'] ??= contact_id
      rows.set(name, row)
    }
  }
  return [...rows].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row)
}

const senderOf = ({ participants }: Copy): string =>
  [...new Set(participants.flatMap(({ role, handle }) => (role === 'FROM' ? handle.toLowerCase() : [])))]
    .sort()
    .join()

/** Each copy of an e-mail whose sender is another than the first one's. @param sorted the copies of one e-mail */
function strangersIn(sorted: readonly Known[]): readonly Known[] {
  const sender = sorted.map(({ copy }) => senderOf(copy)).find(each => each !== '')
  return sorted.filter(({ copy }) => ![sender, ''].includes(senderOf(copy)))
}

/** The texts that copies keep themselves, once everything that is due was read. */
function ownTextModel(known: readonly Known[], texts: ReadonlyMap<string, TextResult>): unknown {
  const groups = new Map<string, Known[]>()
  for (const each of known.filter(({ live }) => live)) {
    groups.set(keyOf(each.copy), [...(groups.get(keyOf(each.copy)) ?? []), each])
  }
  const kept = [...groups.values()].flatMap(copies => strangersIn(copies.sort(canonically)))
  return Object.fromEntries(
    kept.flatMap(({ copy: { id } }) => {
      const result = texts.get(id)
      return result?.state === 'present' ? [[id, result.text]] : []
    }),
  )
}

/** The texts once everything that is due was read: canonical order until a copy of the sender gives one. */
function textModel(known: readonly Known[], texts: ReadonlyMap<string, TextResult>): Record<string, unknown> {
  const groups = new Map<string, Known[]>()
  for (const each of known.filter(({ live }) => live)) {
    groups.set(keyOf(each.copy), [...(groups.get(keyOf(each.copy)) ?? []), each])
  }
  return Object.fromEntries(
    [...groups].map(([header, copies]) => {
      const all = copies.sort(canonically)
      const sorted = all.filter(each => !strangersIn(all).includes(each))
      const giving = sorted.map(({ copy }) => texts.get(copy.id)).find(result => result?.state === 'present')
      if (giving?.state === 'present') return [header, { text_state: 'present', text: giving.text }]
      return [header, { text_state: texts.get(sorted[0]?.copy.id ?? '')?.state, text: null }]
    }),
  )
}

const ids = ['a', 'ab', 'b', 'c', 'd']
const copyOf = (id: string): fc.Arbitrary<Copy> =>
  fc.record({
    id: fc.constant(id),
    header_message_id: fc.constantFrom('<1>', '<1>', ' <1>\n', '<2>', '', ' ', null),
    thread_id: fc.constantFrom('t1', 't2', null),
    subject: fc.constantFrom('s', null),
    received_at: fc.constantFrom('2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z', null),
    is_internal: fc.constantFrom(true, false, null),
    is_group_email: fc.boolean(),
    participants: fc.array(
      fc.record({
        handle: fc.constantFrom('x@e', 'y@e', 'Y@e'),
        role: fc.constantFrom('FROM', 'TO'),
        display_name: fc.constantFrom('N', 'M', null),
        contact_id: fc.constantFrom('c1', null),
      }),
      { maxLength: 3 },
    ),
  })

const result: fc.Arbitrary<TextResult> = fc.constantFrom<TextResult>(
  { state: 'present', text: 'one' },
  { state: 'present', text: 'two' },
  { state: 'empty' },
  { state: 'gone' },
)

type Action =
  | { kind: 'list'; copies: Copy[] }
  | { kind: 'delete'; id: string }
  /** Reads the text of the copies that are due, one after the other. */
  | { kind: 'read'; times: number }

const anyCopy = fc.constantFrom(...ids).chain(copyOf)
const action: fc.Arbitrary<Action> = fc.oneof(
  fc.record({
    kind: fc.constant('list' as const),
    copies: fc.uniqueArray(anyCopy, { minLength: 1, maxLength: 3, selector: ({ id }) => id }),
  }),
  fc.record({ kind: fc.constant('delete' as const), id: fc.constantFrom(...ids) }),
  fc.record({ kind: fc.constant('read' as const), times: fc.integer({ min: 1, max: 4 }) }),
)

let folder: string
let store: TemporaryStore

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-messages-'))
  const path = join(folder, 'parley.db')
  store = withShortcuts(openAt(path), folder, path)
  store.db.pragma('synchronous = OFF')
})

afterAll(() => {
  store.close()
  rmSync(folder, { recursive: true })
})

const DUE = 'SELECT id FROM message_copies WHERE _text_due = 1 AND _deleted_at IS NULL ORDER BY id LIMIT 1'
const NOW = '2026-01-01T00:00:00.000Z'
const MERGED = `SELECT header_message_id, id, copy_count, thread_id, subject, received_at, is_internal, is_group_email
  FROM live_messages ORDER BY header_message_id`
const PARTICIPANTS = `SELECT * FROM message_participants`
const TEXTS = 'SELECT header_message_id, text_state, text FROM live_messages'
const OWN_IDS = 'SELECT id FROM live_message_copies WHERE text IS NOT NULL'
const OWN_TEXTS = 'SELECT id, text FROM live_message_copies WHERE text IS NOT NULL'

function readDue(texts: ReadonlyMap<string, TextResult>, times: number): number {
  for (let read = 0; read < times; read += 1) {
    const [id] = store.column(DUE)
    if (typeof id !== 'string') return read
    store.merge.applyText(id, texts.get(id) ?? { state: 'gone' }, NOW)
  }
  return times
}

function play(actions: readonly Action[], texts: ReadonlyMap<string, TextResult>): Known[] {
  const known = new Map<string, Known>()
  for (const step of actions) {
    if (step.kind === 'read') readDue(texts, step.times)
    if (step.kind === 'list') {
      for (const copy of step.copies) known.set(copy.id, { copy, live: true, text: { state: 'pending' } })
      store.put('message_copies', step.copies)
    }
    const gone = step.kind === 'delete' ? known.get(step.id) : undefined
    if (gone) {
      gone.live = false
      store.tombstone('message_copies', [[gone.copy.id]], NOW)
    }
    checkAlways([...known.values()])
  }
  return [...known.values()]
}

/** What holds at every instant. */
function checkAlways(known: readonly Known[]): void {
  expect(store.all(MERGED)).toEqual(mergedModel(known))
  const rows = store
    .all(PARTICIPANTS)
    .map(row => [JSON.stringify([row['header_message_id'], row['role'], row['handle']]), row] as const)
  expect(rows.sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row)).toEqual(
    participantsModel(known),
  )
  expect(
    store.all("SELECT * FROM live_messages WHERE (text_state = 'present') <> (text IS NOT NULL)"),
  ).toEqual([])
  const lost = `SELECT id FROM message_copies c
    WHERE _deleted_at IS NULL AND NOT EXISTS (SELECT 1 FROM live_messages m WHERE m.header_message_id = c.mail_id)`
  expect(store.all(lost)).toEqual([])
  const strangers = new Set(
    [...new Set(known.filter(({ live }) => live).map(({ copy }) => keyOf(copy)))].flatMap(mail =>
      strangersIn(known.filter(({ live, copy }) => live && keyOf(copy) === mail).sort(canonically)).map(
        ({ copy }) => copy.id,
      ),
    ),
  )
  const due = store.all('SELECT id, mail_id FROM message_copies WHERE _text_due = 1 AND _deleted_at IS NULL')
  const mails = due.flatMap(({ id, mail_id }) => (strangers.has(String(id)) ? [] : [mail_id]))
  expect(new Set(mails).size).toBe(mails.length)
  expect(store.column(OWN_IDS).filter(id => !strangers.has(String(id)))).toEqual([])
}

function inTransaction(work: () => void): void {
  store.db.exec('BEGIN')
  try {
    work()
  } finally {
    store.db.exec('ROLLBACK')
  }
}

const texts = fc.tuple(...ids.map(id => fc.tuple(fc.constant(id), result))).map(entries => new Map(entries))

describe('the copies of an e-mail', () => {
  test('copies are merged by the contract after any listings, deletions, revivals and reads', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 12 }), texts, (actions, given) => {
        inTransaction(() => {
          const known = play(actions, given)
          expect(readDue(given, 50)).toBeLessThan(50)
          checkAlways(known)
          const shown = Object.fromEntries(
            store.all(TEXTS).map(({ header_message_id: header, ...text }) => [header, text]),
          )
          expect(shown).toEqual(textModel(known, given))
          const own = store.all(OWN_TEXTS).map(({ id, text }) => [id, text])
          expect(Object.fromEntries(own)).toEqual(ownTextModel(known, given))
        })
      }),
      { numRuns: runs(250) },
    )
  })

  test('copies give the same rows in whatever order they arrive and are read', () => {
    const world = fc.tuple(...ids.map(copyOf))
    const order = fc.shuffledSubarray(ids, { minLength: ids.length })
    fc.assert(
      fc.property(
        world,
        texts,
        order,
        order,
        fc.array(fc.nat(3), { maxLength: 5 }),
        (copies, given, one, other, reads) => {
          const shown = [one, other].map(sequence => {
            let rows: unknown
            inTransaction(() => {
              sequence.forEach((id, index) => {
                store.put(
                  'message_copies',
                  copies.filter(copy => copy.id === id),
                )
                readDue(given, reads[index] ?? 0)
              })
              readDue(given, 50)
              rows = [
                store.all(MERGED),
                store.all(`${TEXTS} ORDER BY 1`),
                store.all(`${OWN_TEXTS} ORDER BY 1`),
                store.all(`${PARTICIPANTS} ORDER BY 1, 2, 3`),
              ]
            })
            return rows
          })
          expect(shown[0]).toEqual(shown[1])
        },
      ),
      { numRuns: runs(100) },
    )
  })
})

describe('the pages of a list', () => {
  test('pages give the same rows however often and in whatever order they are applied, the newest request last', () => {
    const collection = fc.record({
      id: fc.constantFrom('a', 'b', 'c'),
      name: fc.constantFrom('x', 'y', null),
      mood: fc.option(fc.constantFrom('x', 'y'), { nil: undefined }),
    })
    const pages = fc.array(fc.array(collection, { maxLength: 3 }), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(pages, fc.infiniteStream(fc.nat(1000)), (history, dice) => {
        const rows = 'SELECT id, name, _extra, _deleted_at FROM collections ORDER BY id'
        const shown: unknown[] = []
        inTransaction(() => {
          for (const page of history) store.put('collections', page)
          shown.push(store.all(rows))
        })
        // Requests start in the order of the history; their answers arrive in any order.
        inTransaction(() => {
          const tickets = history.map(() => store.freshness.begin())
          const waiting = history.map((page, index) => ({ page, ticket: tickets[index] ?? 0 }))
          while (waiting.length > 0) {
            const [next] = waiting.splice((dice.next().value ?? 0) % waiting.length, 1)
            if (!next) break
            store.putAs('collections', next.page, next.ticket)
            store.freshness.end(next.ticket)
          }
          shown.push(store.all(rows))
        })
        expect(shown[1]).toEqual(shown[0])
      }),
      { numRuns: runs(200) },
    )
  })
})
