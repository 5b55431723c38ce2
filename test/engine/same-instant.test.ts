import { describe, expect, test } from 'vitest'
import { share } from '../support/effort.ts'
import { refused, startScriptedApi } from '../support/scripted-api.ts'
import { scriptedList } from '../support/scripted-lists.ts'
import { message, minutesBack, startTrial, uuid } from './trial-backfill.ts'
import { startTimed } from './trial-timed.ts'

/** A time bound cannot separate rows at one instant. A row whose page fails must not hide changes of the others. */

const HOUR = 3_600_000
const STEP_HOURS = 4
const POLL_MS = 60_000

const AT = minutesBack(60)

interface Kind {
  resource: 'activities' | 'messages'
  /** A row at the shared instant, or at another. A list shows higher numbers first. */
  row(number: number, at?: string): { id: string; [field: string]: unknown }
  time: string
  /** A field that changes, and where it is stored. */
  field: string
  table: string
}

const KINDS: Readonly<Record<Kind['resource'], Kind>> = {
  activities: {
    resource: 'activities',
    row: (number, at = AT) => ({
      id: uuid(number),
      type: 'first',
      source_type: 'OBJECT_CHANGE_EVENT',
      occurred_at: at,
      links: [],
    }),
    time: 'occurred',
    field: 'type',
    table: 'activities',
  },
  messages: {
    resource: 'messages',
    row: (number, at = AT) => message(number, { received_at: at, subject: 'first' }),
    time: 'received',
    field: 'subject',
    table: 'message_copies',
  },
}

/** A complete warehouse of rows at one instant, with a row before and after it. Some of them become unreadable. */
async function startWorld(kind: Kind, numbers: readonly number[]) {
  const api = await startScriptedApi()
  const bad = new Set<string>()
  let watcher: () => void = () => undefined
  const isSpoilt = ({ id }: { id: string }) => (bad.has(id) ? refused(500) : undefined)
  const list = scriptedList<{ id: string; [field: string]: unknown }>({
    rows: [
      kind.row(9001, minutesBack(50)),
      ...numbers.map(number => kind.row(number)),
      kind.row(9002, minutesBack(70)),
    ],
    time: `${kind.time}_at`,
    from: `${kind.time}_from`,
    to: `${kind.time}_to`,
    pageSize: 100,
    spoilt: isSpoilt,
    instead: () => {
      watcher()
      return undefined
    },
  })
  api.on(`/v2/${kind.resource}`, list.handler)
  api.on('/v2/activities/{id}', ({ params: [id = ''] }) => {
    const row = list.rows.find(one => one.id === id)
    return row ? (isSpoilt(row) ?? { body: row }) : refused(404)
  })
  const trial = await startTrial(api)
  const timed = await startTimed(api, trial, [kind.resource], { pollMs: POLL_MS })
  await timed.drain()
  trial.passTime(HOUR)
  return {
    kind,
    api,
    trial,
    timed,
    list,
    spoil: (...spoilt: number[]) => {
      for (const number of spoilt) bad.add(uuid(number))
    },
    /** Removes a row from the workspace and returns it. */
    remove: (number: number) =>
      list.rows.splice(
        list.rows.findIndex(({ id }) => id === uuid(number)),
        1,
      ),
    mend: () => bad.clear(),
    /** Calls a function before each answer of the list. */
    watch(then: () => void) {
      watcher = then
    },
    change(to: string) {
      for (const row of list.rows) row[kind.field] = to
    },
    /** Numbers of live rows whose field has this value. */
    have: (value: string) =>
      trial
        .all(
          `SELECT id FROM ${kind.table} WHERE ${kind.field} = '${value}' AND _deleted_at IS NULL ORDER BY id`,
        )
        .map(({ id }) => Number(String(id).slice(-12))),
    /** Numbers of the rows that are read singly. */
    asked: () =>
      trial
        .column("SELECT key FROM sync_tasks WHERE feed GLOB '*.probe' ORDER BY 1")
        .map(key => Number(String(key).slice(-12))),
    /** Reads everything that falls due within this many hours. */
    async after(hours: number) {
      for (let passed = 0; passed < hours; passed += STEP_HOURS) {
        trial.passTime(STEP_HOURS * HOUR)
        await timed.drain()
        await timed.settle(kind.resource)
      }
    },
  }
}

const WEEK_HOURS = 7 * 24
const numbersTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

