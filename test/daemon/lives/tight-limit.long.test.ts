import { expect, test } from 'vitest'
import { live } from './life.ts'

/** Stopped during the search for a limit, the daemon goes on at a low rate, with more due than that allows. */
test('a life under a tight limit ends with every resource read on schedule (times compressed, 4)', async () => {
  const { told, ...wrong } = await live(4, { deeds: 9, scale: 'compressed' })
  expect(wrong, told.join('\n')).toMatchObject({ differences: [], faults: [], rewritten: [] })
})
