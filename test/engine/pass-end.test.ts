import { describe, expect, test } from 'vitest'
import { feedNamed } from '../../src/catalog/feeds.ts'
import { wantList } from '../../src/engine/due/wants.ts'
import { endPass } from '../../src/engine/modes/snapshot/pass-end.ts'
import { numberedPage, type ScriptedAnswer, startScriptedApi } from '../support/scripted-api.ts'
import { startTrial, type Trial } from './trial-backfill.ts'
import { startTimed, type TimedSources } from './trial-timed.ts'

/** More rows than one batch compares. */
const ROWS = 4500
const MOST_AT_ONCE = 2000
const MINUTE = 60_000

const FEED = 'members.list'
const MISSING = [1, 2000, 2001, 3000, ROWS]
const idOf = (number: number) => `m${String(number).padStart(5, '0')}`

interface Watched {
  trial: Trial
  timed: TimedSources
  /** Another process continues with the warehouse. */
  restart(): Promise<void>
}

/**
 * A warehouse with many members, and a pass with one page left. It has seen all but a few rows of the other pages.
 * @param size the number of rows that the list states to have
 */
async function startNearEnd(size = ROWS - MISSING.length + 2): Promise<Watched> {
  const api = await startScriptedApi()
  const page = (number: number): ScriptedAnswer => ({
    body: {
      data: [{ id: `page ${number}`, name: 'Aiko', email: null, role: null }],
      pagination: { page: number, limit: size, total_size: size, total_pages: 2 },
    },
  })
  api.on('/v1/members', () => numberedPage([]))
  const trial = await startTrial(api)
  await trial.run(['members'])
  // Otherwise the next pass might begin in the same millisecond of the server's clock.
  trial.passTime(MINUTE)
  api.on('/v1/members', ({ query }) => page(Number(query['page'] ?? 1)))
  const watched = { trial, timed: await startTimed(api, trial, ['members']), restart }
  async function restart() {
    watched.timed = await startTimed(api, trial, ['members'])
  }
  wantList(watched.timed.context, FEED)
  await (await watched.timed.ask(FEED)).apply()
  const { store } = trial
  await store.transaction(() => {
    const insert = store.db.prepare(
      "INSERT INTO members (id, name, _first_seen_at, _synced_at) VALUES (?, 'x', '2026-01-01', '2026-01-01')",
    )
    for (let number = 1; number <= ROWS; number += 1) {
      insert.run(idOf(number))
      if (!MISSING.includes(number)) store.seen.note(FEED, '', idOf(number))
    }
  })
  return watched
}

const suspects = ({ trial }: Watched) =>
  trial.column("SELECT key FROM sync_suspicions WHERE table_name = 'members' ORDER BY 1")

const seen = ({ trial }: Watched) => Number(trial.column('SELECT count(*) FROM sync_seen')[0])

const listedAt = ({ trial }: Watched) => trial.store.segments.of(FEED)[0]?.listedAt

/** Starts the comparison as the last page does, and stops after n batches. Returns the denied keys of each batch. */
async function compare(watched: Watched, batches: number): Promise<unknown[][]> {
  const { trial, timed } = watched
  const { resource, id, feed } = feedNamed(FEED)
  const [pass] = trial.store.segments.of(FEED)
  if (feed.mode !== 'snapshot' || !pass) throw new Error('members have no pass')
  const work = endPass(timed.context, { resource, id, feed, pass, isPartial: false })
  const denied: unknown[][] = []
  for (let done = 0; done < batches; done += 1) {
    const before = suspects(watched)
    const ended = await trial.store.transaction(() => work.next().done)
    denied.push(suspects(watched).filter(key => !before.includes(key)))
    if (ended) break
  }
  return denied
}

describe('the end of a pass over many rows', () => {
  test('the pass denies every row that it has not seen, and forgets its seen keys', async () => {
    const watched = await startNearEnd()
    const before = listedAt(watched)
    await watched.timed.drain()
    expect(suspects(watched)).toEqual(MISSING.map(idOf))
    expect(seen(watched)).toBe(0)
    expect(listedAt(watched)).not.toBe(before)
  })

  test('the comparison handles a bounded number of keys in each transaction', async () => {
    const watched = await startNearEnd()
    const { trial } = watched
    await trial.store.transaction(() =>
      trial.store.db.prepare("DELETE FROM sync_seen WHERE key < 'm03'").run(),
    )
    const counts = (await compare(watched, 3)).map(({ length }) => length)
    expect(counts).toEqual([MOST_AT_ONCE, 1000, 1])
    const left = seen(watched)
    await trial.store.transaction(() => trial.store.seen.forget(FEED, '', MOST_AT_ONCE))
    expect(left - seen(watched)).toBe(Math.min(left, MOST_AT_ONCE))
  })

  test.each([1, 2])(
    'the comparison is repeated when the process was killed after batch %i',
    async batches => {
      const watched = await startNearEnd()
      await compare(watched, batches)
      await watched.restart()
      await watched.timed.drain()
      expect(suspects(watched)).toEqual(MISSING.map(idOf))
      expect(seen(watched)).toBe(0)
    },
  )

  test('the repeated comparison counts as one denial, however long after the kill', async () => {
    const watched = await startNearEnd()
    await compare(watched, 2)
    watched.timed.passTime(10 * MINUTE)
    await watched.restart()
    await (await watched.timed.ask(FEED)).apply()
    const confirmed = watched.trial.column('SELECT sum(confirmed) FROM sync_suspicions')
    expect([suspects(watched).length, confirmed]).toEqual([MISSING.length, [0]])
  })
})

test('the seen keys of an abandoned pass count for no other pass', async () => {
  const watched = await startNearEnd(2)
  const { store } = watched.trial
  const [pass] = store.segments.of(FEED)
  if (!pass) throw new Error('members have no pass')
  await store.transaction(() => store.segments.save({ ...pass, cursor: null, pages: 0, passStartedAt: null }))
  wantList(watched.timed.context, FEED)
  await watched.timed.drain()
  // No request is made until all seen keys are forgotten, which continues by itself.
  while (seen(watched) > 0) await store.transaction(() => undefined)
  await watched.timed.drain()
  // The first and the second page have one row each.
  expect(suspects(watched)).toHaveLength(ROWS)
})
