import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { clockText } from '../../src/terminal/wording.ts'
import { type Place, placeFor, silentApi, workspace } from '../cli/workspace.ts'
import { until } from '../support/until.ts'
import { column, loaded, runCommand, seen, startDaemon } from './cli-daemon.ts'

describe('a daemon that receives SIGTERM', () => {
  test('the daemon ends with 0 and leaves a file that can be read without writing', async context => {
    const place = placeFor(await workspace(context))
    const daemon = startDaemon(context, place)
    await loaded(place.file)
    daemon.signal('SIGTERM')
    expect(await daemon.ended).toMatchObject({ status: 0 })
    expect(['-wal', '-shm'].map(suffix => existsSync(place.file + suffix))).toEqual([true, true])
    const db = openSqlite(place.file, { readonly: true })
    const count = (sql: string) => db.prepare(sql).pluck().get()
    expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
    expect(count('SELECT count(*) FROM live_messages')).toBeGreaterThan(0)
    expect(count('SELECT count(*) FROM sync_runs WHERE ended_at IS NULL')).toBe(0)
    db.close()
  })

  test('a daemon that is stopped during its first backfill ends with 0, and the next one continues', async context => {
    const slow = await workspace(context, { latencyMs: 200 })
    const place = placeFor(slow)
    const first = startDaemon(context, place)
    await until(
      () => column(place.file, 'SELECT count(*) FROM activities')[0],
      count => Number(count) > 0,
    )
    first.signal('SIGTERM')
    expect(await first.ended).toMatchObject({ status: 0 })
    const teams = slow.requests.count('/v1/teams')
    startDaemon(context, place)
    await loaded(place.file)
    // A list that was read to its end is not read again.
    expect(slow.requests.count('/v1/teams')).toBe(teams)
  })

  test('a second SIGTERM ends the daemon at once with 75, and the next one continues', async context => {
    const silent = await silentApi(context)
    const place = placeFor(silent)
    const daemon = startDaemon(context, place)
    await silent.asked
    // The first signal waits for requests in flight; the second ends the daemon at once. Two that are pending at once are
    // one, and a third would kill a process that is about to end.
    daemon.signal('SIGTERM')
    await until(
      () => readFileSync(`/proc/${daemon.pid}/status`, 'utf8'),
      status => /^ShdPnd:\s*0+$/m.test(status),
    )
    daemon.signal('SIGTERM')
    expect(await daemon.ended).toMatchObject({ status: 75 })
    const { url } = await workspace(context)
    startDaemon(context, place, { PARLEY_BASE_URL: url })
    await loaded(place.file)
    expect(await seen(place.file, 'ok', 'PRAGMA integrity_check')).toBe('ok')
  })
})

describe('while a daemon runs', () => {
  test.for(['daemon', 'backfill'])(
    'a %s ends with 75 and names the writer and the time since when it writes',
    async (command, context) => {
      const place = placeFor(await workspace(context))
      const daemon = startDaemon(context, place)
      await loaded(place.file)
      const { status, stderr } = await runCommand(place, [command])
      const writer = JSON.parse(
        String(column(place.file, "SELECT value FROM sync_meta WHERE key = 'writer'")[0]),
      )
      expect(status).toBe(75)
      expect(stderr).toContain(
        `process ${daemon.pid} (parley daemon) since ${clockText(writer.since, Date.now())}`,
      )
      expect(daemon.lines().filter(({ level }) => level === 'error')).toEqual([])
    },
  )

  test('a daemon with the same settings does not complain about a taken port', async context => {
    const place = placeFor(await workspace(context))
    const daemon = startDaemon(context, place)
    const { address } = await daemon.says(({ msg }) => msg === 'The status server listens')
    const second = startDaemon(context, place, { PARLEY_HTTP_LISTEN: String(address) })
    const { status, stderr } = await second.ended
    expect(status).toBe(75)
    expect(stderr).not.toContain('status server')
  })

  test('parley status says that the daemon writes, and afterwards how it ended', async context => {
    const place = placeFor(await workspace(context))
    const status = async () => (await runCommand(place, ['status'])).stdout
    const daemon = startDaemon(context, place)
    await loaded(place.file)
    expect(await status()).toContain(`parley daemon, process ${daemon.pid}, is writing the warehouse.`)
    expect(await status()).toContain('The daemon has been running for')
    daemon.signal('SIGTERM')
    await daemon.ended
    expect(await status()).toMatch(/^The daemon stopped .* on request\.$/m)
    const other = startDaemon(context, place)
    await other.says(({ msg }) => msg === 'Run ended')
    other.signal('SIGKILL')
    await other.ended
    expect(await status()).toContain('was killed, or the machine or disk failed')
  })
})

