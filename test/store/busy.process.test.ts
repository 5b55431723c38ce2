import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { lockHolders } from '../../src/store/disk/lock-holders.ts'
import { parley } from '../cli/parley.ts'
import { placeFor, workspace } from '../cli/workspace.ts'
import { loaded, startDaemon } from '../daemon/cli-daemon.ts'
import { until } from '../support/until.ts'

const OTHER = fileURLToPath(new URL('other-writer.ts', import.meta.url))

/** Starts another program that holds the write lock again and again, with pauses between. */
async function busyWith(path: string, holdMs: number, pauseMs: number): Promise<void> {
  const child = spawn(process.execPath, ['--import', 'tsx', OTHER, path, `${holdMs}`, `${pauseMs}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  await once(child.stdout, 'data')
}

describe('another program that writes the database again and again', () => {
  test.each([
    [40, 10],
    [700, 100],
  ])(
    'a backfill completes while the other program writes for %i ms with pauses of %i ms',
    async (holdMs, pauseMs) => {
      const place = placeFor(await workspace({ onTestFinished }))
      // The file is ready to be opened; the rest is read while the other program writes.
      expect((await parley(['backfill', '--only', 'teams'], place)).status).toBe(EXIT_STATUS.done)
      await busyWith(place.file, holdMs, pauseMs)
      const { status, stderr } = await parley(['backfill'], place)
      expect({ status, stderr: status === EXIT_STATUS.done ? '' : stderr }).toEqual({ status: 0, stderr: '' })
    },
  )

  test('a daemon neither waits nor ends while the other program writes', async () => {
    const place = placeFor(await workspace({ onTestFinished }))
    expect((await parley(['backfill', '--only', 'teams'], place)).status).toBe(EXIT_STATUS.done)
    await busyWith(place.file, 40, 20)
    const daemon = startDaemon({ onTestFinished }, place)
    await loaded(place.file)
    expect(daemon.lines().filter(({ level }) => level === 'error')).toEqual([])
    expect((await daemon.ask('/readyz')).body).toBe('ok\n')
  })
})

/** An sqlite3 shell that was stopped, as with Ctrl-Z, while its transaction was open. */
async function stoppedShell(path: string): Promise<ChildProcess> {
  const shell = spawn('sqlite3', [path], { stdio: ['pipe', 'ignore', 'inherit'] })
  onTestFinished(() => {
    shell.kill('SIGKILL')
  })
  shell.stdin.write('.timeout 10000\nBEGIN IMMEDIATE;\n')
  const pids = () => lockHolders(path, 'writing')?.map(({ pid }) => pid)
  const { pid = 0 } = shell
  expect(await until(pids, found => found?.includes(pid) === true)).toEqual([pid])
  shell.kill('SIGSTOP')
  return shell
}

describe('a program that was stopped in a transaction', () => {
  test('a daemon that starts meanwhile names the program and waits, doctor names it too, and the daemon goes on once it is gone', async () => {
    const place = placeFor(await workspace({ onTestFinished }))
    expect((await parley(['backfill', '--only', 'teams'], place)).status).toBe(EXIT_STATUS.done)
    const shell = await stoppedShell(place.file)
    const daemon = startDaemon({ onTestFinished }, place)
    const { reason } = await daemon.says(({ msg }) => msg === 'The daemon waits and tries again')
    expect(reason).toContain(`is locked by process ${shell.pid} (sqlite3), which is stopped (SIGSTOP)`)
    expect((await daemon.ask('/readyz')).body).toContain(`kill -CONT ${shell.pid}`)
    expect((await daemon.ask('/')).body).toContain(`process ${shell.pid} (sqlite3)`)
    const { stdout } = await parley(['doctor'], place)
    expect(stdout).toMatch(
      new RegExp(`^warning +writer: .* held by process ${shell.pid} \\(sqlite3\\), which is stopped`, 'm'),
    )
    shell.kill('SIGKILL')
    await once(shell, 'exit')
    daemon.signal('SIGHUP')
    await loaded(place.file)
  })

  test('status, its --check and the page name a program that keeps the lock of a running daemon, which goes on soon after it is gone', async () => {
    const place = placeFor(await workspace({ onTestFinished }))
    const daemon = startDaemon({ onTestFinished }, place)
    await loaded(place.file)
    const shell = await stoppedShell(place.file)
    const who = `process ${shell.pid} (sqlite3), which is stopped (SIGSTOP)`
    const check = () => parley(['status', '--check'], place)
    expect(await check()).toMatchObject({
      status: 1,
      stdout: expect.stringContaining(`Another program has locked the database. The lock is held by ${who}.`),
    })
    const page = async () => (await daemon.ask('/')).body
    // The daemon names it once one of the daemon's commits has waited for a second.
    expect(await until(page, body => body.includes(who))).toContain(who)
    const waits = await daemon.says(({ msg }) => msg === 'The daemon waits and tries again')
    expect(waits).toMatchObject({ error: { code: 'database-busy' } })
    const locked = `is locked by ${who}. Continue process ${shell.pid} with kill -CONT`
    const { status, stdout } = await check()
    expect({ status, stdout }).toMatchObject({ status: 2, stdout: expect.stringContaining(locked) })
    expect(await page()).toContain(who)
    shell.kill('SIGKILL')
    await once(shell, 'exit')
    const freedAt = performance.now()
    await daemon.says(({ msg }) => msg === 'The daemon continues')
    // Without a look at the lock the next try is a minute later.
    expect(performance.now() - freedAt).toBeLessThan(30_000)
    expect((await check()).status).toBe(0)
  })
})
