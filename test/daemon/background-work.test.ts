import { expect, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { MAINTENANCE, nextOccurrence } from '../../src/config/calendar.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { type BackgroundWorkDeps, workInBackground } from '../../src/daemon/background-work.ts'
import { META } from '../../src/store/sync/meta.ts'
import { virtualClock } from '../api/virtual-clock.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { until } from '../support/until.ts'
import { PUBLISH_DEFAULTS } from './publish-settings.ts'

const NIGHT = nextOccurrence(MAINTENANCE, Date.parse('2026-03-04T00:00:00.000Z'))

const { reporting, crm, crmDeal, crmCompany, crmContact } = loadSettings({
  flags: {},
  env: {},
  cwd: '/',
  requireApi: false,
}).settings

const settingsFor = (path: string): BackgroundWorkDeps['settings'] => ({
  database: { path, mode: 0o600 },
  retention: { withdrawnDays: 30, runsDays: 90 },
  search: { enabled: false },
  proxies: {},
  publish: PUBLISH_DEFAULTS,
  snapshot: { every: undefined, folder: undefined, keep: 7 },
  sync: { resources: undefined },
  ...{ reporting, crm, crmDeal, crmCompany, crmContact },
})

test('a failed maintenance stops nothing, and other failed work is retried', async () => {
  const store = temporaryStore()
  const clock = virtualClock(NIGHT - 1000)
  let lines = ''
  const log = await createLog({ level: 'info', stream: { write: (text: string) => (lines += text) } })
  const ending = new AbortController()
  store.db.pragma('query_only = ON')
  const ended = workInBackground({
    app: { clock, store },
    settings: settingsFor(store.path),
    log,
    signal: ending.signal,
    env: {},
    version: '1.2.3',
    serverTime: () => clock.now(),
    endSession: () => undefined,
  })
  await clock.advance(61_000)
  const failed = () => lines.match(/(Background work|Maintenance) failed/g)?.length ?? 0
  // Maintenance once, and the tables for reports at both ends and in the middle of the minute.
  expect(await until(failed, seen => seen === 4)).toBe(4)
  expect(lines).toContain('no permission to open or write it')
  store.db.pragma('query_only = OFF')
  await clock.advance(60_000)
  const rules = () => store.state.meta(META.reportRules)
  expect(await until(rules, seen => seen !== undefined)).toBeDefined()
  expect(lines).not.toContain('Background work ended')
  ending.abort()
  await ended
})
