import { existsSync, readdirSync } from 'node:fs'
import { expect, type TestContext, test } from 'vitest'
import { isoInstant } from '../../src/base/clock.ts'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { type SimulatorOptions, startSimulator } from '../../src/simulator/server.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { emptyFolder, parley } from '../cli/parley.ts'
import { type Place, placeFor, serveWorkspace } from '../doctor/api-server.ts'
import { migrationsOf } from '../migrations/older-version.ts'

interface Cost {
  requests: number
  certainty: string
  seconds: number | null
}

interface Plan extends Cost {
  asked: number
  warehouse: string | null
  rate: { per_second: number; from: string }
  estimates: { per_second: number; seconds: number }[]
  lanes: (Cost & { lane: string })[]
  resources: (Cost & { resource: string; lane: string; because: string })[]
}

async function planOf({ cwd, env, file }: Place, args: readonly string[] = []): Promise<Plan> {
  const ended = await parley(['backfill', '--plan', '--json', '--database', file, ...args], { cwd, env })
  expect(ended).toMatchObject({ status: 0, stderr: '' })
  return JSON.parse(ended.stdout)
}

async function backfill({ cwd, env, file }: Place, args: readonly string[] = []): Promise<number> {
  const around = { cwd, env: { ...env, PARLEY_LOG_LEVEL: 'silent' } }
  const ended = await parley(['backfill', '--json', '--database', file, ...args], around)
  expect(ended.status).toBe(0)
  return JSON.parse(ended.stdout).requests
}

function requestsOf(plan: Plan, resource: string, lane?: string): number {
  const lines = plan.resources.filter(line => line.resource === resource && (lane ?? line.lane) === line.lane)
  return lines.reduce((sum, { requests }) => sum + requests, 0)
}

/** Without a factor: within a fifth. */
function expectNear(estimate: number, truth: number, factor?: number): void {
  expect(estimate / truth).toBeGreaterThan(factor === undefined ? 0.8 : 1 / factor)
  expect(estimate / truth).toBeLessThan(factor ?? 1.2)
}

/** The texts that a backfill reads: of the copies of an e-mail, the oldest ones up to the first that has a text. */
function textsOf(messages: readonly Record<string, unknown>[]): number {
  const received = (message: Record<string, unknown>) => Date.parse(String(message['received_at']))
  const isRead = new Set<unknown>()
  return [...messages]
    .sort((one, other) => received(one) - received(other))
    .filter(message => {
      const mail = message['header_message_id'] || message['id']
      if (isRead.has(mail)) return false
      if (typeof message['text'] === 'string') isRead.add(mail)
      return true
    }).length
}

async function simulated(options: SimulatorOptions, context: TestContext) {
  const simulator = await serveWorkspace(options, context)
  return { simulator, place: placeFor(simulator) }
}

test.concurrent('the plan for 300 messages is within a fifth of what the backfill then needs, and stores nothing', async context => {
  const { simulator, place } = await simulated(
    { messages: 300, meetings: 20, deals: 15, members: 10 },
    context,
  )
  const plan = await planOf(place)
  expect(plan.asked).toBe(simulator.requests.total())
  expect(plan.asked).toBeLessThanOrEqual(60)
  expect(readdirSync(place.cwd)).toEqual([])
  const requests = await backfill(place)
  expectNear(plan.requests, requests)
})

test.concurrent('the plan for 30,000 messages takes at most 60 requests and is within a fifth', async context => {
  const { simulator, place } = await simulated({ messages: 30_000, meetings: 500, deals: 200 }, context)
  const plan = await planOf(place)
  expect(simulator.requests.total()).toBeLessThanOrEqual(60)
  const truth = simulator.world.truth()
  const messages = [...truth.items('messages')]
  expectNear(requestsOf(plan, 'messages'), messages.length / 100)
  expectNear(requestsOf(plan, 'activities'), truth.count('activities') / 100)
  expectNear(requestsOf(plan, 'message_bodies'), textsOf(messages))
  expectNear(requestsOf(plan, 'meetings', 'items'), truth.count('meetings'), 2)
})

