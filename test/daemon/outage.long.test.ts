import { afterEach, expect, test } from 'vitest'
import { until } from '../support/until.ts'
import { type DaemonTrial, startDaemonTrial } from './daemon-trial.ts'

let trial: DaemonTrial

afterEach(() => trial.close())

/** The times of its requests from now on, in ms. */
function requestTimes(): number[] {
  const times: number[] = []
  trial.tap.onRequest = () => times.push(performance.now())
  return times
}

const gaps = (times: readonly number[]): number[] =>
  times.slice(1).map((time, place) => time - (times[place] ?? time))

/** Longer than the pause between two requests of a daemon while the API answers. */
const STEP_MS = 450

test('an API that is down receives one request in each step of a growing backoff, and then everything continues', async () => {
  trial = await startDaemonTrial()
  trial.go()
  expect(await trial.convergence()).toEqual([])
  const times = requestTimes()
  await trial.simulator.setFaults([{ kind: 'reset' }])
  const steps = () => gaps(times).filter(gap => gap >= STEP_MS)
  await until(steps, found => found.length >= 4)
  const atEnd = gaps(times).slice(-3)
  // Half of each backoff step (1, 2, 4, 8 … seconds) is certain, so no two requests are closer than that.
  expect(Math.min(...atEnd)).toBeGreaterThan(STEP_MS)
  expect(steps().length).toBeGreaterThanOrEqual(4)
  await trial.simulator.change({ kind: 'publish', resource: 'messages', count: 3 })
  await trial.simulator.change({ kind: 'delete', resource: 'activities', count: 2 })
  await trial.simulator.setFaults([])
  expect(await trial.convergence()).toEqual([])
})

test('a short outage costs a short wait, however many requests were in flight when it began', async () => {
  trial = await startDaemonTrial({ messages: 1500, latencyMs: 30 })
  trial.go()
  await trial.requests(600)
  const times = requestTimes()
  await trial.simulator.setFaults([{ kind: 'reset' }])
  // The first steps are at most 1, 2 and 4 seconds.
  const found = await until(
    () => gaps(times).filter(gap => gap >= STEP_MS),
    steps => steps.length >= 3,
  )
  expect(found.length).toBeGreaterThanOrEqual(3)
  await trial.simulator.setFaults([])
  expect(await trial.convergence()).toEqual([])
})

test('the daemon can be started while the API is down', async () => {
  trial = await startDaemonTrial()
  await trial.simulator.setFaults([{ kind: 'reset' }])
  trial.go()
  await trial.requests(7)
  expect(trial.fallen()).toBeUndefined()
  await trial.simulator.setFaults([])
  expect(await trial.convergence()).toEqual([])
})

const NO_TEAMS = [
  'members',
  'collections',
  'activities',
  'activity_links',
  'message_copies',
  'messages',
  'meetings',
  'transcript_entries',
  'playbooks',
  'crm_records',
  'crm_record_links',
  'access_logs',
  'bot_definition',
]

test('a single failing endpoint leaves the others fresh and shows in sync_status', async () => {
  trial = await startDaemonTrial()
  trial.go()
  expect(await trial.convergence()).toEqual([])
  await trial.simulator.setFaults([{ kind: 'status', status: 500, route: '/v1/teams' }])
  const failing = await trial.state('teams', ({ state }) => state === 'failing')
  expect(failing).toMatchObject({ state: 'failing', reason: expect.stringContaining('500'), rows_deleted: 0 })
  for (const kind of ['publish', 'edit', 'delete'] as const) {
    for (const resource of ['messages', 'activities', 'members', 'teams'] as const) {
      await trial.simulator.change({ kind, resource, count: 1 })
    }
  }
  expect(await trial.convergence({ tables: NO_TEAMS })).toEqual([])
  expect(trial.rows("SELECT resource FROM sync_status WHERE state = 'failing'")).toEqual([
    { resource: 'teams' },
  ])
  await trial.simulator.setFaults([])
  expect(await trial.convergence()).toEqual([])
  expect(await trial.state('teams', ({ state }) => state === 'ok')).toMatchObject({
    state: 'ok',
    reason: null,
  })
})

test('a failing newest end of one timeline leaves the other timeline fresh', async () => {
  trial = await startDaemonTrial()
  trial.go()
  expect(await trial.convergence()).toEqual([])
  await trial.simulator.setFaults([{ kind: 'truncate', route: '/v2/activities' }])
  await trial.state('activities', ({ state }) => state === 'failing')
  await trial.simulator.change({ kind: 'publish', resource: 'messages', count: 3 })
  expect(await trial.convergence({ tables: ['message_copies', 'messages', 'members'] })).toEqual([])
  await trial.simulator.setFaults([])
  expect(await trial.convergence()).toEqual([])
})
