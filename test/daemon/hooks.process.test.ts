import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, type TestContext, test } from 'vitest'
import type { HookPayload } from '../../src/hooks/call.ts'
import { emptyFolder } from '../cli/parley.ts'
import { receiver } from '../hooks/receiver.ts'
import { until } from '../support/until.ts'
import { column, seen } from './cli-daemon.ts'
import { type HeldClock, heldClock } from './held-clock.ts'
import { daemonInProcess } from './in-process.ts'

const LOOK_MS = 15_000
const MINUTE_MS = 60_000
const ANNOUNCED = "SELECT value FROM sync_meta WHERE key = 'announced_problems'"

/** Lets the daemon look this often. When this returns, the last look has ended. */
async function looks(clock: HeldClock, count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) {
    await clock.waits(LOOK_MS)
    clock.pass(LOOK_MS)
  }
  await clock.waits(LOOK_MS)
}

/** Lets the daemon look until its stored problems match. Looks within a second share one reading of the database. */
const lookUntil = (clock: HeldClock, file: string, isIt: (announced: string) => boolean) =>
  until(async () => {
    await looks(clock, 1)
    return String(column(file, ANNOUNCED)[0])
  }, isIt)

const isNothing = (announced: string) => announced === '[]'

/** A daemon inside this process whose key was revoked. A webhook is called for problems, a command for recoveries. */
async function withRevokedKey(context: TestContext) {
  const clock = heldClock(LOOK_MS, MINUTE_MS)
  const hook = await receiver()
  const file = join(emptyFolder(), 'recovered')
  let begin: () => void = () => undefined
  const waits = new Promise<void>(resolve => {
    begin = resolve
  })
  const daemon = await daemonInProcess(context, {
    clock,
    serviceManager: { ready: status => status.startsWith('waiting') && begin() },
    env: { PARLEY_HOOKS_ON_PROBLEM: hook.url, PARLEY_HOOKS_ON_RECOVERED: `cat >> '${file}'` },
  })
  await looks(clock, 3)
  expect(hook.calls).toEqual([])
  daemon.simulator.setApiKey('successor-key')
  await Promise.race([waits, daemon.ended])
  const note = await lookUntil(clock, daemon.file, announced => announced.includes('api:refused'))
  expect(JSON.parse(note)).toMatchObject([{ id: 'api:refused' }])
  const recovered = (): HookPayload[] =>
    existsSync(file)
      ? readFileSync(file, 'utf8')
          .split('\n')
          .filter(line => line !== '')
          .map(line => JSON.parse(line))
      : []
  return { ...daemon, clock, hook, recovered }
}

const FIELDS = { event: 'problem', id: 'api:refused', workspace: expect.any(String) }

test('a refused key calls the webhook once while the daemon waits, and the command once when the key is mended', async context => {
  const { clock, hook, recovered, keyFile, file, stop, ended } = await withRevokedKey(context)
  await looks(clock, 5)
  expect(hook.calls.map(({ payload }) => payload)).toEqual([expect.objectContaining(FIELDS)])
  expect(hook.calls[0]?.payload.what).toBe('The API refuses the key')
  writeFileSync(keyFile, 'successor-key')
  clock.pass(MINUTE_MS)
  expect(
    await seen(file, 0, "SELECT count(*) FROM sync_gates WHERE kind NOT IN ('failing', 'unavailable')"),
  ).toBe(0)
  expect(await lookUntil(clock, file, isNothing)).toBe('[]')
  await looks(clock, 5)
  expect(recovered()).toEqual([expect.objectContaining({ ...FIELDS, event: 'recovered' })])
  expect(hook.calls).toHaveLength(1)
  stop.abort()
  expect(await ended).toBe(0)
})

test('a daemon that ends because its key is refused calls the webhook about that first, also when it has just started', async context => {
  const { clock, hook, ended, start, simulator } = await withRevokedKey(context)
  clock.pass(MINUTE_MS)
  await expect(ended).rejects.toMatchObject({ exitStatus: 77 })
  const events = () => hook.calls.map(({ payload: { event, id } }) => `${event} ${id}`)
  expect(events()).toEqual(['problem api:refused', 'problem daemon:ended'])
  expect(hook.calls[1]?.payload).toMatchObject({
    what: 'The daemon is not running, so nothing is updated',
    detail: expect.stringContaining(`The API at ${simulator.url} refuses the key`),
    todo: expect.stringMatching(/Write the new key to .+\. The daemon has to be started again\.$/),
  })
  await expect(start().ended).rejects.toMatchObject({ exitStatus: 77 })
  expect(events().slice(2)).toEqual(['problem daemon:ended'])
})

test('a daemon that starts again with a mended key calls the command for the recovery of the problem that it announced before', async context => {
  const { clock, hook, recovered, keyFile, file, start, stop, ended } = await withRevokedKey(context)
  stop.abort()
  expect(await ended).toBe(0)
  writeFileSync(keyFile, 'successor-key')
  const again = start()
  expect(await lookUntil(clock, file, isNothing)).toBe('[]')
  expect(recovered()).toEqual([expect.objectContaining({ ...FIELDS, event: 'recovered' })])
  expect(hook.calls).toHaveLength(1)
  again.stop.abort()
  expect(await again.ended).toBe(0)
})