test.concurrent('an uneven history is counted within a factor of two', async context => {
  const { simulator, place } = await simulated({ messages: 8000 }, context)
  const { world, apply } = simulator
  const month = Date.parse('2025-09-01T00:00:00Z') * 1000
  const ids = [...world.truth().items('messages')].map(({ id }) => String(id)).slice(0, 4800)
  ids.forEach((id, number) => {
    apply({ kind: 'edit', resource: 'messages', id, at: month + number * 500_000_000 })
  })
  const plan = await planOf(place)
  const messages = [...world.truth().items('messages')]
  expectNear(requestsOf(plan, 'messages'), messages.length / 100, 2)
  expectNear(requestsOf(plan, 'message_bodies'), textsOf(messages), 2)
  expect(simulator.requests.total()).toBeLessThanOrEqual(60)
})

test.concurrent('a workspace without messages needs no text reads', async context => {
  const { place } = await simulated({ messages: 0 }, context)
  const plan = await planOf(place)
  expect(requestsOf(plan, 'messages')).toBe(1)
  expect(requestsOf(plan, 'message_bodies')).toBe(0)
})

test.concurrent('a refused resource is unknown, and the others are planned', async context => {
  const faults = [{ kind: 'status', status: 403, route: '/v2/messages' }] as const
  const { place } = await simulated({ faults, securityOption: false }, context)
  const plan = await planOf(place)
  const line = (name: string) => plan.resources.find(({ resource }) => resource === name)
  expect(line('messages')).toMatchObject({ certainty: 'unknown', because: expect.stringContaining('403') })
  expect(line('message_bodies')).toMatchObject({ certainty: 'unknown' })
  expect(line('access_logs')).toMatchObject({ requests: 1, because: expect.stringContaining('not offered') })
  expect(line('activities')?.requests).toBeGreaterThan(0)
  expect(line('crm_record_links')).toMatchObject({
    certainty: 'unknown',
    because: expect.stringContaining('only reading shows the number'),
  })
})

test.concurrent('--only, --skip and --since bound the plan as they bound the backfill', async context => {
  const { simulator, place } = await simulated({ messages: 1500 }, context)
  const plan = await planOf(place, ['--only', 'message_bodies', '--since', '2026-03-01'])
  expect(plan.resources.map(({ resource }) => resource)).toEqual(['messages', 'message_bodies'])
  expect(simulator.requests.count('/v2/messages')).toBe(simulator.requests.total())
  const requests = await backfill(place, ['--only', 'message_bodies', '--since', '2026-03-01'])
  expectNear(plan.requests, requests)
  const without = await planOf(place, ['--only', 'message_bodies,teams', '--skip', 'message_bodies'])
  expect(without.resources.map(({ resource }) => resource)).toEqual(['teams', 'messages'])
})

test.concurrent('rows that the warehouse already has are not counted', async context => {
  const { simulator, place } = await simulated({ messages: 500 }, context)
  await backfill(place)
  const before = simulator.requests.total()
  const plan = await planOf(place)
  expect(simulator.requests.total() - before).toBeLessThanOrEqual(15)
  expect(plan.warehouse).toBe(place.file)
  expect(plan.certainty).toBe('about')
  expect(requestsOf(plan, 'message_bodies')).toBeLessThan(30)
  const recent = await planOf(place, ['--only', 'messages', '--since', '2026-06-01'])
  expect(requestsOf(recent, 'messages')).toBeLessThan(requestsOf(plan, 'messages'))
  expectNear(plan.requests, await backfill(place))
})

test.concurrent('a backfill of one resource that was interrupted does not leave the others out of the next plan', async context => {
  const { place } = await simulated({}, context)
  const lists = ['--only', 'members,teams']
  await backfill(place, lists)
  const db = openSqlite(place.file)
  db.exec(`UPDATE sync_resources SET round = round + 1, round_open = 1, round_started_at = '${isoInstant(Date.now())}'
    WHERE resource = 'teams'`)
  db.close()
  const plan = await planOf(place, lists)
  expect(requestsOf(plan, 'members')).toBeGreaterThan(0)
  expect(plan.requests).toBe(await backfill(place, lists))
})

