import { expect, test } from 'vitest'
import { keepChanging, LIVING_CHANGES } from '../../src/simulator/living.ts'
import { createSimulator } from '../../src/simulator/server.ts'

/** A workspace that lives until its clock has slept this often. */
async function lifeOf(sleeps: number) {
  const simulator = createSimulator({ messages: 100, meetings: 20, deals: 10 })
  const over = new AbortController()
  const said: string[] = []
  const faults: number[] = []
  let left = sleeps
  let draw = 0
  const clock = {
    sleep: async () => {
      left -= 1
      if (left <= 0) over.abort()
    },
  }
  await keepChanging(
    { apply: simulator.apply, setFaults: all => faults.push(all.length) },
    {
      clock,
      random: () => {
        draw = (draw + 0.37) % 1
        return draw
      },
      faults: [{ kind: 'reset', probability: 0.01 }],
      say: line => said.push(line),
    },
    over.signal,
  )
  return { said, faults }
}

test('a living workspace makes every kind of change, names what it has changed, and has troubles that end', async () => {
  const { said, faults } = await lifeOf(2000)
  const kinds = new Set(LIVING_CHANGES.map(({ change }) => change.kind))
  const made = said.filter(line => kinds.has(line.split(' ')[0] as never))
  expect(new Set(made.map(line => line.split(' ')[0]))).toEqual(kinds)
  expect(made.every(line => / [^ ]+$/.test(line))).toBe(true)
  const ends = said.filter(line => line === 'the API works again').length
  expect(ends).toBeGreaterThan(10)
  // Between two troubles only the fault stays that the workspace has anyway.
  expect(faults.filter(count => count === 1)).toHaveLength(ends)
  expect(faults.filter(count => count > 1)).toHaveLength(faults.length - ends)
})
