import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { startScriptedApi, v1Page } from '../support/scripted-api.ts'
import { startTrial } from './trial-backfill.ts'

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
