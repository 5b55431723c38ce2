import { statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { newFolder, type ParleyProcess, startParley } from '../support/parley-process.ts'
import { killAt, startTrial, stopKilling, TINY, type Trial } from '../support/trial.ts'

let trial: Trial

afterEach(() => trial.close())

async function requestsOfOneRun(): Promise<number> {
  trial = await startTrial(TINY)
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  await trial.close()
  return trial.tap.requests.length
}

const RESOURCES = 17

test('a backfill that is killed in the middle and repeated equals the truth, and repeats hardly any request', async () => {
  const atBest = await requestsOfOneRun()
  trial = await startTrial(TINY)
  const parley = trial.start()
  let inFlight = 0
  killAt(trial, parley, { number: Math.floor(atBest / 2), phase: 'answer' })
  expect(await parley.ended).toMatchObject({ status: null })
  inFlight = trial.tap.unanswered()
  stopKilling(trial)
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  expect(await trial.differences()).toEqual([])
  const repeated = trial.tap.requests.length - atBest
  expect(repeated).toBeLessThanOrEqual(inFlight + RESOURCES + Math.ceil(atBest * 0.02))
})

test('SIGTERM ends a backfill unfinished with 75, and the next run continues', async () => {
  trial = await startTrial(TINY)
  const parley = trial.start()
  killAt(trial, parley, { number: 60, phase: 'request', signal: 'SIGTERM' })
  const ended = await parley.ended
  expect(ended.status).toBe(75)
  expect(JSON.parse(ended.stdout)).toMatchObject({ complete: false, interrupted: true })
  stopKilling(trial)
  expect(await trial.backfill()).toMatchObject({ status: 0 })
  expect(await trial.differences()).toEqual([])
})

test('a second backfill at the same time ends with 75 and names the process that holds the database', async () => {
  trial = await startTrial(TINY)
  await trial.simulator.setFaults([{ kind: 'stall' }])
  const holder = trial.start()
  await new Promise<void>(resolve => {
    trial.tap.onRequest = () => resolve()
  })
  const second = await trial.backfill()
  expect(second.status).toBe(75)
  expect(second.stderr).toContain(String(holder.pid))
  holder.kill('SIGKILL')
  await holder.ended
  await trial.simulator.setFaults([])
  expect(await trial.backfill()).toMatchObject({ status: 0 })
})

/** The WAL's own header. */
const NOTHING_WRITTEN = 32

/** Kills it as soon as anything of its schema is in the file. */
async function killAtFirstWrite(parley: ParleyProcess, database: string): Promise<void> {
  let isOver = false
  const over = parley.ended.then(() => {
    isOver = true
  })
  const written = (): number => statSync(`${database}-wal`, { throwIfNoEntry: false })?.size ?? 0
  while (!isOver && written() <= NOTHING_WRITTEN) await pause(1)
  parley.kill('SIGKILL')
  await over
}

test('a backfill that was killed while it created the database can be repeated', async () => {
  trial = await startTrial(TINY)
  const statuses: (number | null)[] = []
  for (let times = 0; times < 4; times++) {
    const database = join(newFolder(), 'parley.db')
    const start = () => startParley(['backfill', '--only', 'teams', '--database', database], trial.simulator)
    await killAtFirstWrite(start(), database)
    statuses.push((await start().ended).status)
  }
  expect(statuses).toEqual(statuses.map(() => 0))
})
