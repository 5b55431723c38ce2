import { afterEach, expect, test } from 'vitest'
import type { Change } from '../../src/simulator/changes/change.ts'
import { CLOCKS, type DaemonTrial, startDaemonTrial } from './daemon-trial.ts'
import { shiftedClock } from './shifted-clock.ts'

let trial: DaemonTrial

afterEach(() => trial.close())

const HOUR_MS = 3_600_000

const CHANGES: readonly Change[] = [
  { kind: 'publish', resource: 'messages', count: 3 },
  { kind: 'publishLate', resource: 'messages', count: 3 },
  { kind: 'edit', resource: 'crm_records', object: 'deal', count: 2 },
  { kind: 'edit', resource: 'meetings', count: 2 },
  { kind: 'delete', resource: 'messages', count: 2 },
  { kind: 'delete', resource: 'activities', count: 2 },
  { kind: 'hide', resource: 'members', count: 1 },
]

test.each([-1, 1])(
  'a daemon whose clock is wrong by an hour (%i) follows the API all the same',
  async sign => {
    const clock = shiftedClock(sign * HOUR_MS)
    trial = await startDaemonTrial({}, clock.env)
    trial.go()
    expect(await trial.convergence()).toEqual([])
    await trial.simulator.changeAtOnce(CHANGES)
    expect(await trial.convergence()).toEqual([])
    // Event times are the API's, and so is the freshness in the warehouse.
    const [row] = trial.rows("SELECT fresh_as_of AS at FROM sync_status WHERE resource = 'messages'")
    expect(Math.abs(Date.parse(String(row?.['at'])) - trial.serverNow())).toBeLessThan(HOUR_MS / 2)
    const { stderr } = await trial.end()
    expect(stderr.match(/The clock of this machine differs/g)).toHaveLength(1)
  },
)

/** The clock that sets `_synced_at` has gone backwards. */
const JUMPED = { besides: /are out of order/ }

test.each([1, -1])('a clock that jumps by an hour (%i) while the daemon runs stops nothing', async sign => {
  const clock = shiftedClock(0)
  trial = await startDaemonTrial({}, clock.env)
  const { pid } = trial.go()
  expect(await trial.convergence(JUMPED)).toEqual([])
  clock.set(sign * HOUR_MS, pid)
  await trial.simulator.changeAtOnce(CHANGES)
  expect(await trial.convergence(JUMPED)).toEqual([])
  clock.set(0, pid)
  await trial.simulator.changeAtOnce(CHANGES)
  expect(await trial.convergence(JUMPED)).toEqual([])
})

test('a daemon that starts with a clock far ahead continues after the clock is set right', async () => {
  const clock = shiftedClock(40 * 24 * HOUR_MS)
  trial = await startDaemonTrial({}, clock.env)
  trial.go()
  expect(await trial.convergence(JUMPED)).toEqual([])
  await trial.end()
  clock.set(0)
  await trial.simulator.changeAtOnce(CHANGES)
  trial.go()
  expect(await trial.convergence(JUMPED)).toEqual([])
})

test.each(CLOCKS)('a daemon follows an API whose clock says %s', async now => {
  trial = await startDaemonTrial({ now })
  trial.go()
  expect(await trial.convergence()).toEqual([])
  await trial.simulator.changeAtOnce(CHANGES)
  expect(await trial.convergence()).toEqual([])
})
