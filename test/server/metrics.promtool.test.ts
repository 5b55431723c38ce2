import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { createMetrics } from '../../src/server/metrics.ts'
import { requirePrograms } from '../systemd/tools.ts'
import { NO_SOURCES } from './status-server.ts'

requirePrograms('promtool')

test('promtool accepts the metrics of a daemon', async () => {
  const metrics = createMetrics({
    clock: systemClock(),
    version: '1.2.3',
    sources: {
      ...NO_SOURCES,
      rate: () => ({ ratePerSecond: 10, concurrency: 4, inFlight: 1 }),
      database: () => ({ bytes: 4096, walBytes: 0, freeBytes: 9 }),
      workspace: () => ({ id: 'acme', baseUrl: 'https://api.example.com' }),
    },
  })
  metrics.recordRequest({ route: '/v1/members', lane: 'audit', status: 200, durationMs: 12 })
  metrics.recordRun({ resource: 'members', lane: 'audit', outcome: 'complete' })
  const input = await metrics.text()
  metrics.close()
  expect(input).toContain('parley_event_loop_delay_seconds{quantile="0.99"}')
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' })
  expect({ status, output: `${stdout}${stderr}` }).toEqual({ status: 0, output: '' })
})