// How fast the API answers decides here, so nothing else runs meanwhile.
test('the duration follows from the rate, and its source is named', async context => {
  const { place } = await simulated({}, context)
  const plan = await planOf(place, ['--max-requests-per-second', '20'])
  expect(plan.rate).toEqual({ per_second: 20, from: 'the ceiling api.max_requests_per_second' })
  expect(plan.seconds).toBeCloseTo(plan.requests / 20, 0)
  expect(plan.estimates).toEqual([{ per_second: 20, seconds: plan.seconds }])
  const lanes = plan.lanes.reduce((sum, { requests }) => sum + requests, 0)
  expect(lanes).toBe(plan.requests)
})

test('with an unknown limit the duration is given for 5 and 20 requests a second and for no limit', async context => {
  const { place } = await simulated({}, context)
  const { requests, seconds, rate, estimates } = await planOf(place)
  expect(estimates.map(each => each.per_second)).toEqual([5, 20, rate.per_second])
  expect(estimates[0]?.seconds).toBeCloseTo(requests / 5, 0)
  expect(estimates[1]?.seconds).toBeCloseTo(requests / 20, 0)
  expect(estimates[2]?.seconds).toBe(seconds)
})

test.concurrent('the plan is printed as a table on standard output', async context => {
  const { place } = await simulated({}, context)
  const { cwd, env } = place
  const { status, stdout, stderr } = await parley(['backfill', '--plan'], { cwd, env })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toMatch(
    /^RESOURCE +LANE +REQUESTS +AT 5\/S +AT 20\/S +NO LIMIT +BASIS\nmembers +history +1 /,
  )
  expect(stdout).toMatch(/\nall +all +≥\d+ /)
  expect(stdout).toMatch(/\nThis plan sent \d+ requests and stored nothing\.\n$/)
  expect(existsSync(`${cwd}/parley.db`)).toBe(false)
})

test.concurrent('a refused key, another workspace and an unreachable API end the plan as they end a backfill', async context => {
  const { simulator, place } = await simulated({}, context)
  const { cwd, env } = place
  const refused = await parley(['backfill', '--plan'], { cwd, env: { ...env, PARLEY_API_KEY: 'wrong-key' } })
  expect(refused).toMatchObject({ status: EXIT_STATUS.refused, stdout: '' })
  // The first route may refuse the key by itself, so another is asked.
  expect(simulator.requests.total()).toBe(2)
  const only = ['backfill', '--plan', '--only', 'members']
  const refusedAlone = await parley(only, { cwd, env: { ...env, PARLEY_API_KEY: 'wrong-key' } })
  expect(refusedAlone).toMatchObject({ status: EXIT_STATUS.refused, stdout: '' })
  const elsewhere = { ...env, PARLEY_WORKSPACE_ID: 'another-workspace' }
  const lost = await parley(['backfill', '--plan'], { cwd, env: elsewhere })
  expect(lost).toMatchObject({ status: EXIT_STATUS.refused, stdout: '' })
  expect(lost.stderr).toContain('every request with 403 or 404 (workspace another-workspace, ')
  const gone = await startSimulator({ messages: 1 })
  await gone.close()
  const unreachable = await parley(['backfill', '--plan', '--give-up-seconds', '1'], {
    cwd,
    env: { ...env, PARLEY_BASE_URL: gone.url },
  })
  expect(unreachable).toMatchObject({ status: EXIT_STATUS.apiUnavailable, stdout: '' })
})

test.concurrent('a database of an older version is named, with the way to upgrade it, and no request is sent', async context => {
  const { simulator, place } = await simulated({}, context)
  const { cwd, env, file } = place
  openWarehouse({ path: file, migrations: migrationsOf(emptyFolder(), 3) }).close()
  const { status, stdout, stderr } = await parley(['backfill', '--plan'], { cwd, env })
  expect({ status, stdout }).toEqual({ status: EXIT_STATUS.databaseUnavailable, stdout: '' })
  expect(stderr).toBe(
    `parley: ${file} is from an older version of parley\nhint: The next start of parley daemon or parley backfill upgrades it.\n`,
  )
  expect(simulator.requests.total()).toBe(0)
})
