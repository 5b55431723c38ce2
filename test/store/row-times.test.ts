import { expect, test } from 'vitest'
import { temporaryStore } from './temporary-store.ts'

const at = (second: number) => `2026-01-01T00:00:0${second}.000Z`
const STORED = '2026-02-01T00:00:00.000Z'
const LATER = '2026-02-02T00:00:00.000Z'
const OCCURRED = { table: 'activities', time: 'occurred_at' }

const activity = (id: string, second: number) => ({ id, occurred_at: at(second), links: [] })

test('the rows of a span that need a single read are live, were stored before it, and have no task yet', () => {
  const store = temporaryStore()
  const rows = ['before', 'first', 'asked', 'left-out', 'deleted', 'x', 'last', 'after'].map((id, index) =>
    activity(id, [0, 1, 2, 2, 2, 2, 3, 4][index] ?? 0),
  )
  store.put('activities', rows, { now: STORED })
  store.put('activities', [activity('new', 2)], { now: LATER })
  store.atomically(() => store.tombstone('activities', [['deleted']], LATER))
  store.tasks.add({ feed: 'probe', key: 'asked', dueAt: LATER })
  store.tasks.add({ feed: 'other', key: 'first', dueAt: LATER })
  const span = { from: at(1), to: at(3), but: ['left-out'], before: LATER, now: LATER }
  const unasked = (keys: string, limit: number) =>
    store.rowTimes.unasked(OCCURRED, 'probe', { ...span, keys, limit }).map(({ key }) => key)
  expect(unasked('*', 10).toSorted()).toEqual(['first', 'last', 'x'])
  expect(unasked('*', 2)).toHaveLength(2)
  expect(unasked('?', 10)).toEqual(['x'])
  const open = { ...span, from: null, to: null, keys: '*', limit: 10 }
  expect(store.rowTimes.unasked(OCCURRED, 'probe', open)).toHaveLength(5)
})