describe.each(share(Object.values(KINDS)))(
  'an unreadable row of $resource among others at an instant',
  kind => {
    test('the other rows are read again within a week, and new rows above are read', async () => {
      const world = await startWorld(kind, numbersTo(12))
      world.spoil(6)
      world.change('second')
      await world.after(WEEK_HOURS)
      const others = [...numbersTo(12).filter(number => number !== 6), 9001, 9002]
      expect([world.have('first'), world.have('second')]).toEqual([[6], others])
      // Rows that the list shows before the bad one need no single read.
      expect(world.asked()).toEqual(numbersTo(6))
      world.change('third')
      world.list.rows.push(kind.row(13))
      await world.after(WEEK_HOURS)
      expect([world.have('second'), world.have('third')]).toEqual([[], others])
      expect(world.have('first')).toEqual([6, 13])
      world.mend()
      await world.after(WEEK_HOURS)
      expect(world.have('third')).toEqual([...numbersTo(12), 9001, 9002])
      expect(world.asked()).toEqual([])
      expect(world.trial.column('SELECT count(*) FROM sync_rejects WHERE resolved_at IS NULL')).toEqual([0])
    })

    test('deleted rows among the others are deleted', async () => {
      const world = await startWorld(kind, numbersTo(12))
      world.spoil(6)
      world.remove(3)
      await world.after(WEEK_HOURS)
      expect(world.have('first')).toEqual([...numbersTo(12).filter(number => number !== 3), 9001, 9002])
    })

    test('a row that a single answer denies stays', async () => {
      const world = await startWorld(kind, numbersTo(12))
      world.spoil(6)
      const denied = world.remove(3)
      const asked = world.api.requests.length
      const isAskedByItself = () =>
        world.api.requests
          .slice(asked)
          .some(({ params, query }) => `${params} ${query['ids']}`.includes(uuid(3)))
      for (let hours = 0; hours < WEEK_HOURS && !isAskedByItself(); hours += STEP_HOURS)
        await world.after(STEP_HOURS)
      expect(isAskedByItself()).toBe(true)
      world.list.rows.push(...denied)
      await world.after(WEEK_HOURS)
      expect(world.have('first')).toEqual([...numbersTo(12), 9001, 9002])
    })
  },
)

describe('unreadable rows among hundreds of activities at an instant', () => {
  test('each try reads fifty of the other rows, until all were read', async () => {
    const world = await startWorld(KINDS.activities, numbersTo(300))
    world.spoil(100, 290)
    world.change('second')
    const single = () => world.api.asked('/v2/activities/{id}').length
    const shares: number[] = []
    while (world.have('first').length > 2 && shares.length < 20 * WEEK_HOURS) {
      const before = single()
      await world.after(STEP_HOURS)
      shares.push(single() - before)
    }
    expect(world.have('first')).toEqual([100, 290])
    // Bounds are inclusive and rounded up, so up to three spans contain the instant. One of them has its rows.
    expect(Math.max(...shares)).toBeLessThanOrEqual(2 * 50)
  })

  test('each try costs few requests, tries become rare, and the span is reported as unread meanwhile', async () => {
    const world = await startWorld(KINDS.activities, numbersTo(150))
    const alone = [61, 62, 63]
    world.list.rows.push(...alone.map(minutes => world.kind.row(9000 + minutes, minutesBack(minutes))))
    world.spoil(20, ...alone.map(minutes => 9000 + minutes))
    await world.after(2 * WEEK_HOURS)
    const lists = () => world.api.asked('/v2/activities').length
    const before = lists()
    const unread = () => world.trial.column('SELECT count(*) FROM sync_rejects WHERE resolved_at IS NULL')[0]
    const seen = new Set([unread()])
    world.watch(() => seen.add(unread()))
    await world.after(WEEK_HOURS)
    // The newest end is polled at each step. Each of the four rows lies in up to three spans, tried twice at most.
    expect(lists() - before).toBeLessThan(WEEK_HOURS / STEP_HOURS + 4 * 3 * 20)
    expect(seen.size).toBe(1)
    const attempts = world.trial.column('SELECT attempts FROM sync_segments WHERE attempts > 0')
    expect(attempts.length).toBeGreaterThanOrEqual(4)
    expect(Math.min(...attempts.map(Number))).toBeGreaterThan(4)
  })
})
