import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { updateSearchIndices } from '../../src/commands/backfill/final-steps.ts'
import { createSearchIndices } from '../../src/store/search/indices.ts'
import { found, putMeeting } from '../store/searchable.ts'
import { temporaryStore } from '../store/temporary-store.ts'

test('a signal stops the build of the indices between two batches, and the next run continues it', async () => {
  const store = temporaryStore()
  putMeeting(store, { id: 'm', title: 'Budget', said: ['budget'] })
  let elapsed = 0
  // Each read of the clock is later by more than the time of a batch.
  const clock = { ...systemClock(), elapsed: () => (elapsed += 1000) }
  let lines = ''
  const log = await createLog({ level: 'info', stream: { write: (text: string) => (lines += text) } })
  const made = (signal: AbortSignal, draw: (lines: readonly string[]) => void) =>
    updateSearchIndices({
      app: { clock, store },
      settings: { search: { enabled: true } },
      log,
      area: { draw, clear: () => undefined },
      signal,
    })

  const ending = new AbortController()
  expect(await made(ending.signal, () => ending.abort())).toBe(false)
  expect(lines).toContain('the next run continues them')
  expect(createSearchIndices(store).isDue(true)).toBe(true)
  const shown: string[] = []
  expect(await made(new AbortController().signal, ([line = '']) => shown.push(line))).toBe(true)
  expect(shown.at(-1)).toBe('Full-text indices: 100 %')
  expect(createSearchIndices(store).isDue(true)).toBe(false)
  expect(found(store, 'budget')).toEqual(['meeting: Budget', 'transcript: budget'])
})
