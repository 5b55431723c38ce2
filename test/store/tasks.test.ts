import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isoInstant } from '../../src/base/clock.ts'
import { BY_DUE_TIME, type Task } from '../../src/store/sync/tasks/task.ts'
import { createTasks } from '../../src/store/sync/tasks/tasks.ts'
import { runs } from '../support/effort.ts'
import { temporaryStore } from './temporary-store.ts'

const NOW = Date.parse('2026-03-04T05:06:07.000Z')
const FEED = 'meetings.detail'

interface Made {
  key: string
  dueMs: number
  round: number
  waiting: boolean
  sortMs: number | null
}

const made = fc.uniqueArray(
  fc.record({
    key: fc.string({ minLength: 1, maxLength: 4 }),
    dueMs: fc.integer({ min: -5, max: 5 }),
    round: fc.integer({ min: BY_DUE_TIME, max: 3 }),
    waiting: fc.boolean(),
    sortMs: fc.option(fc.integer({ min: -5, max: 5 })),
  }),
  { selector: ({ key }) => key, maxLength: 20 },
)

function filled(tasks: readonly Made[]) {
  const store = temporaryStore()
  for (const { key, dueMs, round, waiting, sortMs } of tasks) {
    store.tasks.done(
      { feed: FEED, key },
      {
        round,
        waiting,
        dueAt: isoInstant(NOW + dueMs),
        sortAt: sortMs === null ? null : isoInstant(NOW + sortMs),
      },
    )
    store.tasks.add({ feed: 'meetings.other', key, dueAt: isoInstant(NOW) })
  }
  return store
}

const keysOf = (tasks: readonly (Task | Made)[]) => tasks.map(({ key }) => key).sort()

describe('the tasks that are due', () => {
  const base = { feed: FEED, now: isoInstant(NOW), limit: 100, first: 'newest' } as const

  test('due tasks are found by time and by round, as declared', () => {
    fc.assert(
      fc.property(made, fc.option(fc.integer({ min: -5, max: 5 })), (tasks, sinceMs) => {
        const { tasks: store } = filled(tasks)
        const since = sinceMs === null ? null : isoInstant(NOW + sinceMs)
        const asked = tasks.filter(({ sortMs }) => sinceMs === null || sortMs === null || sortMs >= sinceMs)
        const isDue = ({ dueMs }: Made) => dueMs <= 0
        const before = asked.filter(({ round }) => round < 2)
        expect(keysOf(store.dueBy({ ...base, since }))).toEqual(keysOf(asked.filter(isDue)))
        const byRound = ({ round }: Made) => round !== BY_DUE_TIME
        expect(keysOf(store.due({ ...base, since, round: 2, everyRound: true }))).toEqual(
          keysOf(before.filter(task => byRound(task) || isDue(task))),
        )
        expect(keysOf(store.due({ ...base, since, round: 2, everyRound: false }))).toEqual(
          keysOf(before.filter(task => (byRound(task) && task.waiting) || isDue(task))),
        )
      }),
      { numRuns: runs(25) },
    )
  })

  test('due tasks are returned newest first', () => {
    const { tasks } = filled(
      [3, 1, 5, 2, 4].map(n => ({
        key: `${n}`,
        dueMs: n < 3 ? 1 : 0,
        round: 0,
        waiting: n === 4,
        sortMs: n,
      })),
    )
    const newest = ['5', '4', '3', '2', '1']
    expect(tasks.dueBy({ ...base, since: null }).map(({ key }) => key)).toEqual(['5', '4', '3'])
    expect(tasks.dueBy({ ...base, since: null, limit: 2 }).map(({ key }) => key)).toEqual(['5', '4'])
    const inRound = { ...base, since: null, round: 1 }
    expect(tasks.due({ ...inRound, everyRound: true }).map(({ key }) => key)).toEqual(newest)
    expect(tasks.due({ ...inRound, everyRound: false }).map(({ key }) => key)).toEqual(['5', '4', '3'])
  })

  test('the tasks that have been due the longest come first on request', () => {
    const { tasks } = filled(
      [3, 1, 5, 2, 4].map(n => ({ key: `${n}`, dueMs: -n, round: 0, waiting: false, sortMs: -n })),
    )
    const longest = tasks.dueBy({ ...base, since: null, first: 'longest-due', limit: 3 })
    expect(longest.map(({ key }) => key)).toEqual(['5', '4', '3'])
  })

  test('the search for due tasks reads no other task', () => {
    const store = temporaryStore()
    const asked: string[] = []
    createTasks(sql => {
      asked.push(sql)
      return store.prepare(sql)
    })
    const searches = asked
      .filter(sql => /SELECT.*due_at <= @now/s.test(sql))
      .flatMap(sql => {
        const names = new Set(sql.match(/@\w+/g)?.map(name => name.slice(1)))
        const values = Object.fromEntries([...names].map(name => [name, 0]))
        const plan = store.db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(values) as { detail: string }[]
        return plan.map(({ detail }) => detail).filter(detail => detail.includes('sync_tasks'))
      })
    expect(searches.length).toBeGreaterThan(3)
    for (const detail of searches) {
      expect(detail).toMatch(
        /USING INDEX sync_tasks_(by_due \(feed=\? AND due_at[<>]\?|(open|by_round) \(feed=\? AND (round=\?|round>\? AND round<\?))/,
      )
    }
  })
})
