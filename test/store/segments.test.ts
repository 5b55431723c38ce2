import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { createSegments, type Segment } from '../../src/store/sync/segments.ts'
import { runs } from '../support/effort.ts'
import { type TemporaryStore, temporaryStore } from './temporary-store.ts'

const FEED = 'messages.list'

const rowsOf = ({ segments }: TemporaryStore) => segments.of(FEED).map(({ rows }) => rows)

const WRITES: [by: string, write: (store: TemporaryStore, segment: Segment) => void][] = [
  ['this one', ({ segments }, segment) => segments.save({ ...segment, rows: 1 })],
  [
    'another program',
    ({ path }) => {
      const other = openSqlite(path)
      other.exec('UPDATE sync_segments SET rows = 1')
      other.close()
    },
  ],
]

test.each(WRITES)('segments that were read before are read again after a write by %s', (_, write) => {
  const store = temporaryStore()
  const segment = store.segments.add({ feed: FEED, scope: '', from: null, to: null })
  expect(rowsOf(store)).toEqual([0])
  write(store, segment)
  expect(rowsOf(store)).toEqual([1])
})

test('segments that were read within a transaction are not those after its rollback', () => {
  const store = temporaryStore()
  const segment = store.segments.add({ feed: FEED, scope: '', from: null, to: null })
  const undone = store.db.transaction(() => {
    store.segments.save({ ...segment, rows: 1 })
    expect(rowsOf(store)).toEqual([1])
    throw new Error('undone')
  })
  expect(undone).toThrow('undone')
  expect(rowsOf(store)).toEqual([0])
})

const INSTANTS = [1, 2, 3].map(day => `2026-03-0${day}T00:00:00.000Z`)
const instant = fc.constantFrom(null, ...INSTANTS)

type Change =
  | { kind: 'add' | 'cut' | 'want' | 'save' | 'move' | 'remove' | 'join'; nth: number; at: string | null }
  | { kind: 'read' }

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('add', 'cut', 'want', 'save', 'move', 'remove', 'join'),
    nth: fc.nat(5),
    at: instant,
  }),
  fc.record({ kind: fc.constant('read' as const) }),
)

test('segments are read as the file has them, whatever was written, undone, or written by another program', () => {
  const store = temporaryStore()
  const other = openSqlite(store.path)
  const { segments } = store
  const read = () => [segments.of(FEED), segments.of(FEED, '')]
  const make = (changed: Change) => {
    if (changed.kind === 'read') return read()
    const all = segments.of(FEED)
    const at = changed.at ?? INSTANTS[0] ?? ''
    const one = all[changed.nth % Math.max(1, all.length)]
    if (changed.kind === 'add' || one === undefined)
      return segments.add({ feed: FEED, scope: changed.nth % 2 === 0 ? '' : 'a', from: null, to: changed.at })
    if (changed.kind === 'cut') return segments.cut(one, at)
    if (changed.kind === 'want') return segments.want(one.id, at)
    if (changed.kind === 'save') return segments.save({ ...one, rows: one.rows + 1 })
    if (changed.kind === 'move') return segments.save({ ...one, to: changed.at })
    if (changed.kind === 'remove') return segments.remove(one)
    const [next] = all.filter(({ id }) => id !== one.id)
    return next && segments.join(one, next)
  }
  const fresh = () => {
    const reader = createSegments(sql => other.prepare(sql))
    return [reader.of(FEED), reader.of(FEED, '')]
  }
  const transaction = fc.record({
    changes: fc.array(change, { maxLength: 4 }),
    by: fc.constantFrom('this', 'undone', 'other'),
  })
  fc.assert(
    fc.property(fc.array(transaction, { maxLength: 12 }), transactions => {
      for (const { changes, by } of transactions) {
        if (by === 'other') other.exec('UPDATE sync_segments SET rows = rows + 1')
        const work = store.db.transaction(() => {
          for (const each of changes) make(each)
          if (by === 'undone') throw new Error('undone')
        })
        if (by === 'undone') expect(work).toThrow('undone')
        else work()
        expect(read()).toEqual(fresh())
      }
    }),
    { numRuns: runs(200) },
  )
  other.close()
})

