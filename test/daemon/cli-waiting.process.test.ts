import { writeFileSync } from 'node:fs'
import { expect, type TestContext, test } from 'vitest'
import { until } from '../support/until.ts'
import { column, seen } from './cli-daemon.ts'
import { heldClock } from './held-clock.ts'
import { daemonInProcess } from './in-process.ts'

const MINUTE_MS = 60_000

/** A daemon inside this process that waits, since the key in its file was revoked. */
async function waitingForAKey(context: TestContext) {
  const clock = heldClock(MINUTE_MS)
  let timesWaited = 0
  const serviceManager = {
    ready: (status: string) => {
      if (status.startsWith('waiting')) timesWaited += 1
    },
  }
  const daemon = await daemonInProcess(context, { clock, serviceManager })
  let isOver = false
  void daemon.ended
    .catch(() => undefined)
    .finally(() => {
      isOver = true
    })
  /** Resolves when the daemon has begun to wait, or has said again that it waits, this many times. */
  const waits = async (times: number) => {
    await until(
      () => isOver || timesWaited >= times,
      isThere => isThere,
    )
    expect(isOver).toBe(false)
  }
  daemon.simulator.setApiKey('successor-key')
  await waits(1)
  return { ...daemon, clock, waits }
}

test('a key that was replaced within a minute is read from its file, and the daemon continues', async context => {
  const { simulator, clock, file, keyFile, stop, ended } = await waitingForAKey(context)
  writeFileSync(keyFile, 'successor-key')
  const [id = ''] = simulator.apply({ kind: 'publish', resource: 'messages' }).ids
  const asked = simulator.requests.total()
  clock.pass(MINUTE_MS)
  expect(await seen(file, id, 'SELECT id FROM message_copies WHERE id = ?', id)).toBe(id)
  expect(simulator.requests.total()).toBeGreaterThan(asked)
  stop.abort()
  expect(await ended).toBe(0)
})

test('a key that is still refused after a minute ends the daemon with 77 after one retry', async context => {
  const { simulator, clock, file, ended } = await waitingForAKey(context)
  const refusals = simulator.requests.count(undefined, 401)
  clock.pass(MINUTE_MS)
  await expect(ended).rejects.toMatchObject({ exitStatus: 77, code: 'unauthorized' })
  expect(simulator.requests.count(undefined, 401)).toBe(refusals + 1)
  const [noted] = column(file, "SELECT value FROM sync_meta WHERE key = 'daemon_state'")
  expect(JSON.parse(String(noted))).toMatchObject({ state: 'stopped', exit_status: 77 })
})

test('a reload with the refused key is not the second try, and one with another key is a first try', async context => {
  const { simulator, clock, keyFile, reload, waits, stop, ended } = await waitingForAKey(context)
  const refusals = () => simulator.requests.count(undefined, 401)
  const first = refusals()
  reload()
  await waits(2)
  expect(refusals()).toBe(first)
  writeFileSync(keyFile, 'a-third-key')
  reload()
  await waits(3)
  expect(refusals()).toBe(first + 1)
  await clock.waits(MINUTE_MS)
  stop.abort()
  expect(await ended).toBe(0)
})

test('a key that is refused right after a reload is waited out too', async context => {
  const { simulator, clock, keyFile, reload, waits, stop, ended, file } = await waitingForAKey(context)
  writeFileSync(keyFile, 'successor-key')
  clock.pass(MINUTE_MS)
  const [id = ''] = simulator.apply({ kind: 'publish', resource: 'messages' }).ids
  expect(await seen(file, id, 'SELECT id FROM message_copies WHERE id = ?', id)).toBe(id)
  simulator.setApiKey('a-third-key')
  reload()
  await waits(2)
  stop.abort()
  expect(await ended).toBe(0)
})

test('a daemon that is stopped while it waits is reported as stopped, and no longer as without access', async context => {
  const { file, stop, ended } = await waitingForAKey(context)
  const meta = (key: string) => column(file, 'SELECT value FROM sync_meta WHERE key = ?', key)[0]
  expect(JSON.parse(String(meta('daemon_state')))).toMatchObject({ state: 'waiting' })
  stop.abort()
  expect(await ended).toBe(0)
  expect(JSON.parse(String(meta('daemon_state')))).toMatchObject({ state: 'stopped', exit_status: 0 })
  expect(column(file, 'SELECT what FROM sync_gates')).toEqual([])
})
