import { spawn } from 'node:child_process'
import { cpus } from 'node:os'
import { expect, onTestFinished, test } from 'vitest'
import { processorWaits } from './processor-waits.ts'
import { until } from './until.ts'

/** Shorter than one measurement of idle time, so one measurement without a change ends the wait. */
const IMPATIENT = { patienceMs: 1 }

test('a wait ends with the last value once nothing changes', async () => {
  expect(await until(() => 'the same', never, IMPATIENT)).toBe('the same')
})

test('a wait continues while the value changes', async () => {
  let looks = 0
  const look = () => ({ looks: looks++ })
  expect(await until(look, seen => seen.looks === 30, IMPATIENT)).toEqual({ looks: 30 })
})

test('a wait continues while any other named value changes', async () => {
  let looks = 0
  const look = () => ++looks >= 30
  expect(await until(look, Boolean, { ...IMPATIENT, moves: () => looks })).toBe(true)
})

test('the time that processes wait for a processor counts while more of them work than there are processors', async () => {
  const waits = processorWaits()
  const busy = Array.from({ length: 2 * cpus().length }, () =>
    spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
  )
  onTestFinished(() => {
    for (const child of busy) child.kill('SIGKILL')
  })
  expect(
    await until(
      () => waits.sinceLast(),
      ms => ms > 0,
    ),
  ).toBeGreaterThan(0)
})

const never = (): boolean => false
