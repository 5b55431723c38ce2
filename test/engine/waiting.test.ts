import { expect, test } from 'vitest'
import { createWaiting } from '../../src/engine/scheduler/waiting.ts'
import { virtualClock } from '../api/virtual-clock.ts'

const NOON = Date.parse('2026-03-04T12:00:00.000Z')
const HOUR = 3_600_000

/** A wait of an hour on a machine whose clock may jump. */
function waitAnHour() {
  const clock = virtualClock(NOON)
  let jumpedMs = 0
  const machine = { ...clock, now: () => clock.now() + jumpedMs }
  const waits = createWaiting(machine, new AbortController().signal)
  let woken: boolean | undefined
  void waits.wait(HOUR).then(found => {
    woken = found
  })
  return {
    clock,
    waits,
    jump: (ms: number) => {
      jumpedMs = ms
    },
    woken: () => woken,
  }
}

test('a wait ends within a minute after a suspended machine has slept beyond its end', async () => {
  const { clock, jump, woken } = waitAnHour()
  await clock.advance(1000)
  jump(5 * HOUR)
  await clock.advance(60_000)
  expect(woken()).toBe(false)
})

test('a clock that is set back lengthens no wait', async () => {
  const { clock, jump, woken } = waitAnHour()
  jump(-24 * HOUR)
  await clock.advance(HOUR - 1)
  expect(woken()).toBeUndefined()
  await clock.advance(1)
  expect(woken()).toBe(false)
})

test('a wait can be woken', async () => {
  const { waits, woken } = waitAnHour()
  waits.wake()
  await new Promise(setImmediate)
  expect(woken()).toBe(true)
})
