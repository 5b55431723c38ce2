import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, expect, type TestContext, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { type SimulatorOptions, startSimulator } from '../../src/simulator/server.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { lockDatabase } from '../../src/store/file/lock.ts'
import { type Ended, emptyFolder, parley } from '../cli/parley.ts'
import { createCertificate, serveTlsTo, startConnectProxy } from '../support/connect-proxy.ts'
import { requirePrograms } from '../systemd/tools.ts'
import { type Place, placeFor, serveAnswers, serveWorkspace, startWorkspace } from './api-server.ts'

const LOG = '/v1/public-api-access-logs'

interface Finding {
  mark: string
  check: string
  found: string
  hint?: string
  status?: number
}

/** The made-up service's clock is this machine's, or doctor would warn of it. */
async function place(context: TestContext, options: SimulatorOptions = {}): Promise<Place> {
  return placeFor(await serveWorkspace({ now: 'real', ...options }, context))
}

async function doctor({ cwd, env, file }: Place, args: readonly string[] = []): Promise<Ended> {
  const ended = await parley(['doctor', '--database', file, ...args], { cwd, env })
  expect(ended.stdout + ended.stderr).not.toContain(env['PARLEY_API_KEY'])
  return ended
}

async function findings(around: Place, args: readonly string[] = []): Promise<Finding[]> {
  const { stdout } = await doctor(around, ['--json', ...args])
  return JSON.parse(stdout).findings
}

/** Filled once: each test has a copy of its own, and the same service. */
let filled: Place

beforeAll(async () => {
  requirePrograms('sqlite3')
  const simulator = await startWorkspace({ now: 'real' })
  filled = placeFor(simulator)
  const { cwd, env, file } = filled
  const ended = await parley(['backfill', '--database', file, '--log-level', 'silent'], { cwd, env })
  expect(ended.status).toBe(0)
  return () => simulator.close()
})

function backfilled(): Place {
  const cwd = emptyFolder()
  cpSync(filled.cwd, cwd, { recursive: true })
  return { cwd, file: join(cwd, basename(filled.file)), env: filled.env }
}

/** For an API that never answers. */
const SOON = ['--give-up-seconds', '1']

const digestOf = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex')

const wrong = (all: readonly Finding[]) => all.filter(({ mark }) => mark === 'wrong')
const warnings = (all: readonly Finding[]) => all.filter(({ mark }) => mark === 'warning')

test.concurrent('before the first backfill doctor finds no problem and writes nothing', async context => {
  const around = await place(context)
  const { status, stdout, stderr } = await doctor(around)
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toContain(
    `note     database: ${around.file} does not exist yet\n         → parley backfill or parley daemon creates it.\n`,
  )
  expect(stdout).toMatch(
    /\nNo problems found\.\nNext: parley backfill --plan estimates the requests and time; /,
  )
  expect(readdirSync(around.cwd)).toEqual([])
})

test.concurrent('doctor requests every endpoint of the API once', async context => {
  const simulator = await serveWorkspace({ now: 'real' }, context)
  const all = await findings(placeFor(simulator))
  const endpoints = all.filter(({ check }) => check.startsWith('GET '))
  expect(endpoints.map(({ mark }) => mark)).not.toContain('wrong')
  expect(endpoints).toHaveLength(24)
  expect(simulator.requests.total()).toBe(25)
  expect(all.find(({ check }) => check === 'GET /v1/public-api-access-logs')).toMatchObject({
    mark: 'ok',
    found: '200, and ?to= ends a period',
  })
})

test.concurrent('after a backfill doctor checks the database too and does not change it', async () => {
  const around = backfilled()
  // Every reader marks its place in the -shm file.
  const contents = () =>
    readdirSync(around.cwd).map(name => [name, name.endsWith('-shm') || digestOf(join(around.cwd, name))])
  const before = contents()
  const all = await findings(around)
  expect(wrong(all)).toEqual([])
  for (const check of ['database', 'database mode', 'schema', 'integrity', 'references', 'writer']) {
    expect(all).toContainEqual(expect.objectContaining({ mark: 'ok', check }))
  }
  expect(contents()).toEqual(before)
})

