import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, type TestContext, test } from 'vitest'
import { RESOURCE_NAMES } from '../../src/catalog/resource-names.ts'
import { type Clock, systemClock } from '../../src/clock.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { runDaemon } from '../../src/daemon/daemon.ts'
import { createServiceManager } from '../../src/daemon/service-manager.ts'
import { createLog } from '../../src/log.ts'
import { placeFor, workspace } from '../cli/workspace.ts'
import { column, loaded, seen } from './cli-daemon.ts'

const MINUTE_MS = 60_000

interface HeldClock extends Clock {
  /** Resolves when a wait of a minute starts. */
  asked: Promise<void>
  /** Ends that minute. */
  passMinute(): void
}

/** The system clock, except that the test decides when a wait of a minute ends. */
function heldClock(): HeldClock {
  const clock = systemClock()
  let ask: () => void = () => undefined
  let pass: () => void = () => undefined
  const asked = new Promise<void>(resolve => {
    ask = resolve
  })
  const passed = new Promise<void>(resolve => {
    pass = resolve
  })
  return {
    ...clock,
    asked,
    passMinute: () => pass(),
    sleep(ms, signal) {
      if (ms !== MINUTE_MS) return clock.sleep(ms, signal)
      ask()
      const stopped = new Promise<void>(resolve => signal?.addEventListener('abort', () => resolve()))
      return Promise.race([passed, stopped])
    },
  }
}

/** A daemon inside this process that waits, since the key in its file was revoked. */
async function waitingForAKey(context: TestContext) {
  const simulator = await workspace(context)
  const { cwd, file, env } = placeFor(simulator)
  const keyFile = join(cwd, 'key')
  writeFileSync(keyFile, simulator.apiKey, { mode: 0o600 })
  const { PARLEY_API_KEY: _, ...others } = env
  const reload = () =>
    loadSettings({
      flags: { 'database.path': file },
      env: {
        ...others,
        PARLEY_API_KEY_FILE: keyFile,
        PARLEY_HTTP_LISTEN: 'off',
        PARLEY_SYNC_POLL_SECONDS: '1',
      },
      cwd,
      requireApi: true,
      resourceNames: RESOURCE_NAMES,
    }).settings
  const clock = heldClock()
  const log = await createLog({ level: 'fatal' })
  const stop = new AbortController()
  context.onTestFinished(() => stop.abort())
  const ended = runDaemon({
    settings: reload(),
    reload,
    onReload: () => undefined,
    createLog: async () => log,
    serviceManager: createServiceManager({ env: {}, clock, log }),
    clock,
    pid: process.pid,
    version: '0',
    stop: stop.signal,
  })
  await Promise.race([loaded(file), ended])
  simulator.setApiKey('successor-key')
  await Promise.race([clock.asked, ended])
  return { simulator, clock, file, keyFile, stop, ended }
}

test('a key that was replaced within a minute is read from its file, and the daemon continues', async context => {
  const { simulator, clock, file, keyFile, stop, ended } = await waitingForAKey(context)
  writeFileSync(keyFile, 'successor-key')
  const [id = ''] = simulator.apply({ kind: 'publish', resource: 'messages' }).ids
  const asked = simulator.requests.total()
  clock.passMinute()
  expect(await seen(file, id, 'SELECT id FROM message_copies WHERE id = ?', id)).toBe(id)
  expect(simulator.requests.total()).toBeGreaterThan(asked)
  stop.abort()
  expect(await ended).toBe(0)
})

test('a key that is still refused after a minute ends the daemon with 77 after one retry', async context => {
  const { simulator, clock, file, ended } = await waitingForAKey(context)
  const refusals = simulator.requests.count(undefined, 401)
  clock.passMinute()
  await expect(ended).rejects.toMatchObject({ exitStatus: 77, code: 'unauthorized' })
  expect(simulator.requests.count(undefined, 401)).toBe(refusals + 1)
  const [noted] = column(file, "SELECT value FROM sync_meta WHERE key = 'daemon_state'")
  expect(JSON.parse(String(noted))).toMatchObject({ state: 'stopped', exit_status: 77 })
})

test('a daemon that is stopped while it waits is reported as stopped, and no longer as without access', async context => {
  const { file, stop, ended } = await waitingForAKey(context)
  const meta = (key: string) => column(file, 'SELECT value FROM sync_meta WHERE key = ?', key)[0]
  expect(JSON.parse(String(meta('daemon_state')))).toMatchObject({ state: 'waiting' })
  stop.abort()
  expect(await ended).toBe(0)
  expect(JSON.parse(String(meta('daemon_state')))).toMatchObject({ state: 'stopped', exit_status: 0 })
  expect(meta('unreachable')).toBeUndefined()
})
