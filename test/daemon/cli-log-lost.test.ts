import { execFileSync } from 'node:child_process'
import { statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { placeFor, workspace } from '../cli/workspace.ts'
import { until } from '../support/until.ts'
import { loaded, startDaemon } from './cli-daemon.ts'

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
