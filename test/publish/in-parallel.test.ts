import { expect, test } from 'vitest'
import { inParallel } from '../../src/publish/in-parallel.ts'
import { until } from '../support/until.ts'

/** Work on numbers that ends when the test says so. */
function heldWork() {
  const begun: number[] = []
  const ends = new Map<number, { done: () => void; fail: (error: Error) => void }>()
  const work = (item: number): Promise<string> => {
    begun.push(item)
    return new Promise((resolve, reject) => {
      ends.set(item, { done: () => resolve(`result ${item}`), fail: reject })
    })
  }
  const hasBegun = (count: number) =>
    until(
      () => begun.length,
      length => length === count,
    )
  return { begun, work, ends, hasBegun }
}

test('results are in the order of the items, and no more items than allowed are worked on at a time', async () => {
  const { begun, work, ends, hasBegun } = heldWork()
  const results = inParallel([1, 2, 3], 2, work)
  await hasBegun(2)
  ends.get(2)?.done()
  await hasBegun(3)
  expect(begun).toEqual([1, 2, 3])
  ends.get(3)?.done()
  ends.get(1)?.done()
  expect(await results).toEqual(['result 1', 'result 2', 'result 3'])
})

test('items that take time are made one after the other, while earlier ones are worked on', async () => {
  const { work, ends, hasBegun } = heldWork()
  const made: number[] = []
  const items = async function* () {
    for (const item of [1, 2, 3]) {
      made.push(item)
      yield await Promise.resolve(item)
    }
  }
  const results = inParallel(items(), 2, work)
  await hasBegun(2)
  expect(made).toEqual([1, 2])
  ends.get(1)?.done()
  await hasBegun(3)
  for (const { done } of ends.values()) done()
  expect(await results).toEqual(['result 1', 'result 2', 'result 3'])
})

test('after an error no item is begun, and the error is thrown when the others have ended', async () => {
  const { begun, work, ends, hasBegun } = heldWork()
  let isOver = false
  const results = inParallel([1, 2, 3, 4], 2, work).finally(() => {
    isOver = true
  })
  const thrown = results.catch((error: unknown) => error)
  await hasBegun(2)
  ends.get(2)?.fail(new Error('broken'))
  await new Promise(setImmediate)
  expect(isOver).toBe(false)
  ends.get(1)?.fail(new Error('broken too'))
  expect(await thrown).toMatchObject({ message: 'broken' })
  expect(begun).toEqual([1, 2])
})

test('an error of the items is thrown', async () => {
  const items = async function* () {
    yield 1
    throw new Error('no more')
  }
  await expect(inParallel(items(), 2, async item => item)).rejects.toThrow('no more')
})
