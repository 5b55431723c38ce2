import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/errors.ts'
import { parley } from './parley.ts'
import { placeFor, workspace } from './workspace.ts'

function contents(file: string): Record<string, unknown[]> {
  const db = new Database(file, { readonly: true })
  const tables = [
    'messages',
    'message_copies',
    'meetings',
    'transcript_entries',
    'playbook_results',
    'access_logs',
  ]
  const rows = Object.fromEntries(
    tables.map(table => [table, db.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all()]),
  )
  db.close()
  return rows
}

const BODY = '/v2/messages/{messageId}'
const TRANSCRIPT = '/v1/meetings/{meetingId}/transcript'

test.concurrent.for([
  ['message_bodies', BODY, 'Marked message_bodies to be read again'],
  ['messages', BODY, 'Marked messages and with it message_bodies, to be read again'],
  ['transcripts', TRANSCRIPT, 'Marked transcripts to be read again'],
  ['meetings', TRANSCRIPT, 'Marked meetings and with it transcripts and playbook_results, to be read'],
] as const)(
  'after resync %s the next backfill reads it all again, and no row is lost or written',
  async ([resource, route, says], context) => {
    const simulator = await workspace(context)
    const place = placeFor(simulator)
    await parley(['backfill'], place)
    const first = simulator.requests.count(route, 200)
    const before = contents(place.file)
    simulator.requests.clear()

    const { status, stdout } = await parley(['resync', resource], { cwd: place.cwd })
    expect(status).toBe(EXIT_STATUS.done)
    expect(stdout).toContain(says)
    expect(stdout).toContain('No row was dropped')
    expect(contents(place.file)).toEqual(before)
    const marked = await parley(['status'], { cwd: place.cwd })
    expect(marked.stdout).toMatch(new RegExp(`\\n${resource} +backfilling `))

    expect(await parley(['backfill'], place)).toMatchObject({ status: EXIT_STATUS.done })
    expect(simulator.requests.count(route, 200)).toBe(first)
    expect(contents(place.file)).toEqual(before)
    const read = await parley(['status'], { cwd: place.cwd })
    expect(read.stdout).not.toMatch(/backfilling/)
  },
)

test.concurrent('after resync access_logs the log is read again from its beginning', async context => {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  const route = '/v1/public-api-access-logs'
  await parley(['backfill'], place)
  const first = simulator.requests.count(route)
  const before = contents(place.file)
  await parley(['resync', 'access_logs'], { cwd: place.cwd })
  simulator.requests.clear()
  await parley(['backfill'], place)
  // Without it only the last hour or two would be read; how the hours fall is the clock's doing.
  expect(simulator.requests.count(route)).toBeGreaterThanOrEqual(first)
  expect(contents(place.file)).toEqual(before)
})

test.concurrent('an unknown resource is wrong usage and told with the nearest name', async context => {
  const place = placeFor(await workspace(context))
  expect(await parley(['resync', 'meating'], place)).toEqual({
    status: EXIT_STATUS.usage,
    stdout: '',
    stderr: expect.stringMatching(
      /^parley: There is no resource: "meating"\nhint: Did you mean meetings\? The resources are members, /,
    ),
  })
})
