import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PROGRAM } from '../cli/parley.ts'
import { placeFor, silentApi, workspace } from '../cli/workspace.ts'
import { until } from '../support/until.ts'
import { column, loaded, seen, startDaemon } from './cli-daemon.ts'

const LOG_BYTES = 2 ** 30

/** The log file exceeds the file size limit of the process and the database does not, so that only the log fails. */
const WITH_FULL_LOG = ['sh', '-c', `ulimit -S -f ${LOG_BYTES / 1024} && exec "$@" 2>> parley.log`, 'sh']

test('a daemon that cannot write its log continues, and logs again once it can', async context => {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  const log = join(place.cwd, 'parley.log')
  writeFileSync(log, '')
  truncateSync(log, LOG_BYTES)
  const daemon = startDaemon(context, place, {}, WITH_FULL_LOG)
  await loaded(place.file)
  expect(statSync(log).size).toBe(LOG_BYTES)
  execFileSync('prlimit', ['--pid', String(daemon.pid), '--fsize=unlimited:'])
  const size = () => statSync(log).size
  expect(await until(size, bytes => bytes > LOG_BYTES)).toBeGreaterThan(LOG_BYTES)
  daemon.signal('SIGTERM')
  expect(await daemon.ended).toMatchObject({ status: 0 })
})

test('a backfill that cannot write its log reads everything', async context => {
  const place = placeFor(await workspace(context))
  const command = ['-c', 'exec "$@" 2> /dev/full', 'sh', process.execPath, PROGRAM, 'backfill']
  const child = spawn('sh', command, { cwd: place.cwd, env: { PATH: process.env['PATH'], ...place.env } })
  expect(await once(child, 'close')).toEqual([0, null])
  await loaded(place.file)
})

test('a daemon whose terminal is closed continues', async context => {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  // script(1) gives the daemon a terminal, which closes when script is killed.
  const command = `exec '${process.execPath}' '${PROGRAM}' daemon --listen off`
  const terminal = spawn('script', ['--quiet', '--command', command, '/dev/null'], {
    cwd: place.cwd,
    env: { PATH: process.env['PATH'], PARLEY_SYNC_POLL_SECONDS: '1', ...place.env },
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  await loaded(place.file)
  const [pid] = column(place.file, "SELECT value ->> 'pid' FROM sync_meta WHERE key = 'writer'")
  context.onTestFinished(() => void process.kill(Number(pid), 'SIGKILL'))
  terminal.kill('SIGKILL')
  await once(terminal, 'close')
  const [id = ''] = simulator.apply({ kind: 'publish', resource: 'messages' }).ids
  expect(await seen(place.file, id, 'SELECT id FROM message_copies WHERE id = ?', id)).toBe(id)
})

test('a backfill whose terminal is closed ends with 75', async context => {
  const silent = await silentApi(context)
  const place = placeFor(silent)
  // The shell survives the end of its terminal, and notes the exit status.
  const command = `trap '' HUP; '${process.execPath}' '${PROGRAM}' backfill; echo $? > status`
  const terminal = spawn('script', ['--quiet', '--command', command, '/dev/null'], {
    cwd: place.cwd,
    env: { PATH: process.env['PATH'], ...place.env },
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  await silent.asked
  const [pid] = column(place.file, "SELECT value ->> 'pid' FROM sync_meta WHERE key = 'writer'")
  terminal.kill('SIGKILL')
  await once(terminal, 'close')
  process.kill(Number(pid), 'SIGHUP')
  const noted = join(place.cwd, 'status')
  const status = () => (existsSync(noted) ? readFileSync(noted, 'utf8') : '')
  expect(await until(status, text => text.endsWith('\n'))).toBe('75\n')
})
