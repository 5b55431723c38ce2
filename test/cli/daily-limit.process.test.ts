import { expect, test } from 'vitest'
import { column, runCommand, startDaemon } from '../daemon/cli-daemon.ts'
import { startTap } from '../support/tap.ts'
import { until } from '../support/until.ts'
import { startParley } from './parley.ts'
import { placeFor, workspace } from './workspace.ts'

const CEILING = 40
const AT_ONCE = 2
/** A hundredth of the ceiling, and one at least, is counted before it is sent. */
const RESERVED = 1
const KILLS = 3

test('killed backfills together send at most the allowed requests of a day, plus those in flight at each kill', async context => {
  const simulator = await workspace(context)
  const tap = await startTap(simulator.url)
  context.onTestFinished(() => tap.close())
  const { cwd, file, env } = placeFor({ ...simulator, url: tap.url })
  const limits = {
    PARLEY_API_MAX_REQUESTS_PER_DAY: String(CEILING),
    PARLEY_API_MAX_CONCURRENCY: String(AT_ONCE),
  }
  const place = { cwd, env: { ...env, ...limits } }
  const sent = () => tap.requests.length
  const meta = (key: string) => {
    const [value] = column(file, 'SELECT value FROM sync_meta WHERE key = ?', key)
    return typeof value === 'string' ? JSON.parse(value) : undefined
  }
  let lost = 0
  for (let life = 1; life <= KILLS; life += 1) {
    const running = startParley(['backfill'], place)
    expect(await until(sent, count => count >= life * 8)).toBeGreaterThanOrEqual(life * 8)
    running.child.kill('SIGKILL')
    await running.ended
    // The requests that it wrote before the kill still arrive.
    expect(await until(tap.open, connections => connections === 0)).toBe(0)
    const { used } = meta('requests_today')
    expect(used - sent()).toBeGreaterThanOrEqual(lost)
    expect(used - sent()).toBeLessThanOrEqual(lost + AT_ONCE + RESERVED)
    lost = used - sent()
    expect(meta('learned_rate')).toMatchObject({ ratePerSecond: expect.any(Number) })
  }
  const last = startParley(['backfill'], place)
  expect(await until(sent, count => count >= CEILING - lost)).toBe(CEILING - lost)
  expect(meta('requests_today').used).toBe(CEILING)
  last.child.kill('SIGKILL')
  await last.ended
  expect(await until(tap.open, connections => connections === 0)).toBe(0)
  expect(sent()).toBe(CEILING - lost)
})

test('parley status and /readyz say that the requests of the day are used up', async context => {
  const place = placeFor(await workspace(context))
  const daemon = startDaemon(context, place, { PARLEY_API_MAX_REQUESTS_PER_DAY: '5' })
  const states = () => column(place.file, "SELECT state FROM sync_status WHERE reason LIKE '%used up since%'")
  await daemon.says(({ msg }) => msg === 'The status server listens')
  expect(await until(states, found => found.length > 0)).not.toContain('failing')
  expect((await runCommand(place, ['status'])).stdout).toMatch(
    /^Waiting since .* UTC: The requests of this day are used up\. api\.max_requests_per_day is reached\. Next try: /,
  )
  expect((await daemon.ask('/readyz')).body).toMatch(
    /^the requests of this day are used up since [-\d]+ [:\d]+ UTC: api\.max/,
  )
})