test.concurrent('doctor reports all wrong settings at once and still checks the database', async () => {
  const cwd = emptyFolder()
  const env = { PARLEY_API_KEY: 'hush-hush', PARLEY_API_MAX_CONCURRENCY: 'many' }
  const { status, stdout } = await parley(['doctor'], { cwd, env })
  expect(status).toBe(EXIT_STATUS.settings)
  expect(stdout.match(/^WRONG {4}settings: /gm)).toHaveLength(3)
  expect(stdout).not.toContain('hush-hush')
  const lacking = await parley(['doctor', '--json'], { cwd })
  expect(lacking.status).toBe(EXIT_STATUS.settings)
  const checks = (JSON.parse(lacking.stdout).findings as Finding[]).map(({ check }) => check)
  expect(checks).toContain('disk space')
})

test.concurrent('a refused key is reported once, and after one more route no further request is sent', async context => {
  const simulator = await serveWorkspace({}, context)
  const around = placeFor(simulator)
  simulator.setApiKey('another')
  const { status, stdout } = await doctor(around)
  expect(status).toBe(EXIT_STATUS.refused)
  expect(stdout).toMatch(
    /\nWRONG {4}key: The API at http\S+ refuses the key from environment PARLEY_API_KEY .+\n {9}→ The key is wrong, expired or revoked, .+ Set PARLEY_API_KEY to the new key, and start parley again\.\n/,
  )
  expect(stdout.match(/^WRONG/gm)).toHaveLength(1)
  expect(simulator.requests.total()).toBe(2)
})

test.concurrent.for([403, 404] as const)(
  'a workspace that answers every request with %i is reported once',
  async (refused, context) => {
    const around = await place(context, { foreignWorkspaceStatus: refused })
    around.env['PARLEY_WORKSPACE_ID'] = 'someone-elses'
    const { status, stdout } = await doctor(around)
    expect(status).toBe(EXIT_STATUS.refused)
    expect(stdout).toMatch(
      new RegExp(`WRONG {4}workspace: the API at http\\S+ answers ${refused} to all .+ someone-elses`),
    )
    expect(stdout.match(/^WRONG/gm)).toHaveLength(1)
  },
)

test.concurrent('an unreachable API ends doctor with the exit status of a backfill', async () => {
  const gone = await startSimulator({ messages: 1 })
  await gone.close()
  const { status, stdout } = await doctor(placeFor(gone), SOON)
  expect(status).toBe(EXIT_STATUS.apiUnavailable)
  expect(stdout).toMatch(
    /\nWRONG {4}API: No usable answer from http\S+: The API cannot be reached: connection refused\n {9}→ Check api\.base_url, /,
  )
})

test.concurrent('a resource that the workspace does not offer is not a problem', async context => {
  const around = await place(context, {
    securityOption: false,
    botConfigured: false,
    integrations: false,
  })
  const all = await findings(around)
  const notOffered = all.filter(({ found }) => found.includes('not offered'))
  expect(notOffered.map(({ mark, check }) => [mark, check])).toEqual([
    ['note', 'GET /v1/bot-definition'],
    ['note', 'GET /v1/settings/integrations'],
    ['note', 'GET /v1/public-api-access-logs'],
  ])
  expect(wrong(all)).toEqual([])
})

test.concurrent('a refusing endpoint is named with a hint', async context => {
  const around = await place(context, {
    faults: [{ kind: 'status', status: 403, route: '/v2/messages' }],
  })
  const { status, stdout } = await doctor(around)
  expect(status).toBe(EXIT_STATUS.apiUnavailable)
  expect(stdout).toMatch(/\nWRONG {4}GET \/v2\/messages: 403: .+\n {9}→ .*--skip/)
  expect(stdout).toContain('note     GET /v2/messages/{message}: not checked')
})

