import type { Faults } from '../../src/simulator/faults/faults.ts'
import { type Life, lifeOf } from './life.ts'

/**
 * Lives that fail today, each by a fault of the program that is known and not mended yet. The test expects them to fail
 * with these words: a mend removes its line, and its deed joins those that are drawn.
 */
export const KNOWN_FAILURES: readonly (readonly [fault: string, life: Life, said: RegExp])[] = [
  [
    'an item that could not be stored is left out of what is called complete',
    withAnswers(3, [{ kind: 'rewrite', route: '/v2/activities', from: '"id":', to: '"identifier":' }]),
    /is missing, though activities is complete/,
  ],
  [
    'an empty answer of the access log closes its periods for good',
    withAnswers(2, [{ kind: 'empty', route: '/v1/public-api-access-logs' }], 10 * 60_000),
    /access_logs .* is missing/,
  ],
  [
    'a list that states fewer pages than it has loses what is on the others',
    {
      ...withAnswers(2, [
        { kind: 'rewrite', route: '/v1/members', from: '"total_pages":2', to: '"total_pages":1' },
      ]),
      workspace: { ...lifeOf(2).workspace, members: 250 },
    },
    /members .* is missing, though members is complete/,
  ],
]

/** The life of a seed with nothing but these answers, from the beginning on, and a day of rest. */
function withAnswers(seed: number, faults: Faults, forMs = 86_400_000): Life {
  return { ...lifeOf(seed), deeds: [{ kind: 'answers', faults, forMs, atMs: 0 }], quietDays: 1 }
}
