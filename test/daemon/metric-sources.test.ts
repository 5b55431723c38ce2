import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { createMetricSources } from '../../src/daemon/metric-sources.ts'
import { type CurrentState, runningState } from '../../src/daemon/state.ts'
import { RESOURCE_NAMES } from '../../src/declare/resource-names.ts'
import { report } from '../health/report.ts'

test('a resource that the settings leave out has no gauges, so no alert calls it stale', async () => {
  const clock = systemClock()
  const env = { PARLEY_BASE_URL: 'http://localhost', PARLEY_API_KEY: 'key', PARLEY_WORKSPACE_ID: 'acme' }
  const { settings } = loadSettings({
    flags: {},
    env,
    cwd: '/',
    requireApi: true,
    resourceNames: RESOURCE_NAMES,
  })
  const current: CurrentState = { settings, state: runningState(clock) }
  const status = async () => report({ chosen_resources: ['members', 'messages'] })
  const { resources } = createMetricSources(current, { clock, status })
  expect((await resources())?.map(({ resource }) => resource)).toEqual(['members', 'messages'])
})
