import { expect, test } from 'vitest'
import { share } from '../support/effort.ts'
import { KNOWN_FAILURES } from './known-failures.ts'
import { live } from './life.ts'

test.each(share(KNOWN_FAILURES))('it is known, and not mended yet, that %s', async (_, life, said) => {
  const { findings } = await live(life)
  expect(findings.join('\n')).toMatch(said)
})
