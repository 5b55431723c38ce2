import { expect, test } from 'vitest'
import { column } from '../daemon/cli-daemon.ts'
import { until } from '../support/until.ts'
import { startParley } from './parley.ts'
import { placeFor, workspace } from './workspace.ts'

const CEILING = 40

test('backfills that are killed one after another make no more requests a day than the owner allows', async context => {
  const simulator = await workspace(context)
  const { cwd, file, env } = placeFor(simulator)
  const place = { cwd, env: { ...env, PARLEY_API_MAX_REQUESTS_PER_DAY: String(CEILING) } }
  const total = () => simulator.requests.total()
  const meta = (key: string) => {
    const [value] = column(file, 'SELECT value FROM sync_meta WHERE key = ?', key)
    return typeof value === 'string' ? JSON.parse(value) : undefined
  }
  for (let life = 1; life <= 3; life += 1) {
    const running = startParley(['backfill'], place)
    expect(await until(total, count => count >= life * 8)).toBeGreaterThanOrEqual(life * 8)
    running.child.kill('SIGKILL')
    await running.ended
    expect(meta('requests_today').used).toBeGreaterThanOrEqual(total())
    expect(meta('learned_rate')).toMatchObject({ ratePerSecond: expect.any(Number) })
  }
  const last = startParley(['backfill'], place)
  expect(
    await until(
      () => meta('requests_today').used,
      used => used === CEILING,
    ),
  ).toBe(CEILING)
  last.child.kill('SIGKILL')
  await last.ended
  expect(total()).toBeLessThanOrEqual(CEILING)
  // Each kill costs what was reserved and not sent yet; the rest of the day is still used.
  expect(total()).toBeGreaterThan(3 * 8)
})
