import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { openStore } from '../../src/store/store.ts'
import { parley } from './parley.ts'
import { backfilled, placeFor, type Test, workspace } from './workspace.ts'

const ACCEPT = ['accept-deletions', 'members']

/** A warehouse of 60 members, of which a backfill has held back the deletion of 25. */
async function holding(context: Test) {
  const simulator = await workspace(context, { members: 60 })
  const place = placeFor(simulator)
  // Suspicions are confirmed a second later, and the hold lasts 9 s.
  const env = { ...place.env, PARLEY_SYNC_RESOURCES: 'members', PARLEY_SYNC_INTERVAL_SCALE: '0.0001' }
  await parley(['backfill'], { ...place, env })
  simulator.apply({ kind: 'hide', resource: 'members', count: 25 })
  const held = await parley(['backfill'], { ...place, env })
  return { ...place, env, held }
}

function deletedMembers(file: string): unknown {
  const db = openSqlite(file, { readonly: true })
  const sql = 'SELECT count(*) FROM members WHERE _deleted_at IS NOT NULL'
  const count = db.prepare(sql).pluck().get()
  db.close()
  return count
}

test.concurrent('accept-deletions applies held-back deletions at once, and the resource is ok again', async context => {
  const { cwd, file, held } = await holding(context)
  expect(held.status).toBe(EXIT_STATUS.apiUnavailable)
  const said = `${held.stdout}${held.stderr}`.replaceAll(/\s+/g, ' ')
  expect(said).toContain('To delete them now: parley accept-deletions members')
  expect(said).toContain('Deletions are held back: members. If these rows still exist, check api.key')
  expect(said).not.toContain('to try the rest')
  expect(deletedMembers(file)).toBe(0)

  const accepted = await parley(ACCEPT, { cwd })
  expect(accepted).toMatchObject({ status: EXIT_STATUS.done, stderr: '' })
  expect(accepted.stdout).toContain('Deleted 25 held-back rows of members.')
  expect(deletedMembers(file)).toBe(25)
  const { stdout } = await parley(['status', '--json'], { cwd })
  const [members] = JSON.parse(stdout).resources
  expect(members).toMatchObject({ resource: 'members', state: 'ok', reason: null, rows_deleted: 25 })
  expect(await parley(['status', '--check'], { cwd })).toMatchObject({ status: 0 })
})

test.concurrent('accept-deletions reports that nothing is held back and changes nothing', async context => {
  const { cwd, file } = await backfilled(context)
  expect(await parley(ACCEPT, { cwd })).toEqual({
    status: EXIT_STATUS.done,
    stdout: 'No deletions of members are held back. Nothing was changed.\n',
    stderr: '',
  })
  expect(deletedMembers(file)).toBe(0)
})

test.concurrent('a running daemon does what accept-deletions asks for', async context => {
  const { cwd, file } = await holding(context)
  const { pid } = process
  const store = openStore({ path: file, mode: 0o600, command: 'daemon', pid, clock: systemClock() })
  const { status, stdout } = await parley(ACCEPT, { cwd })
  expect(status).toBe(EXIT_STATUS.done)
  expect(stdout.replaceAll(/\s+/g, ' ')).toMatch(
    /^Requested: apply the held-back deletions of members\. .* \(parley daemon\) .* applies the request within/,
  )
  expect(store.requests.open()).toMatchObject([{ kind: 'accept-deletions', resource: 'members' }])
  store.close()
})
