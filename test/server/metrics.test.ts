import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { createMetrics, type MetricSources, type Metrics } from '../../src/server/metrics.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { NO_SOURCES } from './status-server.ts'

function metricsOf(sources: Partial<MetricSources> = {}, clock = systemClock()) {
  const metrics = createMetrics({ clock, version: '1.2.3', sources: { ...NO_SOURCES, ...sources } })
  onTestFinished(() => metrics.close())
  return metrics
}

const samplesOf = (text: string): string[] =>
  text.split('\n').filter(line => line !== '' && !line.startsWith('#'))

/** Name of a sample without the endings of a histogram. */
const familyOf = (sample: string): string =>
  (/^[a-z_]+/.exec(sample)?.[0] ?? '').replace(/_(bucket|sum|count)$/, '')

const RESOURCE = {
  resource: 'members',
  state: 'failing',
  rows_live: 12,
  rejected: 1,
  fresh_as_of: '2025-06-01T11:59:00.000Z',
  complete_as_of: '2025-06-01T11:00:00.000Z',
  pending_tasks: 4,
  deletions_held_since: '2025-06-01T10:00:00.000Z',
} as const

test('every sample follows its help and type, and has a name with a unit', async () => {
  const metrics = metricsOf({
    resources: () => [RESOURCE],
    backlog: () => ({ items: 3 }),
    database: () => ({ bytes: 4096, walBytes: 0, freeBytes: 9 }),
    rate: () => ({ ratePerSecond: 10, concurrency: 4, inFlight: 1 }),
  })
  metrics.recordRequest({ route: '/v1/members', lane: 'audit', status: 200, durationMs: 12 })
  metrics.recordRun({ resource: 'members', lane: 'audit', outcome: 'complete' })
  metrics.recordNudge('unknown')
  const text = await metrics.text()
  const lines = text.split('\n')
  for (const sample of samplesOf(text)) {
    const family = familyOf(sample)
    const at = lines.indexOf(sample)
    const type = lines.findIndex(line => line.startsWith(`# TYPE ${family} `))
    expect([family, type >= 0 && type < at, lines[type - 1]?.startsWith(`# HELP ${family} `)]).toEqual([
      family,
      true,
      true,
    ])
    const isCounter = lines[type]?.endsWith(' counter')
    expect([family, family.endsWith('_total')]).toEqual([family, isCounter])
    expect(family).not.toMatch(/_(ms|millis|kb|mb|minutes)(_|$)/)
  }
})

test('requests are counted by route and status, and throttled ones separately too', async () => {
  const metrics = metricsOf()
  metrics.recordRequest({ route: '/v2/messages/{key}', lane: 'items', status: 200, durationMs: 40 })
  metrics.recordRequest({ route: '/v2/messages/{key}', lane: 'items', status: 429, durationMs: 4 })
  metrics.recordRequest({ route: '/v2/messages/{key}', lane: 'items', status: 'timeout', durationMs: 60_000 })
  const samples = samplesOf(await metrics.text())
  expect(samples).toContain('parley_requests_total{route="/v2/messages/{key}",status="200"} 1')
  expect(samples).toContain('parley_requests_total{route="/v2/messages/{key}",status="timeout"} 1')
  expect(samples).toContain('parley_throttled_total 1')
  expect(samples).toContain('parley_request_duration_seconds_count{route="/v2/messages/{key}"} 3')
})

test('a resource has its rows, its age by the server’s clock, and exactly one state with the value 1', async () => {
  const samples = samplesOf(await metricsOf({ resources: () => [RESOURCE] }).text())
  expect(samples).toContain('parley_rows{resource="members"} 12')
  expect(samples).toContain('parley_fresh_seconds{resource="members"} 60')
  expect(samples).toContain('parley_resource_state{resource="members",state="failing"} 1')
  expect(samples).toContain('parley_resource_state{resource="members",state="ok"} 0')
})

test.each([
  ['snapshots are turned off', undefined, []],
  [
    'a snapshot was made',
    { made_at: '2026-03-04T09:59:00.000Z', failed_at: null },
    ['parley_snapshot_age_seconds 60', 'parley_snapshot_failed 0'],
  ],
  [
    'a later snapshot failed',
    { made_at: '2026-03-04T09:58:00.000Z', failed_at: '2026-03-04T09:59:00.000Z' },
    ['parley_snapshot_age_seconds 120', 'parley_snapshot_failed 1'],
  ],
  [
    'no snapshot has succeeded yet',
    { made_at: null, failed_at: '2026-03-04T09:59:00.000Z' },
    ['parley_snapshot_failed 1'],
  ],
])(
  'the metrics have the age of the newest snapshot and the failure of the last one when %s',
  async (_, snapshot, told) => {
    const clock = virtualClock(Date.parse('2026-03-04T10:00:00.000Z'))
    const samples = samplesOf(await metricsOf({ snapshot: () => snapshot }, clock).text())
    expect(samples.filter(sample => sample.startsWith('parley_snapshot'))).toEqual(told)
  },
)

