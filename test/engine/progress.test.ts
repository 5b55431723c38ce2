import { expect, test } from 'vitest'
import type { Sent } from '../../src/api/client.ts'
import { countRequest, noProgress } from '../../src/engine/requests/request-counts.ts'

const TIMES = { startedAt: 0, durationMs: 1 }
const retry = (cause: 'throttled' | 'timeout' | 'server'): Sent => ({
  ...TIMES,
  kind: 'retry',
  cause,
  message: 'why',
})

test('unanswered requests count as sent and not as answered', () => {
  const counts = { requests: 0, throttled: 0, rowsRead: 0, rowsChanged: 0, rowsNew: 0, rowsDeleted: 0 }
  const progress = noProgress()
  const outcomes: readonly Sent[] = [
    { ...TIMES, kind: 'answer', value: {}, bytes: 2, serverTime: undefined },
    { ...TIMES, kind: 'refused', status: 404, message: 'why', isForeign: false, isWebPage: false },
    retry('throttled'),
    retry('timeout'),
    retry('server'),
  ]
  for (const sent of outcomes) countRequest({ runs: { counts: () => counts } }, progress, 'members', sent)
  expect(progress).toMatchObject({ requests: 5, answered: 3, accepted: 1, throttled: 1 })
  expect(counts).toMatchObject({ requests: 5, throttled: 1 })
})
