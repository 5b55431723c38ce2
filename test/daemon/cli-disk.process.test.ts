import { execFileSync } from 'node:child_process'
import { chmodSync, statSync } from 'node:fs'
import { describe, expect, type TestContext, test } from 'vitest'
import type { Simulator } from '../../src/simulator/server.ts'
import { type Place, placeFor, workspace } from '../cli/workspace.ts'
import {
  column,
  type DaemonProcess,
  type LogLine,
  loaded,
  runCommand,
  seen,
  startDaemon,
} from './cli-daemon.ts'

const waits = ({ msg }: LogLine) => msg === 'The daemon waits and tries again'

/** Limits the size of every file that the daemon writes; undefined lifts the limit. */
function limitFiles({ pid }: DaemonProcess, bytes: number | undefined): void {
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes ?? 'unlimited'}:`])
}

/** Root may write any file; without these capabilities it is a normal user. */
const AS_OTHERS =
  process.getuid?.() === 0
    ? [
        'setpriv',
        '--bounding-set=-dac_override,-dac_read_search',
        '--inh-caps=-dac_override,-dac_read_search',
      ]
    : []

interface Settled {
  simulator: Simulator
  place: Place
  daemon: DaemonProcess
}

async function settled(context: TestContext, by: readonly string[] = []): Promise<Settled> {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  const daemon = startDaemon(context, place, {}, by)
  await loaded(place.file)
  return { simulator, place, daemon }
}

const publish = ({ simulator }: Settled): string[] =>
  simulator.apply({ kind: 'publish', resource: 'messages', count: 20 }).ids

/** The next try is a minute away; a signal makes the daemon try now. */
async function recovers({ place, daemon }: Settled, ids: readonly string[]): Promise<void> {
  daemon.signal('SIGHUP')
  for (const id of ids) {
    expect(await seen(place.file, id, 'SELECT id FROM message_copies WHERE id = ?', id)).toBe(id)
  }
  expect((await daemon.ask('/readyz')).status).toBe(200)
  expect((await runCommand(place, ['status'])).stdout).toContain('The daemon has been running for')
  daemon.signal('SIGTERM')
  expect(await daemon.ended).toMatchObject({ status: 0 })
  expect(column(place.file, 'PRAGMA integrity_check')).toEqual(['ok'])
}

describe('a daemon whose disk is full', () => {
  test('the daemon waits, says why, and continues when there is space', async context => {
    const all = await settled(context)
    const { place, daemon } = all
    limitFiles(daemon, statSync(`${place.file}-wal`).size)
    const ids = publish(all)
    const line = await daemon.says(waits)
    expect(line).toMatchObject({ level: 'error', wait_ms: 60_000, error: { code: 'database-unavailable' } })
    expect(line['reason']).toContain(place.file)
    const ready = await daemon.ask('/readyz')
    expect(ready.status).toBe(503)
    expect(ready.body).toContain(place.file)
    expect((await daemon.ask('/livez')).status).toBe(200)
    expect(JSON.parse((await daemon.ask('/status')).body).daemon).toMatchObject({ state: 'waiting' })
    expect(await runCommand(place, ['backfill'])).toMatchObject({ status: 75 })
    // Every item can be read now.
    expect(column(place.file, 'SELECT count(*) FROM live_meetings')).not.toEqual([])
    limitFiles(daemon, undefined)
    await recovers(all, ids)
  })

  test('the daemon retries as often as necessary', async context => {
    const all = await settled(context)
    const { place, daemon } = all
    limitFiles(daemon, statSync(`${place.file}-wal`).size)
    const ids = publish(all)
    await daemon.says(waits)
    limitFiles(daemon, 1)
    daemon.signal('SIGHUP')
    await daemon.says(line => waits(line) && daemon.lines().filter(waits).length > 1)
    limitFiles(daemon, undefined)
    await recovers(all, ids)
  })
})

test('a daemon whose file becomes read-only waits when it next opens it, and continues once the file is writable', async context => {
  const all = await settled(context, AS_OTHERS)
  const { place, daemon } = all
  chmodSync(place.file, 0o400)
  daemon.signal('SIGHUP')
  const line = await daemon.says(waits)
  expect(line['reason']).toContain('no permission to open or write it')
  expect((await daemon.ask('/readyz')).status).toBe(503)
  const status = JSON.parse((await daemon.ask('/status')).body)
  expect(status.daemon).toMatchObject({ state: 'waiting' })
  expect(status.resources).toContainEqual(expect.objectContaining({ resource: 'teams', state: 'on hold' }))
  const ids = publish(all)
  // It continues when it can write, also while the API is away.
  all.simulator.setFaults([{ kind: 'status', status: 503 }])
  chmodSync(place.file, 0o600)
  daemon.signal('SIGHUP')
  const continues = await daemon.says(({ msg }) => msg === 'The daemon continues')
  expect(continues).toMatchObject({
    level: 'info',
    code: line['error']?.code,
    duration_ms: expect.any(Number),
  })
  all.simulator.setFaults([])
  await recovers(all, ids)
})