const PUBLISHED = {
  publication: 7,
  started_at: '2026-03-04T09:55:00.000Z',
  finished_at: '2026-03-04T09:55:02.500Z',
  published_at: '2026-03-04T09:55:00.000Z',
  complete_as_of: null,
  fresh_as_of: null,
  tables_changed: 2,
  rows: 10,
  files_written: 3,
  files_removed: 1,
  bytes_written: 99,
  error: null,
}
const FAILING = { since: '', times: 2, at: '', code: 'x', reason: '' }

test.each([
  ['the daemon does not publish', undefined, []],
  [
    'no publication has succeeded yet',
    { is_late: true, last: null, failing: FAILING },
    ['parley_publication_late 1', 'parley_publication_failures 2'],
  ],
  [
    'a publication succeeded',
    { is_late: false, last: PUBLISHED, failing: null },
    [
      'parley_publication_late 0',
      'parley_publication_lag_seconds 300',
      'parley_publication_failures 0',
      'parley_publication_success_timestamp_seconds 1772618102.5',
      'parley_publication_duration_seconds 2.5',
      'parley_publication_files_written 3',
      'parley_publication_bytes_written 99',
    ],
  ],
])(
  'the metrics have the lag, the failures and the size of publications when %s',
  async (_, publication, told) => {
    const clock = virtualClock(Date.parse('2026-03-04T10:00:00.000Z'))
    const samples = samplesOf(await metricsOf({ publication: () => publication }, clock).text())
    expect(samples.filter(sample => sample.startsWith('parley_publication'))).toEqual(told)
  },
)

test('a figure that cannot be read is omitted and counted, and the others are exported', async () => {
  const metrics = metricsOf({
    resources: () => {
      throw new Error('the disk is gone')
    },
    database: () => ({ bytes: 4096, walBytes: 0, freeBytes: 9 }),
  })
  const text = await metrics.text()
  expect(text).not.toContain('parley_rows{')
  expect(samplesOf(text)).toContain('parley_database_bytes 4096')
  expect(await metrics.text()).toMatch(/\{part="resources"\} \d/)
})

test('figures that count rows are read at most every 15 s, however often they are scraped', async () => {
  const clock = virtualClock(Date.parse('2025-06-01T12:00:00Z'))
  let asked = 0
  const metrics = metricsOf(
    {
      resources: () => {
        asked += 1
        return [RESOURCE]
      },
    },
    clock,
  )
  for (let scrape = 0; scrape < 5; scrape += 1) await metrics.text()
  expect(asked).toBe(1)
  await clock.advance(15_000)
  await metrics.text()
  expect(asked).toBe(2)
})

test('every promised gauge and counter is exported', async () => {
  const metrics = metricsOf({
    resources: () => [RESOURCE],
    backlog: () => ({ head: 0, items: 3 }),
    database: () => ({ bytes: 4096, walBytes: 512, freeBytes: 9 }),
    rate: () => ({ ratePerSecond: 10.5, concurrency: 4, inFlight: 1 }),
    workspace: () => ({ id: 'acme', baseUrl: 'https://api.example.com' }),
  })
  metrics.recordRequest({ route: '/v1/teams', lane: 'audit', status: 'transport', durationMs: 120 })
  metrics.recordRun({ resource: 'teams', lane: 'audit', outcome: 'complete' })
  metrics.recordNudge('playbook.updated.beta')
  metrics.recordRefusedNudge('bad-body')
  const samples = samplesOf(await metrics.text())
  expect(samples).toEqual(
    expect.arrayContaining([
      'parley_requests_total{route="/v1/teams",status="transport"} 1',
      'parley_lane_requests_total{lane="audit"} 1',
      'parley_request_duration_seconds_bucket{le="0.1",route="/v1/teams"} 0',
      'parley_request_duration_seconds_bucket{le="0.25",route="/v1/teams"} 1',
      'parley_throttled_total 0',
      'parley_rate_requests_per_second 10.5',
      'parley_concurrency 4',
      'parley_in_flight_requests 1',
      'parley_paused_seconds 0',
      'parley_lane_backlog{lane="head"} 0',
      'parley_lane_backlog{lane="items"} 3',
      'parley_rejects{resource="members"} 1',
      'parley_passes_total{resource="teams",lane="audit",outcome="complete"} 1',
      'parley_wal_bytes 512',
      'parley_database_bytes 4096',
      'parley_nudges_total{kind="playbook.updated.beta"} 1',
      'parley_nudges_total{kind="record.activity_link.*"} 0',
      'parley_nudges_refused_total{reason="bad-body"} 1',
      'parley_build_info{version="1.2.3"} 1',
      'parley_workspace_info{workspace_id="acme",base_url="https://api.example.com"} 1',
    ]),
  )
  const families = new Set(samples.map(familyOf))
  expect([...families]).toEqual(
    expect.arrayContaining(['parley_event_loop_delay_seconds', 'process_resident_memory_bytes']),
  )
})