test.concurrent.for([
  ['/v1/members', 'the first endpoint'],
  ['/v2/messages', 'an endpoint'],
  ['/v1/public-api-access-logs', 'the access log'],
] as const)('a 401 of %s alone is a fault of %s, since others accept the key', async ([route], context) => {
  const around = await place(context, { faults: [{ kind: 'status', status: 401, route }] })
  const all = await findings(around)
  expect(wrong(all)).toEqual([
    expect.objectContaining({
      check: `GET ${route}`,
      found: expect.stringMatching(/^401: /),
      hint: expect.stringContaining('The API accepts the key elsewhere.'),
      status: EXIT_STATUS.apiUnavailable,
    }),
  ])
  expect(all).toContainEqual(expect.objectContaining({ check: 'key', mark: 'ok' }))
})

test.concurrent('a key that is refused by one endpoint after another is refused', async context => {
  const routes = ['/v2/messages', '/v2/messages/{id}', '/v2/activities', '/v1/meetings'] as const
  const around = await place(context, {
    faults: routes.map(route => ({ kind: 'status', status: 401, route }) as const),
  })
  expect(wrong(await findings(around))).toContainEqual(
    expect.objectContaining({ check: 'key', status: EXIT_STATUS.refused }),
  )
})

test.concurrent('a hint that several findings share is printed once', async context => {
  const routes = ['/v2/messages', '/v2/activities', '/v1/members'] as const
  const around = await place(context, {
    faults: routes.map(route => ({ kind: 'status', status: 403, route }) as const),
  })
  const { stdout } = await doctor(around)
  expect(stdout.match(/^WRONG/gm)).toHaveLength(3)
  expect(stdout.match(/Ask an administrator/g)).toHaveLength(1)
})

test.concurrent('doctor tests the name of the parameter that ends an access-log period', async context => {
  const around = await place(context, { accessLogEndParameter: 'until' })
  const [found] = wrong(await findings(around))
  expect(found).toMatchObject({
    found: 'the API does not accept ?to= as the end of a period',
    hint: expect.stringContaining('access_log.end_parameter'),
    status: EXIT_STATUS.apiUnavailable,
  })
  expect(wrong(await findings(around, ['--access-log-end-parameter', 'until']))).toEqual([])
})

test.concurrent('a failed request is no sign that the API does not accept the parameter that ends a period', async context => {
  const faults = [{ kind: 'status', status: 500, route: LOG, requestHas: 'to=' }] as const
  const [found] = wrong(await findings(await place(context, { faults })))
  expect(found).toMatchObject({ check: `GET ${LOG}`, found: expect.stringContaining('500') })
})

test.concurrent('a response of another shape is described by its fields, never by its values', async context => {
  const scripted = await serveAnswers(({ url }, response) => {
    response.setHeader('content-type', 'application/json')
    const isMembers = url?.startsWith('/v1/members')
    response.statusCode = isMembers ? 200 : 404
    response.end(JSON.stringify(isMembers ? { members: ['someone'], paging: {} } : { message: 'Not Found' }))
  }, context)
  const { status, stdout } = await doctor(placeFor(scripted))
  expect(status).toBe(EXIT_STATUS.apiUnavailable)
  expect(stdout).toContain(
    'WRONG    GET /v1/members: The answer has the wrong form: expected an object with a list in data, found an object with members, paging\n',
  )
  expect(stdout).not.toContain('someone')
})

test.concurrent('a wrong clock is a warning, and warnings do not change the exit status', async context => {
  const around = await place(context, { now: '2026-01-01T00:00:00Z' })
  const all = await findings(around)
  expect(warnings(all)).toContainEqual(expect.objectContaining({ check: 'clock' }))
  expect((await doctor(around)).status).toBe(0)
})

