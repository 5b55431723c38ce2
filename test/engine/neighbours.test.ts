import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { refused, startScriptedApi, v1Page } from '../support/scripted-api.ts'
import { scriptedList } from '../support/scripted-lists.ts'
import { message, outcomeOf, startTrial, uuid } from './trial-backfill.ts'

/** One bad thing is put off by itself and reported; everything next to it is read. */

describe('an id that no request can name', () => {
  const HOSTILE = [
    'half \ud800',
    '\udc00',
    '\ud800\ud800',
    'nul \u0000',
    '\u0000',
    '../..',
    '.',
    '%2f',
    'é',
    'é',
  ]

  test('is rejected from a list of keys, and the run ends with every other one read', async () => {
    const id = fc.oneof(
      fc.constantFrom(...HOSTILE, 'x'.repeat(100_000)),
      fc.string({ unit: 'binary', maxLength: 5 }),
      fc.string({ unit: fc.integer({ min: 0xd7f0, max: 0xe010 }).map(code => String.fromCharCode(code)) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(id, { maxLength: 12 }), async ids => {
        const api = await startScriptedApi()
        api.on('/v1/meetings', () => v1Page(ids.map(one => ({ meeting_id: one }))))
        api.on('/v1/meetings/{id}', ({ params: [one] }) => ({ body: { data: { meeting_id: one } } }))
        const trial = await startTrial(api)
        await trial.run(['meetings'])
        const nameable = ids.filter(one => one !== '' && one.isWellFormed())
        const readable = nameable.filter(one => one.length < 10_000)
        expect(trial.column('SELECT id FROM live_meetings').toSorted()).toEqual(readable.toSorted())
        expect(trial.column('SELECT count(*) FROM sync_rejects')).toEqual([ids.length - nameable.length])
        expect(api.requests.length).toBeLessThan(10 * (1 + ids.length))
      }),
      { numRuns: 12 },
    )
  })
})

describe('a page of a timeline that cannot be answered', () => {
  const MESSAGES = { time: 'received_at', from: 'received_from', to: 'received_to' } as const

  /** A list on which a page with one of the bad rows answers 500. */
  async function startHostile(count: number, bad: readonly number[]) {
    const api = await startScriptedApi()
    const rows = Array.from({ length: count }, (_, index) => message(index + 1))
    const badIds = new Set(bad.map(uuid))
    const list = scriptedList({
      ...MESSAGES,
      rows,
      pageSize: 100,
      spoilt: ({ id }) => (badIds.has(id) ? refused(500) : undefined),
    })
    api.on('/v2/messages', list.handler)
    const trial = await startTrial(api)
    return { api, trial, mend: () => badIds.clear() }
  }

  const stored = 'SELECT id FROM live_message_copies ORDER BY 1'
  const unread = 'SELECT count(*) FROM sync_rejects WHERE resolved_at IS NULL'
  const all = (count: number, but: readonly number[]) =>
    Array.from({ length: count }, (_, index) => index + 1)
      .filter(number => !but.includes(number))
      .map(uuid)

  test.each([
    ['in the middle', [150]],
    ['the newest', [1]],
    ['the oldest', [300]],
    ['two next to each other', [77, 78]],
    ['several', [3, 99, 100, 101, 250]],
  ])('costs only the row that it fails for: %s', async (_, bad) => {
    const { api, trial, mend } = await startHostile(300, bad)
    expect(outcomeOf(await trial.run(['messages']), 'messages')).toBe('failed')
    expect(trial.column(stored)).toEqual(all(300, bad))
    // The bounds of two neighbouring spans overlap by a millisecond, so that both may hold the row.
    const open = Number(trial.column(unread))
    expect(open).toBeGreaterThanOrEqual(bad.length)
    expect(open).toBeLessThanOrEqual(2 * bad.length)
    expect(api.requests.length).toBeLessThan(50 + 250 * bad.length)
    mend()
    expect(outcomeOf(await trial.run(['messages']), 'messages')).toBe('complete')
    expect(trial.column(stored)).toEqual(all(300, []))
    expect(trial.column(unread)).toEqual([0])
  })
})
