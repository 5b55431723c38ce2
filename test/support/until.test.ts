import { spawn } from 'node:child_process'
import { cpus } from 'node:os'
import { expect, onTestFinished, test } from 'vitest'
import { processorWaits } from './processor-waits.ts'
import { until } from './until.ts'

/** Shorter than any single account of idle time: one without a change is enough. */
const IMPATIENT = { patienceMs: 1 }

test('a wait ends with what was seen last once nothing moves', async () => {
  expect(await until(() => 'the same', never, IMPATIENT)).toBe('the same')
})

test('a wait goes on for as long as what is seen changes', async () => {
  let looks = 0
  const look = () => ({ looks: looks++ })
  expect(await until(look, seen => seen.looks === 30, IMPATIENT)).toEqual({ looks: 30 })
})

test('a wait goes on for as long as anything else moves that is named', async () => {
  let looks = 0
  const look = () => ++looks >= 30
  expect(await until(look, Boolean, { ...IMPATIENT, moves: () => looks })).toBe(true)
})

test('the time that processes wait for a processor is told while more of them work than there are', async () => {
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