interface PlaceWithKey extends Place {
  keyFile: string
}

/** A place with its key in a file. */
function placeWithKey(...from: Parameters<typeof placeFor>): PlaceWithKey {
  const place = placeFor(...from)
  const keyFile = join(place.cwd, 'key')
  const { PARLEY_API_KEY: key = '', ...env } = place.env
  writeFileSync(keyFile, key, { mode: 0o600 })
  return { ...place, env: { ...env, PARLEY_API_KEY_FILE: keyFile }, keyFile }
}

describe('an API key', () => {
  test('a key that is wrong from the start ends the daemon with 77 after one request', async context => {
    const simulator = await workspace(context)
    const place = placeWithKey(simulator)
    writeFileSync(place.keyFile, 'another-key')
    const { status, stderr } = await startDaemon(context, place).ended
    expect(status).toBe(77)
    expect(stderr).toContain('Invalid API key')
    expect(stderr).toContain('hint: ')
    expect(stderr).not.toContain('another-key')
    expect(simulator.requests.total()).toBe(1)
  })

  const REFUSED =
    /The API at \S+ refuses the key from \S+key \(environment PARLEY_API_KEY_FILE\) \(workspace \S+\): .+ Write the new key to \S+key \(environment PARLEY_API_KEY_FILE\)\./

  test('a revoked key stops every lane, and the new key is read from the file', async context => {
    const simulator = await workspace(context)
    const place = placeWithKey(simulator)
    const daemon = startDaemon(context, place)
    await loaded(place.file)
    simulator.setApiKey('successor-key')
    const waits = await daemon.says(({ msg }) => msg === 'The daemon waits and tries again')
    expect(waits).toMatchObject({ level: 'error', reason: expect.stringMatching(REFUSED), wait_ms: 60_000 })
    const asked = simulator.requests.total()
    const ready = await daemon.ask('/readyz')
    expect(ready.status).toBe(503)
    expect(ready.body).toMatch(new RegExp(`^waiting since [-\\d]* ?[\\d:]+ UTC: ${REFUSED.source}\n$`))
    expect((await daemon.ask('/livez')).status).toBe(200)
    const status = (await runCommand(place, ['status'])).stdout
    expect(status).toMatch(
      /^Needs you since .+ UTC: The API refuses the key\. The API at .+ Write the new key to /,
    )
    expect(status).toMatch(/\nThe daemon has been waiting for .+\. It resumes in /)
    expect(status.match(new RegExp(REFUSED.source, 'g'))).toHaveLength(1)
    expect(simulator.requests.total()).toBe(asked)

    writeFileSync(place.keyFile, 'successor-key')
    daemon.signal('SIGHUP')
    const changed = await daemon.says(({ msg }) => msg.startsWith('A setting has changed'))
    expect(changed).toMatchObject({ setting: 'api.key' })
    const [id = ''] = simulator.apply({ kind: 'publish', resource: 'messages' }).ids
    expect(await seen(place.file, id, 'SELECT id FROM message_copies WHERE id = ?', id)).toBe(id)
    expect((await daemon.ask('/readyz')).status).toBe(200)
    await daemon.says(({ msg, code }) => msg === 'The daemon continues' && code === 'unauthorized')
    expect(JSON.stringify(daemon.lines())).not.toContain('successor-key')
  })
})