test.concurrent('a missing database folder ends doctor with status 73', async context => {
  const around = await place(context)
  const { status, stdout } = await doctor({ ...around, file: join(around.cwd, 'nowhere', 'parley.db') })
  expect(status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(stdout).toMatch(/\nWRONG {4}database folder: .*nowhere does not exist\n {9}→ Create it /)
})

test.concurrent('a folder and a database that other users may change or read are warnings', async () => {
  const around = backfilled()
  chmodSync(around.file, 0o644)
  chmodSync(around.cwd, 0o777)
  const found = warnings(await findings(around))
  expect(found.map(({ check }) => check)).toEqual(['database folder', 'database mode'])
})

test.concurrent('a database with a second hard link is a problem', async () => {
  const around = backfilled()
  linkSync(around.file, join(around.cwd, 'backup.db'))
  expect(wrong(await findings(around))).toMatchObject([
    { check: 'name', found: expect.stringContaining('2 names'), status: EXIT_STATUS.databaseUnavailable },
  ])
})

test.concurrent('broken references in a table that parley did not create are a note, not a problem', async () => {
  const around = backfilled()
  const analyst = openSqlite(around.file)
  analyst.pragma('foreign_keys = OFF')
  analyst.exec(
    "CREATE TABLE my_notes (meeting REFERENCES meetings (id)); INSERT INTO my_notes VALUES ('nowhere')",
  )
  analyst.close()
  const all = await findings(around)
  expect(wrong(all)).toEqual([])
  expect(all).toContainEqual(
    expect.objectContaining({
      mark: 'note',
      check: 'references',
      found: 'my_notes: 1 row refers to missing rows; parley did not create this table',
    }),
  )
})

test.concurrent('a database that parley did not create is reported and not changed', async context => {
  const around = await place(context)
  openSqlite(around.file).exec('CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)').close()
  const before = readFileSync(around.file)
  const { status, stdout } = await doctor(around)
  expect(status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(stdout).toMatch(/\nWRONG {4}database: .* is a SQLite database, but parley did not create it\n/)
  expect(readFileSync(around.file)).toEqual(before)
})

test.concurrent('a damaged database is reported', async () => {
  const around = backfilled()
  const db = openSqlite(around.file)
  db.pragma('wal_checkpoint(TRUNCATE)')
  const size = db.pragma('page_size', { simple: true }) as number
  const pages = db.prepare("SELECT pageno FROM dbstat WHERE name = 'access_logs'").pluck().all() as number[]
  db.close()
  // Of a table that nobody reads at the start, so that it still opens.
  const bytes = readFileSync(around.file)
  for (const page of pages) bytes.fill(0xa5, (page - 1) * size, (page - 1) * size + size / 2)
  writeFileSync(around.file, bytes)
  const { status, stdout } = await doctor(around)
  expect(status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(stdout).toMatch(/\nWRONG {4}integrity: not checked: it is damaged \(SQLITE_CORRUPT\w*\)\n/)
})

test.concurrent('a damaged search index is reported as such, and not as a damaged warehouse', async () => {
  const around = backfilled()
  const db = openSqlite(around.file)
  db.unsafeMode(true)
  db.exec("UPDATE search_transcripts_data SET block = x'a5a5a5a5a5a5a5a5' WHERE id > 10")
  db.close()
  const { status, stdout } = await doctor(around)
  expect(status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(stdout).toMatch(
    /\nWRONG {4}integrity: .*a full-text index of the search is damaged, the rows are not/,
  )
})

test.concurrent('an index that lacks rows is reported with the statement that builds it again', async () => {
  const around = backfilled()
  const db = openSqlite(around.file)
  db.unsafeMode(true)
  db.pragma('writable_schema = ON')
  const schema = "FROM sqlite_master WHERE name = 'team_members_by_member'"
  const [row] = db.prepare(`SELECT * ${schema}`).all() as { sql: string; rootpage: number }[]
  db.exec(`DELETE ${schema}`)
  db.close()
  const without = openSqlite(around.file)
  without.exec("INSERT INTO team_members (team_id, member_id) SELECT id, 'new' FROM teams")
  without.unsafeMode(true)
  without.pragma('writable_schema = ON')
  without
    .prepare("INSERT INTO sqlite_master VALUES ('index', 'team_members_by_member', 'team_members', ?, ?)")
    .run(row?.rootpage, row?.sql)
  without.close()
  const integrity = async () => (await findings(around)).find(({ check }) => check === 'integrity')
  const found = await integrity()
  expect(found).toMatchObject({
    mark: 'wrong',
    found: 'the index team_members_by_member does not fit its table',
  })
  const [, file = '', sql = ''] = /sqlite3 (\S+) '(.*)'$/.exec(found?.hint ?? '') ?? []
  const again = openSqlite(file)
  again.exec(sql)
  again.close()
  expect(await integrity()).toMatchObject({ mark: 'ok' })
})

test.concurrent('a missing index is reported with the command that creates it', async () => {
  const around = backfilled()
  const db = openSqlite(around.file)
  db.exec('DROP INDEX messages_by_time; DROP INDEX messages_key; DROP INDEX meetings_transcript_pending')
  db.close()
  const schemaOf = async () => (await findings(around)).filter(({ check }) => check === 'schema')
  const [, ...missing] = await schemaOf()
  expect(missing).toHaveLength(3)
  // Without the unique one, writes fail.
  expect(missing).toContainEqual(
    expect.objectContaining({ mark: 'wrong', found: 'the index messages_key is missing' }),
  )
  expect(missing).toContainEqual(
    expect.objectContaining({ mark: 'note', found: 'the index messages_by_time is missing' }),
  )
  for (const { hint } of missing) {
    const [command = ''] = /sqlite3 .*/.exec(hint ?? '') ?? []
    const { status, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8' })
    expect({ command, status, stderr }).toEqual({ command, status: 0, stderr: '' })
  }
  expect(await schemaOf()).toHaveLength(1)
})

test.concurrent('a database of a newer version is reported as such', async () => {
  const around = backfilled()
  const db = openSqlite(around.file)
  db.exec("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('later', 9999999999999)")
  db.close()
  const { status, stdout } = await doctor(around)
  expect(status).toBe(EXIT_STATUS.databaseUnavailable)
  expect(stdout).toContain('was written by a newer version of parley')
})

test.concurrent('the process that holds the lock is named and keeps the lock', async context => {
  const around = backfilled()
  const lock = lockDatabase(around.file, systemClock(), 0o600)
  context.onTestFinished(() => lock.release())
  const all = await findings(around)
  expect(all.find(({ check }) => check === 'writer')).toMatchObject({
    mark: 'note',
    found: expect.stringContaining(`process ${process.pid} holds the lock`),
  })
  expect(wrong(all)).toEqual([])
})

test.concurrent('with several problems the exit status is that of the one a backfill would meet first', async context => {
  const simulator = await serveWorkspace({}, context)
  const around = placeFor(simulator)
  simulator.setApiKey('another')
  mkdirSync(around.file)
  expect((await doctor(around)).status).toBe(EXIT_STATUS.databaseUnavailable)
})

test.concurrent('doctor says through which proxy it went, and checks the certificate of the API behind it', async context => {
  const simulator = await serveWorkspace({}, context)
  const certificate = createCertificate(['api.example.test'], context.onTestFinished)
  const to = await serveTlsTo(certificate, Number(new URL(simulator.url).port), context.onTestFinished)
  const { url, asked } = await startConnectProxy({ to, login: 'user:hush' }, context.onTestFinished)
  const around = placeFor({ ...simulator, url: 'https://api.example.test' })
  const env = { ...around.env, https_proxy: '', HTTPS_PROXY: ` ${url.replace('//', '//user:hush@')} ` }
  const refused = await doctor({ ...around, env: { ...env, NODE_TLS_REJECT_UNAUTHORIZED: '0' } }, SOON)
  expect(refused.status).toBe(EXIT_STATUS.apiUnavailable)
  expect(refused.stdout).toMatch(
    /^warning +certificates: NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored.*\n.*NODE_EXTRA_CA_CERTS/m,
  )
  expect(refused.stdout).toMatch(
    /is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\); for one of your company, name its file by NODE_EXTRA_CA_CERTS/,
  )
  const { status, stdout } = await doctor({
    ...around,
    env: { ...env, NODE_EXTRA_CA_CERTS: certificate.file },
  })
  expect(status).toBe(EXIT_STATUS.done)
  expect(stdout).toContain(`proxy: requests to the API go through ${url} (HTTPS_PROXY)\n`)
  expect(new Set(asked.map(({ target }) => target))).toEqual(new Set(['api.example.test:443']))
  expect(refused.stdout + stdout).not.toContain('hush')
})

test.concurrent('doctor tells a proxy that asks for a password from an API that is down', async context => {
  const { url } = await startConnectProxy({ to: 1, login: 'user:hush' }, context.onTestFinished)
  const around = placeFor({ url: 'http://api.example.test', apiKey: 'hidden-1', workspaceId: 'acme' })
  const { status, stdout } = await doctor({ ...around, env: { ...around.env, HTTP_PROXY: url } }, SOON)
  expect(status).toBe(EXIT_STATUS.apiUnavailable)
  expect(stdout).toContain(
    `The API cannot be reached: the proxy ${url} (HTTP_PROXY) asks for a user name and password (HTTP 407)\n         → Correct the user name and password of the proxy in HTTP_PROXY. `,
  )
})

test.concurrent('doctor suggests https for an address without TLS whose port speaks it', async context => {
  const certificate = createCertificate(['localhost'], context.onTestFinished)
  const port = await serveTlsTo(certificate, 1, context.onTestFinished)
  const around = placeFor({ url: `http://localhost:${port}`, apiKey: 'hidden-1', workspaceId: 'acme' })
  const { status, stdout } = await doctor(around, SOON)
  expect(status).toBe(EXIT_STATUS.apiUnavailable)
  expect(stdout).toContain('→ If the API speaks TLS at this port, use https:// in api.base_url')
})

test.concurrent('doctor reaches the API on loopback without the proxy, and says so', async context => {
  const around = await place(context)
  const env = { ...around.env, PARLEY_API_PROXY: 'proxy.invalid:3128' }
  const [finding] = (await findings({ ...around, env })).filter(({ check }) => check === 'proxy')
  expect(finding).toMatchObject({ mark: 'note', found: expect.stringMatching(/^not used for http:\/\/127/) })
  expect((await findings(around)).filter(({ check }) => check === 'proxy')).toEqual([])
})

test.concurrent('doctor warns of an address on which the daemon would not listen without a token', async context => {
  const around = await place(context)
  const open = { ...around, env: { ...around.env, PARLEY_HTTP_LISTEN: '0.0.0.0:8787' } }
  const { status, stdout } = await doctor(open)
  expect(status).toBe(EXIT_STATUS.done)
  expect(stdout).toMatch(
    /^warning +status server: .+ other machines can reach 0\.0\.0\.0 and http\.token is not set\n +→ Set http\.token, or listen on 127\.0\.0\.1 in http\.listen\.$/m,
  )
  const token = 'a-token-of-the-status-server'
  const closed = await doctor({ ...open, env: { ...open.env, PARLEY_HTTP_TOKEN: token } })
  expect(closed.stdout).not.toMatch(/status server|a-token/)
})

test.concurrent('doctor sends requests no faster than the rate that the warehouse has learned', async context => {
  const simulator = await serveWorkspace(
    { now: 'real', limit: { kind: 'token-bucket', rate: 20, burst: 2 } },
    context,
  )
  const around = { ...backfilled(), env: placeFor(simulator).env }
  const db = openSqlite(around.file)
  db.prepare("UPDATE sync_meta SET value = ? WHERE key = 'learned_rate'").run(
    JSON.stringify({ ratePerSecond: 15, concurrency: 4, limited: true }),
  )
  db.close()
  expect((await doctor(around)).stderr).toBe('')
  expect(simulator.requests.count(undefined, 429)).toBe(0)
})

test.concurrent('doctor stays below the daily ceiling and warns that the remaining endpoints were not checked', async context => {
  const simulator = await serveWorkspace({ now: 'real' }, context)
  const around = placeFor(simulator)
  const ceiling = ['--max-requests-per-day', '5']
  const [line] = (await findings(around, ceiling)).filter(({ check }) => check === 'requests')
  expect(line).toMatchObject({ mark: 'warning', found: expect.stringContaining('api.max_requests_per_day') })
  expect(simulator.requests.total()).toBe(5)
  const day = new Date(systemClock().now()).toISOString().slice(0, 10)
  const backfill = ['backfill', '--only', 'teams', '--database', around.file, '--log-level', 'silent']
  expect((await parley(backfill, around)).status).toBe(0)
  const db = openSqlite(around.file)
  db.prepare("INSERT OR REPLACE INTO sync_meta VALUES ('requests_today', ?)").run(
    JSON.stringify({ day, used: 4 }),
  )
  db.close()
  const before = simulator.requests.total()
  await findings(around, ceiling)
  expect(simulator.requests.total()).toBe(before + 1)
})

test.concurrent.for<[what: string, path: string, says: string, create: (folder: string) => void]>([
  [
    'below a loop of symbolic links',
    'loop/parley.db',
    'ELOOP',
    cwd => symlinkSync('loop', join(cwd, 'loop')),
  ],
  ['below a file', 'file/parley.db', 'ENOTDIR', cwd => writeFileSync(join(cwd, 'file'), '')],
  ['of a folder', 'folder', 'EISDIR', cwd => mkdirSync(join(cwd, 'folder'))],
])(
  'for a database path %s doctor reports the checks that it could not make, and makes the others',
  async ([, path, code, create], context) => {
    const around = await place(context)
    create(around.cwd)
    const { status, stdout, stderr } = await doctor({ ...around, file: path }, ['--json'])
    expect({ status, stderr }).toEqual({ status: EXIT_STATUS.databaseUnavailable, stderr: '' })
    const all: Finding[] = JSON.parse(stdout).findings
    expect(wrong(all)).toContainEqual(
      expect.objectContaining({ check: 'database', found: expect.stringContaining(`(${code})`) }),
    )
    const unchecked = all.filter(({ found }) =>
      found.startsWith('not checked: the database cannot be opened'),
    )
    expect(unchecked.map(({ check }) => check)).toEqual(
      expect.arrayContaining([
        'workspace of the database',
        'database mode',
        'schema',
        'integrity',
        'references',
      ]),
    )
    expect(all).toContainEqual(expect.objectContaining({ mark: 'ok', check: 'GET /v1/members' }))
  },
)

/** Overwrites the first page of a table. */
function damageTable(file: string, table: string): void {
  const db = openSqlite(file)
  db.pragma('wal_checkpoint(TRUNCATE)')
  const size = Number(db.pragma('page_size', { simple: true }))
  const page = Number(db.prepare('SELECT rootpage FROM sqlite_master WHERE name = ?').pluck().get(table))
  db.close()
  const bytes = readFileSync(file)
  writeFileSync(file, bytes.fill(0xa5, (page - 1) * size, page * size))
}

test.concurrent('views that an older version created, with the same migrations, are a note', async () => {
  const around = backfilled()
  openSqlite(around.file)
    .exec(`DROP VIEW periods; CREATE VIEW "periods" /* One period. */ AS SELECT 'last week' AS period`)
    .close()
  expect(await findings(around)).toContainEqual(
    expect.objectContaining({
      mark: 'note',
      check: 'columns',
      found: expect.stringMatching(/^older than parley/),
    }),
  )
})

test.concurrent('a check of a damaged bookkeeping table reports that it did not run, and the others still run', async () => {
  const around = backfilled()
  damageTable(around.file, 'sync_meta')
  const { status, stdout, stderr } = await doctor(around, ['--json'])
  expect({ status, stderr }).toEqual({ status: EXIT_STATUS.databaseUnavailable, stderr: '' })
  const all: Finding[] = JSON.parse(stdout).findings
  expect(all).toContainEqual({
    mark: 'wrong',
    check: 'workspace of the database',
    found: 'not checked: it is damaged (SQLITE_CORRUPT)',
    status: EXIT_STATUS.databaseUnavailable,
    hint: expect.stringContaining('parley restore FILE'),
  })
  const fine = all.filter(({ mark }) => mark === 'ok').map(({ check }) => check)
  expect(fine).toEqual(expect.arrayContaining(['schema', 'writer', 'GET /v1/members']))
})

test.concurrent('doctor sends no request when the daily ceiling is set and the count of the day is damaged', async context => {
  const simulator = await serveWorkspace({ now: 'real' }, context)
  const around = { ...backfilled(), env: placeFor(simulator).env }
  damageTable(around.file, 'sync_meta')
  const all = await findings(around, ['--max-requests-per-day', '500'])
  expect(all.find(({ check }) => check === 'API')).toMatchObject({
    mark: 'note',
    found: expect.stringMatching(/^not checked: .*api\.max_requests_per_day/),
  })
  expect(simulator.requests.total()).toBe(0)
})

test.concurrent('missing tables and a missing list of migrations are problems of the schema', async () => {
  const lacking = backfilled()
  openSqlite(lacking.file).exec('DROP TABLE sync_tasks; DROP TABLE team_members').close()
  const unlisted = backfilled()
  openSqlite(unlisted.file).exec('DROP TABLE __drizzle_migrations').close()
  expect(wrong(await findings(lacking))).toContainEqual(
    expect.objectContaining({ check: 'schema', found: 'missing tables: team_members, sync_tasks' }),
  )
  expect(wrong(await findings(unlisted))).toContainEqual(
    expect.objectContaining({ check: 'schema', found: 'the list of applied migrations is missing' }),
  )
})

test.concurrent('a database without tables, as a first backfill has it for a moment, is empty and not damaged', async context => {
  const around = await place(context)
  openSqlite(around.file).exec('PRAGMA journal_mode = wal').close()
  const all = await findings(around)
  expect(wrong(all)).toEqual([])
  expect(all).toContainEqual(expect.objectContaining({ mark: 'note', found: `${around.file} is empty` }))
})

test.concurrent('an API that answers every request with 503 is not called readable, and its key not accepted', async context => {
  const around = await place(context, { faults: [{ kind: 'status', status: 503 }] })
  const { status, stdout } = await doctor(around, ['--json'])
  expect(status).toBe(EXIT_STATUS.apiUnavailable)
  const all: Finding[] = JSON.parse(stdout).findings
  const marksOf = (name: string) =>
    all.filter(({ check }) => check === name).map(({ mark, found }) => [mark, found])
  expect(marksOf('API')).toEqual([
    ['wrong', expect.stringMatching(/^all \d+ requests to http:\/\/\S+ failed$/)],
  ])
  expect(marksOf('key')).toEqual([['note', 'not checked: every request failed']])
  expect(marksOf('workspace')).toEqual([['note', 'not checked: every request failed']])
  expect(marksOf('GET /v1/members')).toEqual([['wrong', expect.stringContaining('503')]])
})
