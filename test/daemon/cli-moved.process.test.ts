import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, type TestContext, test } from 'vitest'
import { parley } from '../cli/parley.ts'
import { placeFor, workspace } from '../cli/workspace.ts'
import { type LogLine, loaded, seen, startDaemon } from './cli-daemon.ts'

const waits = ({ msg }: LogLine) => msg === 'The daemon waits and tries again'

async function settled(context: TestContext) {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  const daemon = startDaemon(context, place)
  await loaded(place.file)
  const publish = () => simulator.apply({ kind: 'publish', resource: 'messages' }).ids[0] ?? ''
  const stores = (id: string) =>
    seen(place.file, id, 'SELECT id FROM message_copies WHERE id = ?', id).then(found => found === id)
  return { place, daemon, publish, stores }
}

test('a daemon whose database is moved away is not ready, creates no other, and continues once the file is back', async context => {
  const { place, daemon, publish, stores } = await settled(context)
  const elsewhere = join(place.cwd, 'elsewhere.db')
  renameSync(place.file, elsewhere)
  expect(await daemon.says(waits)).toMatchObject({ error: { code: 'database-moved' } })
  const ready = await daemon.ask('/readyz')
  expect(ready.status).toBe(503)
  expect(ready.body).toContain('was moved, deleted or replaced')
  const status = await daemon.ask('/status')
  expect({ status: status.status, error: JSON.parse(status.body).error }).toEqual({
    status: 503,
    error: ready.body.trim(),
  })
  // After another try there is still no file.
  daemon.signal('SIGHUP')
  await daemon.says(line => waits(line) && daemon.lines().filter(waits).length > 1)
  expect(existsSync(place.file)).toBe(false)
  renameSync(elsewhere, place.file)
  const id = publish()
  daemon.signal('SIGHUP')
  expect(await stores(id)).toBe(true)
  expect((await daemon.ask('/readyz')).status).toBe(200)
})

test('a daemon whose -wal is removed says so, loses no commit, and continues with a new one', async context => {
  const { place, daemon, publish, stores } = await settled(context)
  // No SIGHUP: it begins a new session, which may open the database with a new -wal before anything notices.
  const before = publish()
  expect(await stores(before)).toBe(true)
  rmSync(`${place.file}-wal`)
  expect(await daemon.says(waits)).toMatchObject({ error: { code: 'database-moved' } })
  expect((await daemon.ask('/readyz')).body).toContain(`${place.file}-wal was moved, deleted or replaced`)
  expect(await stores(before)).toBe(true)
  const id = publish()
  daemon.signal('SIGHUP')
  expect(await stores(id)).toBe(true)
  expect((await daemon.ask('/readyz')).status).toBe(200)
})

test('a daemon continues with a snapshot that replaces its database', async context => {
  const { place, daemon, publish, stores } = await settled(context)
  const copy = join(place.cwd, 'copy.db')
  expect((await parley(['snapshot', copy], place)).status).toBe(0)
  renameSync(copy, place.file)
  expect(await daemon.says(waits)).toMatchObject({ error: { code: 'database-moved' } })
  const id = publish()
  daemon.signal('SIGHUP')
  expect(await stores(id)).toBe(true)
})
