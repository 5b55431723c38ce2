import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { CATALOG } from '../../src/catalog/catalog.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { emptyFolder, parleyProcess, startParley } from '../cli/parley.ts'
import { numberedPage, refused, type ScriptedApi, startScriptedApi } from '../support/scripted-api.ts'
import { until } from '../support/until.ts'

/** A new resource is a single file. Here it is added to a copy of the source, which is built and run. */

const ROOMS = `import { resource } from '../declare/resource.ts'
import { child, entity, parent, text } from '../declare/table.ts'

const features = child('room_features', {
  about: 'What each room has.',
  list: 'features',
  items: 'scalar',
  key: ['room_id', 'feature'],
  columns: {
    room_id: parent('id', 'text', 'Room.'),
    feature: text('Feature.', { from: 'value', example: 'whiteboard' }),
  },
})

const rooms = entity('rooms', {
  about: 'Meeting rooms.',
  key: ['id'],
  columns: { id: text('Room id.'), name: text('Name of the room.') },
  children: [features],
})

export const roomsResource = resource({
  name: 'rooms',
  about: 'Meeting rooms',
  area: 'meetings',
  parents: [],
  tables: [rooms],
  feeds: {
    list: {
      mode: 'snapshot',
      list: { path: '/v1/rooms', paging: 'v1-page' },
      table: 'rooms',
      lists: 'rows',
      keyFields: ['id'],
      evidence: { by: 'single', read: { path: '/v1/rooms/{key}', placement: 'data', identity: 'id' } },
    },
  },
  status: { table: 'rooms' },
  example: { list: { id: 'room_1', name: 'Kitchen', features: ['whiteboard'] } },
})
`

const PARTS = ['src', 'drizzle', 'config', 'package.json', 'tsconfig.json']

let checkout: string

beforeAll(() => {
  const root = new URL('../../', import.meta.url).pathname
  checkout = emptyFolder()
  for (const part of PARTS) cpSync(join(root, part), join(checkout, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
  writeFileSync(join(checkout, 'src/resources/rooms.ts'), ROOMS)
  const run = (command: string, ...args: string[]) => execFileSync(command, args, { cwd: checkout })
  run('npm', 'run', 'schema', '--', 'rooms')
  run(join(root, 'node_modules/.bin/tsc'), '-p', 'src', '--noCheck')
})

interface Place {
  cwd: string
  env: Record<string, string>
  program: string
  /** The rooms that the API publishes, by id. */
  rooms: Map<string, object>
  api: ScriptedApi
  /** The first column of a query's rows. */
  column(sql: string): unknown[]
}

/** A workspace of two rooms that a backfill has read. */
async function backfilled(): Promise<Place> {
  const api = await startScriptedApi()
  const kitchen = { id: 'room_1', name: 'Kitchen', features: ['whiteboard'] }
  const rooms = new Map<string, object>([
    ['room_1', kitchen],
    ['room_2', { id: 'room_2', name: 'Attic', features: [] }],
  ])
  api.on('/v1/rooms', () => numberedPage([...rooms.values()]))
  api.on('/v1/rooms/{id}', ({ params: [id = ''] }) =>
    rooms.has(id) ? { body: { data: rooms.get(id) } } : refused(404),
  )
  const cwd = emptyFolder()
  const env = {
    PARLEY_BASE_URL: api.url,
    PARLEY_API_KEY: 'key',
    PARLEY_WORKSPACE_ID: 'workspace',
    PARLEY_SYNC_RESOURCES: 'rooms',
    PARLEY_SYNC_POLL_SECONDS: '1',
    PARLEY_SYNC_INTERVAL_SCALE: '0.0002',
    PARLEY_HTTP_LISTEN: 'off',
  }
  const program = join(checkout, 'dist/cli.js')
  const column = (sql: string): unknown[] => {
    const db = openSqlite(join(cwd, 'parley.db'), { readonly: true })
    try {
      return db.prepare(sql).pluck().all()
    } finally {
      db.close()
    }
  }
  const place = { cwd, env, program, rooms, api, column }
  expect(await parleyProcess(['backfill'], place)).toMatchObject({ status: EXIT_STATUS.done })
  return place
}

const LIVE = 'SELECT name FROM live_rooms ORDER BY 1'

test('a new resource is read, described in the database and on the page for analysts, and exported', async () => {
  const place = await backfilled()
  const { column } = place
  expect(column(LIVE)).toEqual(['Attic', 'Kitchen'])
  expect(column('SELECT feature FROM live_room_features')).toEqual(['whiteboard'])
  expect(column("SELECT state FROM sync_status WHERE resource = 'rooms'")).toEqual(['ok'])
  const described =
    "SELECT description FROM data_dictionary WHERE table_name = 'rooms' AND column_name = 'name'"
  expect(column(described)).toEqual(['Name of the room.'])
  expect(readFileSync(join(checkout, 'drizzle/README.md'), 'utf8')).toContain('\n#### rooms\n')
  const folder = join(place.cwd, 'tables')
  mkdirSync(folder)
  expect(await parleyProcess(['export', 'parquet', folder], place)).toMatchObject({
    status: EXIT_STATUS.done,
  })
  expect(existsSync(join(folder, 'rooms'))).toBe(true)
})

test('the daemon keeps a new resource up to date and marks its deleted rows', async () => {
  const { rooms, column, ...place } = await backfilled()
  const { child, ended } = startParley(['daemon'], place)
  const names = () => column(LIVE)
  const become = (awaited: readonly string[]) => until(names, found => found.join() === awaited.join())
  rooms.set('room_3', { id: 'room_3', name: 'Library', features: [] })
  expect(await become(['Attic', 'Kitchen', 'Library'])).toEqual(['Attic', 'Kitchen', 'Library'])
  rooms.delete('room_2')
  expect(await become(['Kitchen', 'Library'])).toEqual(['Kitchen', 'Library'])
  expect(column('SELECT name FROM rooms WHERE _deleted_at IS NOT NULL')).toEqual(['Attic'])
  child.kill('SIGTERM')
  expect(await ended).toMatchObject({ status: EXIT_STATUS.done })
})

test('doctor checks a new resource, and resync has all of it read again', async () => {
  const place = await backfilled()
  const { stdout } = await parleyProcess(['doctor', '--json'], place)
  const { findings } = JSON.parse(stdout)
  const checks = findings.filter(({ check }: { check: string }) => check.includes('/v1/rooms'))
  expect(checks).toMatchObject([
    { check: 'GET /v1/rooms', mark: 'ok' },
    { check: 'GET /v1/rooms/{room}', mark: 'ok' },
  ])
  expect(await parleyProcess(['resync', 'rooms'], place)).toMatchObject({ status: EXIT_STATUS.done })
  expect(place.column("SELECT state FROM sync_status WHERE resource = 'rooms'")).toEqual(['backfilling'])
  const before = place.api.asked('/v1/rooms').length
  expect(await parleyProcess(['backfill'], place)).toMatchObject({ status: EXIT_STATUS.done })
  expect(place.api.asked('/v1/rooms').length).toBeGreaterThan(before)
  expect(place.column("SELECT state FROM sync_status WHERE resource = 'rooms'")).toEqual(['ok'])
})

test('the catalogue has one resource for each file; npm run schema lists them', () => {
  const files = readdirSync(new URL('../../src/resources/', import.meta.url))
  const named = CATALOG.map(({ name }) => `${name.replaceAll('_', '-')}.ts`)
  expect(named.toSorted()).toEqual(files.toSorted())
})