test('segments that were removed are not those that were read before', () => {
  const store = temporaryStore()
  store.segments.add({ feed: FEED, scope: '', from: null, to: null })
  expect(rowsOf(store)).toEqual([0])
  store.segments.removeAll(FEED)
  expect(rowsOf(store)).toEqual([])
})

test('what failures have made smaller is whole again, unless a cursor needs it', () => {
  const { segments } = temporaryStore()
  const failed = { query: { limit: '1' }, attempts: 3, retryAt: '2026-03-04T05:00:00.000Z' }
  const add = (change: Partial<Segment>) => {
    const segment = segments.add({ feed: FEED, scope: '', from: null, to: null })
    segments.save({ ...segment, ...change })
    return () => {
      const { query, attempts, retryAt } = segments.find(segment.id) as Segment
      return [query, attempts, retryAt]
    }
  }
  const [between, within, other] = [
    add(failed),
    add({ ...failed, cursor: { cursor: 'c' } }),
    add({ query: { limit: '1' } }),
  ]
  segments.readWholePages(FEED)
  expect([between(), within(), other()]).toEqual([
    [null, 3, failed.retryAt],
    [{ limit: '1' }, 3, failed.retryAt],
    [{ limit: '1' }, 0, null],
  ])
  segments.retryWhole(FEED)
  expect([between(), within(), other()]).toEqual([
    [null, 0, null],
    [{ limit: '1' }, 3, null],
    [{ limit: '1' }, 0, null],
  ])
})

test('segments of a scope and those of its list are not confused', () => {
  const store = temporaryStore()
  store.segments.add({ feed: FEED, scope: 'a', from: null, to: null })
  store.segments.add({ feed: FEED, scope: '', from: null, to: null })
  const scopes = (scope?: string) => store.segments.of(FEED, scope).map(one => one.scope)
  expect([scopes(), scopes('a'), scopes(''), scopes()]).toEqual([['', 'a'], ['a'], [''], ['', 'a']])
})

describe('a segment that is wanted', () => {
  const [early, late] = ['2026-03-04T05:00:00.000Z', '2026-03-04T06:00:00.000Z']
  const wanted = (...times: readonly string[]) => {
    const { segments } = temporaryStore()
    const { id } = segments.add({ feed: FEED, scope: '', from: null, to: null })
    for (const at of times) segments.want(id, at)
    const now = () => segments.find(id) as Segment
    return { segments, now }
  }

  test('a second want makes it due no later', () => {
    expect(wanted(late, early).now().wantedAt).toBe(early)
    expect((wanted(early, late).now().wantedAt ?? '') < late).toBe(true)
  })

  test('its pass ends the want that was there when it began, and no other', () => {
    const { segments, now } = wanted(early)
    const begun = { ...now(), passWantedAt: now().wantedAt }
    segments.want(begun.id, early)
    segments.met(begun)
    expect(now().wantedAt).not.toBeNull()
    segments.met({ ...begun, passWantedAt: now().wantedAt })
    expect(now().wantedAt).toBeNull()
  })

  test('its state is saved without a change to the want that came meanwhile', () => {
    const { segments, now } = wanted()
    const read = now()
    segments.want(read.id, early)
    segments.save({ ...read, pages: 1 })
    expect(now().wantedAt).toBe(early)
  })

  test('both parts of a cut are wanted, and so is a whole of which one part was', () => {
    const { segments, now } = wanted(early)
    const older = segments.cut(now(), '2026-01-01T00:00:00.000Z')
    expect([now().wantedAt, older.wantedAt]).toEqual([early, early])
    segments.met({ ...now(), passWantedAt: early })
    segments.join(now(), older)
    expect(now().wantedAt).toBe(early)
  })
})
