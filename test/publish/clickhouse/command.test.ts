import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { EXIT_STATUS, StopError } from '../../../src/errors.ts'
import { parley } from '../../cli/parley.ts'
import { temporaryStore } from '../../store/temporary-store.ts'
import { type ClickHouseTarget, publishToDatabase } from './publishing.ts'

const PRIVATE = 'a text of a customer'

/** A server that answers every statement with this status and text. */
async function answering(status: number, text: string): Promise<ClickHouseTarget> {
  const server = createServer((request, response) => {
    request.resume()
    request.on('end', () => response.writeHead(status).end(text))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => new Promise<void>(resolve => void server.close(() => resolve())))
  return { host: `127.0.0.1:${(server.address() as AddressInfo).port}`, database: 'lake' }
}

test.each<[status: number, text: string, says: RegExp]>([
  [
    500,
    `Code: 193, e.displayText() = DB::Exception: ${PRIVATE}`,
    /refuses the user or the password \(ClickHouse error 193\)\nhint: Check publish.clickhouse_user/,
  ],
  [
    403,
    `Code: 516. DB::Exception: ${PRIVATE} (AUTHENTICATION_FAILED)`,
    /refuses the user or the password \(ClickHouse error 516\)/,
  ],
  [
    500,
    `Code: 497. DB::Exception: ${PRIVATE} (ACCESS_DENIED)`,
    /may not write the database lake .*\nhint: The user needs SELECT, INSERT/,
  ],
  [
    500,
    `Code: 371, e.displayText() = DB::Exception: ${PRIVATE}`,
    /does not fit the tables .*\nhint: In remote_servers/,
  ],
  [
    500,
    `Code: 164, e.displayText() = DB::Exception: ${PRIVATE}`,
    /may not write the database lake: its profile allows only reading .*\nhint: Give the user a profile/,
  ],
  [
    500,
    `Code: 75, e.displayText() = DB::ErrnoException: ${PRIVATE}, strerror: No space left on device`,
    /cannot write its files: its disk may be full \(ClickHouse error 75\)\nhint: Free space/,
  ],
  [
    500,
    `Poco::Exception. Code: 1000, e.code() = 0, e.displayText() = ${PRIVATE}`,
    /refuses a statement \(ClickHouse error 1000\)\nhint: The log of the server/,
  ],
  [
    500,
    `Code: 201, e.displayText() = DB::Exception: ${PRIVATE}`,
    /allows the user no further query .*\nhint: Raise the quota/,
  ],
  [
    500,
    `Code: 252. DB::Exception: Too many parts: ${PRIVATE}`,
    /has too many parts .*\nhint: Publish less often/,
  ],
  [
    500,
    `Code: 243. DB::Exception: ${PRIVATE} (NOT_ENOUGH_SPACE)`,
    /cannot write its files: its disk may be full/,
  ],
  [500, `Code: 49. DB::Exception: ${PRIVATE} (LOGICAL_ERROR)`, /refuses a statement \(ClickHouse error 49\)/],
  [200, '', /is not that of a ClickHouse server\nhint: Check the port/],
  [200, `<html>${PRIVATE}</html>\n`, /is not that of a ClickHouse server\nhint: .* A proxy in between/],
  [400, `<html>${PRIVATE}</html>`, /is not that of a ClickHouse server\nhint: Check the port/],
])('an answer %s %s is reported with a hint, and is not quoted', async (status, text, says) => {
  const target = await answering(status, text)
  const error: unknown = await publishToDatabase(temporaryStore().path, target).catch(caught => caught)
  if (!(error instanceof StopError)) throw error
  expect(error.exitStatus).toBe(EXIT_STATUS.databaseUnavailable)
  const shown = `${error.message}\nhint: ${error.hint}`
  expect(shown).toMatch(says)
  expect(shown).not.toContain(PRIVATE)
})

test('a server that is not there, a password in the address, and --location are reported with hints', async () => {
  const database = temporaryStore().path
  const run = (...args: string[]) => parley(['publish', ...args, '--database', database])
  const away = await run('clickhouse://127.0.0.1:1/lake')
  expect(away).toMatchObject({ status: EXIT_STATUS.databaseUnavailable })
  expect(away.stderr).toMatch(/cannot be reached: ECONNREFUSED\nhint: Check the address/)
  const password = await run('clickhouse://me:pa55@127.0.0.1:1/lake')
  expect(password).toMatchObject({ status: EXIT_STATUS.usage })
  expect(password.stderr).toMatch(/has no user and no password\nhint: .*publish.clickhouse_password_file/)
  expect(password.stderr).not.toContain('pa55')
  const location = await run('clickhouse://127.0.0.1:1/lake', '--location', 'file:///lake')
  expect(location).toMatchObject({ status: EXIT_STATUS.usage })
})