test('a pause is exported as the time that is left', async () => {
  const clock = virtualClock(Date.parse('2025-06-01T12:00:00Z'))
  const pausedUntil = clock.now() + 30_000
  const rate = () => ({ ratePerSecond: 1, concurrency: 1, inFlight: 0, pausedUntil })
  const metrics = metricsOf({ rate }, clock)
  expect(samplesOf(await metrics.text())).toContain('parley_paused_seconds 30')
  await clock.advance(20_000)
  expect(samplesOf(await metrics.text())).toContain('parley_paused_seconds 10')
  await clock.advance(20_000)
  expect(samplesOf(await metrics.text())).toContain('parley_paused_seconds 0')
})

test('the figures that alerts need are there: completeness, held deletions, the API, the disk and the start', async () => {
  const clock = virtualClock(Date.parse('2025-06-01T12:00:00Z'))
  const database = () => ({ bytes: 1, walBytes: 0, freeBytes: 1_000_000 })
  const metrics = metricsOf(
    { resources: () => [RESOURCE], database, isReady: () => false, isApiReachable: () => true },
    clock,
  )
  expect(await metrics.text()).not.toContain('\nparley_last_answer_seconds ')
  metrics.recordRequest({ route: '/v1/teams', lane: 'head', status: 200, durationMs: 1 })
  await clock.advance(30_000)
  metrics.recordRequest({ route: '/v1/teams', lane: 'head', status: 'timeout', durationMs: 1 })
  const samples = samplesOf(await metrics.text())
  expect(samples).toEqual(
    expect.arrayContaining([
      'parley_complete_seconds{resource="members"} 3600',
      'parley_pending{resource="members"} 4',
      'parley_deletions_held{resource="members"} 1',
      'parley_ready 0',
      'parley_api_reachable 1',
      'parley_last_answer_seconds 30',
      'parley_disk_free_bytes 1000000',
    ]),
  )
  const started = Number(samples.find(line => line.startsWith('process_start_time_seconds'))?.split(' ')[1])
  expect(started).toBeLessThanOrEqual(clock.now() / 1000)
  expect(started).toBeGreaterThan(0)
})

test('an unknown figure has no value, and does not keep its last one', async () => {
  let rate: { ratePerSecond: number; concurrency: number; inFlight: number } | undefined = {
    ratePerSecond: 9,
    concurrency: 2,
    inFlight: 0,
  }
  const metrics = metricsOf({
    rate: () => rate,
    resources: () => [{ ...RESOURCE, fresh_as_of: null }],
  })
  expect(await metrics.text()).toContain('\nparley_concurrency 2\n')
  rate = undefined
  const families = new Set(samplesOf(await metrics.text()).map(familyOf))
  expect(families).not.toContain('parley_concurrency')
  expect(families).not.toContain('parley_fresh_seconds')
  expect(families).toContain('parley_rows')
})

const longestDelay = async (metrics: Metrics): Promise<number> =>
  Number(/^parley_event_loop_delay_seconds\{quantile="1"\} (.+)$/m.exec(await metrics.text())?.[1])

/** Blocks the event loop. */
const hold = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

test('a process that was busy for long shows this in the next scrape only', async () => {
  const metrics = metricsOf()
  for (let turn = 0; turn < 3; turn += 1) {
    hold(220)
    await new Promise(setImmediate)
  }
  const [first, second] = [await longestDelay(metrics), await longestDelay(metrics)]
  expect(first).toBeGreaterThan(0.07)
  expect(second).toBe(0)
})

test('the delay that a scrape causes is part of its figure', async () => {
  const metrics = metricsOf({
    database: () => {
      hold(400)
      return undefined
    },
  })
  // Timers have run since the last scrape, and will run before the next one.
  for (let turn = 0; turn < 3; turn += 1) {
    hold(110)
    await new Promise(setImmediate)
  }
  expect(await longestDelay(metrics)).toBeGreaterThan(0.2)
})

test('transactions are exported by the time for which they blocked others', async () => {
  const metrics = metricsOf()
  for (const ms of [3, 40, 70]) metrics.recordTransaction(ms)
  expect(samplesOf(await metrics.text())).toEqual(
    expect.arrayContaining([
      'parley_transaction_duration_seconds_bucket{le="0.005"} 1',
      'parley_transaction_duration_seconds_bucket{le="0.05"} 2',
      'parley_transaction_duration_seconds_bucket{le="0.1"} 3',
      'parley_transaction_duration_seconds_count 3',
    ]),
  )
})

test('two metric registries are independent of each other', async () => {
  const [one, other] = [metricsOf(), metricsOf()]
  one.recordNudge('unknown')
  expect(await other.text()).toContain('parley_nudges_total{kind="unknown"} 0')
})
