import { describe, expect, test } from 'vitest'
import { createKeptReading } from '../../src/daemon/kept-reading.ts'

function counted() {
  let elapsed = 0
  let reads = 0
  let fails = false
  const ask = createKeptReading(
    async of => {
      reads += 1
      if (fails) throw new Error('unreadable')
      return `${of} ${reads}`
    },
    { elapsed: () => elapsed },
  )
  return {
    ask,
    pass: (ms: number) => {
      elapsed += ms
    },
    fail: (now: boolean) => {
      fails = now
    },
  }
}

describe('a kept reading', () => {
  test('serves all who ask within a second, also while it is made', async () => {
    const { ask, pass } = counted()
    expect(await Promise.all([ask('a'), ask('a')])).toEqual(['a 1', 'a 1'])
    pass(999)
    expect(await ask('a')).toBe('a 1')
    pass(1)
    expect(await ask('a')).toBe('a 2')
  })

  test('serves one file only', async () => {
    const { ask } = counted()
    expect([await ask('a'), await ask('b')]).toEqual(['a 1', 'b 2'])
  })

  test('is made again at once after it failed', async () => {
    const { ask, fail } = counted()
    fail(true)
    await expect(ask('a')).rejects.toThrow('unreadable')
    fail(false)
    expect(await ask('a')).toBe('a 2')
  })
})
