import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { parley, parleyWithSmallFiles, startParley } from './parley.ts'
import { api, type Place, placeFor, workspace } from './workspace.ts'

const ESCAPE = String.fromCharCode(27)

interface Printed {
  complete: boolean
  interrupted: boolean
  continued_from: string | null
  requests: number
  database: string
  error: { code: string } | null
  resources: {
    resource: string
    outcome: string
    reason: string | null
    rows_changed: number
    rows_live: number
    waiting: number
  }[]
}

const printed = (stdout: string): Printed => JSON.parse(stdout)

function count(file: string, table: string): number {
  const db = openSqlite(file, { readonly: true })
  const rows = db.prepare(`SELECT count(*) FROM ${table} WHERE _deleted_at IS NULL`).pluck().get() as number
  db.close()
  return rows
}

test.concurrent('a backfill reads the whole workspace, and prints a table on standard output', async context => {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  const { status, stdout, stderr } = await parley(['backfill'], place)
  expect(status).toBe(EXIT_STATUS.done)
  expect(count(place.file, 'message_copies')).toBe(simulator.world.truth().count('messages'))
  expect(stdout).toMatch(/^resource +rows +new or changed +deleted +requests\n/)
  expect(stdout).toMatch(/\nmembers +\d+ +\d+ +0 +1 {2}read\n/)
  expect(stdout).toMatch(/\nComplete: [\d,]+ requests in .*\.\n/)
  expect(stdout).toContain(place.file)
  expect(stderr).not.toContain('new or changed')
})

test.concurrent('off a terminal nothing is drawn, and the log has one line for each resource that was read', async context => {
  const { status, stderr } = await parley(['backfill'], placeFor(await workspace(context)))
  expect(status).toBe(EXIT_STATUS.done)
  expect(stderr).not.toContain(ESCAPE)
  const lines = stderr.split('\n').flatMap(line => (line.startsWith('{') ? [JSON.parse(line)] : []))
  const ended = lines.filter(({ msg }) => msg === 'Finished a resource')
  expect(ended.map(({ resource }) => resource).sort()).toEqual(
    [...new Set(ended.map(({ resource }) => resource))].sort(),
  )
  expect(ended.map(({ resource }) => resource)).toContain('message_bodies')
  expect(ended).toHaveLength(17)
})

test.concurrent('--page with --listen off warns that no page is served', async context => {
  const place = placeFor(await workspace(context))
  const { status, stderr } = await parley(
    ['backfill', '--page', '--listen', 'off', '--only', 'members'],
    place,
  )
  expect(status).toBe(EXIT_STATUS.done)
  expect(stderr).toContain('"reason":"--page needs an address, such as --listen 127.0.0.1:8787"')
})

test.concurrent('items that --since leaves out are not named as items that the next run requests again', async context => {
  const place = placeFor(await workspace(context, { meetings: 40 }))
  const waitingAfter = async (...args: string[]) => {
    const { stdout } = await parley(['backfill', '--json', '--only', 'playbook_results', ...args], place)
    return printed(stdout).resources.flatMap(({ resource, waiting }) => (waiting > 0 ? resource : []))
  }
  expect(await waitingAfter()).toContain('playbook_results')
  expect(await waitingAfter('--since', '2099-01-01')).toEqual([])
})

test.concurrent('the log has the start, the changed resources and the end of a backfill', async context => {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  const first = await logOf(place)
  expect(first.at(0)).toMatchObject({
    msg: 'Backfill started',
    path: place.file,
    workspace: simulator.workspaceId,
    base_url: simulator.url,
    resources: 'all',
  })
  expect(first.at(-1)).toMatchObject({
    msg: 'Backfill ended',
    level: 'info',
    exit_status: EXIT_STATUS.done,
  })
  const read = (lines: typeof first) => lines.filter(({ msg }) => msg === 'Finished a resource')
  expect(read(first)).toHaveLength(17)
  expect(read(await logOf(place))).toEqual([])

  simulator.apply({ kind: 'publish', resource: 'messages' })
  simulator.setFaults([{ kind: 'status', status: 403, route: '/v1/members' }])
  const third = await logOf(place)
  expect(read(third).map(({ resource }) => resource)).toContain('messages')
  expect(read(third).map(({ resource }) => resource)).not.toContain('members')
  expect(third.at(-1)).toMatchObject({
    msg: 'Backfill ended',
    level: 'error',
    exit_status: EXIT_STATUS.apiUnavailable,
    reason: 'Some resources failed',
  })
})

/** What a backfill logs. */
async function logOf(place: Place): Promise<Record<string, unknown>[]> {
  const { stderr } = await parley(['backfill'], place)
  return stderr.split('\n').flatMap(line => (line.startsWith('{') ? [JSON.parse(line)] : []))
}

test.concurrent('--json prints one object, and a second run finds nothing new', async context => {
  const place = placeFor(await workspace(context))
  const first = await parley(['backfill', '--json'], place)
  expect(first.status).toBe(EXIT_STATUS.done)
  expect(printed(first.stdout)).toMatchObject({
    complete: true,
    interrupted: false,
    database: place.file,
    error: null,
  })
  expect(printed(first.stdout).resources).toHaveLength(17)
  const second = await parley(['backfill', '--json', '--log-level', 'error'], place)
  expect(second.status).toBe(EXIT_STATUS.done)
  expect(printed(second.stdout).resources.filter(({ rows_changed }) => rows_changed > 0)).toEqual([])
})

test.concurrent('a resource that the workspace does not offer is reported and does not make the run incomplete', async context => {
  const place = placeFor(await workspace(context, { securityOption: false }))
  const { status, stdout, stderr } = await parley(['backfill', '--json'], place)
  expect(status).toBe(EXIT_STATUS.done)
  expect(printed(stdout).resources).toContainEqual(
    expect.objectContaining({ resource: 'access_logs', outcome: 'unavailable' }),
  )
  expect(stderr).toMatch(/\naccess_logs .* not offered\n/)
  expect(stderr).toMatch(/\n {2}access_logs: The API answers 403: /)
})

test.concurrent('a resource that fails ends with 69 and its reason, the others are read, and a later run completes', async context => {
  const simulator = await workspace(context, { faults: [{ kind: 'redirect', route: '/v1/teams' }] })
  const place = placeFor(simulator)
  const failed = await parley(['backfill', '--json'], place)
  expect(failed.status).toBe(EXIT_STATUS.apiUnavailable)
  const { complete, resources } = printed(failed.stdout)
  expect(complete).toBe(false)
  expect(resources.filter(({ outcome }) => outcome === 'failed')).toEqual([
    expect.objectContaining({ resource: 'teams', reason: expect.stringContaining('302') }),
  ])
  expect(failed.stderr).toContain('Not read completely: teams.')
  expect(count(place.file, 'messages')).toBeGreaterThan(0)
  simulator.setFaults([])
  expect(await parley(['backfill'], place)).toMatchObject({ status: EXIT_STATUS.done })
  expect(count(place.file, 'teams')).toBeGreaterThan(0)
})

test.concurrent('the first signal lets requests in flight finish, and the next run continues from there and says as of when it is complete', async context => {
  const simulator = await workspace(context)
  let release: () => void = () => undefined
  const released = new Promise<void>(resolve => {
    release = resolve
  })
  const held = await api(context, (request, response) => {
    void released.then(async () => {
      const headers = { 'x-api-key': simulator.apiKey, 'x-workspace-id': simulator.workspaceId }
      const answer = await fetch(simulator.url + request.url, { headers })
      response.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(await answer.text())
    })
  })
  const place = placeFor({ ...simulator, url: held.url })
  const running = startParley(['backfill', '--json'], place)
  await held.asked
  running.child.kill('SIGTERM')
  await running.says('Stopping after ')
  release()
  const { status, stdout, stderr } = await running.ended
  expect(status).toBe(EXIT_STATUS.unfinished)
  expect(printed(stdout)).toMatchObject({ complete: false, interrupted: true })
  expect(printed(stdout).resources.some(({ rows_live }) => rows_live > 0)).toBe(true)
  expect(stderr).toContain('Run parley backfill again to continue where it stopped.')
  expect(printed(stdout).continued_from).toBeNull()
  const second = await parley(['backfill', '--json'], place)
  expect(second.status).toBe(EXIT_STATUS.done)
  const from = printed(second.stdout).continued_from
  expect(from).toMatch(/^\d{4}-\d\d-\d\dT/)
  expect(second.stderr).toContain(`"continued_from":"${from}"`)
  expect(second.stderr.replaceAll(/\s+/g, ' ')).toMatch(
    /Complete as of [\d: -]+ UTC, when the interrupted run began that this one has continued\. Run parley backfill again to bring the warehouse up to date\./,
  )
  expect(count(place.file, 'message_copies')).toBe(simulator.world.truth().count('messages'))
  const third = await parley(['backfill'], place)
  expect(third.stdout).not.toContain('Complete as of')
  expect(third.stderr).not.toContain('continued_from')
})

test.concurrent('a full disk ends a backfill with status 73, and the next run with free space completes', async context => {
  const simulator = await workspace(context, { messages: 400 })
  const place = placeFor(simulator)
  const full = await parleyWithSmallFiles(700, ['backfill', '--log-level', 'error'], place)
  expect(full).toMatchObject({ status: EXIT_STATUS.databaseUnavailable, stdout: '' })
  expect(full.stderr).toMatch(/^parley: Cannot use the database .*parley\.db: .*\nhint: .*free space/m)
  expect(await parley(['backfill'], place)).toMatchObject({ status: EXIT_STATUS.done })
  expect(count(place.file, 'message_copies')).toBe(simulator.world.truth().count('messages'))
})

test.concurrent('after an error, the table says which resources failed or are not offered, and why', async context => {
  const faults = [
    { kind: 'redirect', route: '/v1/teams' },
    { kind: 'status', status: 404, route: '/v1/settings/integrations' },
    { kind: 'status', status: 401, requestHas: '/v2/messages', afterRequests: 12 },
  ] as const
  const place = placeFor(await workspace(context, { faults }))
  const only = ['--only', 'teams,messages,message_bodies,integrations']
  const { status, stdout, stderr } = await parley(['backfill', ...only], place)
  expect(status).toBe(EXIT_STATUS.refused)
  expect(stdout).toMatch(/\nteams +0 +0 +0 +\d+ {2}failed\n/)
  expect(stdout).toContain('\n  teams: GET /v1/teams: ')
  expect(stdout).toMatch(/\nintegrations +0 +0 +0 +\d+ {2}not offered\n/)
  expect(stdout).toMatch(/\nNot complete: /)
  expect(stdout).toContain('\nNot read completely: teams, message_bodies. The rows read so far are stored.\n')
  expect(stderr).toContain('refuses the key')
})

test.concurrent('--json prints an error that prevents the backfill too, with its exit status', async context => {
  const { env, cwd } = placeFor(await workspace(context))
  const { status, stdout } = await parley(['backfill', '--json'], {
    cwd,
    env: { ...env, PARLEY_BASE_URL: 'nowhere' },
  })
  expect(status).toBe(EXIT_STATUS.settings)
  expect(JSON.parse(stdout)).toEqual({
    exit_status: 78,
    error: {
      code: 'bad-settings',
      message: expect.stringContaining('nowhere'),
      hint: expect.any(String),
    },
  })
})

test.concurrent('what needs a resource of --skip is left out too, and the plan and the summary say so', async context => {
  const place = placeFor(await workspace(context))
  const flags = ['--skip', 'meetings,collections', '--only', 'teams,transcripts,collection_meetings']
  const sentences = [
    'Left out too: transcripts (not complete without meetings).',
    'Left out too: collection_meetings (not complete without collections).',
  ].join('\n')
  expect((await parley(['backfill', '--plan', ...flags], place)).stdout).toContain(sentences)
  expect((await parley(['backfill', ...flags], place)).stdout).toContain(sentences)
  const json = await parley(['backfill', '--json', ...flags], place)
  expect(printed(json.stdout).resources.map(({ resource }) => resource)).toEqual(['teams', 'activities'])
  const { stdout } = await parley(['status', '--json'], place)
  expect(JSON.parse(stdout).chosen_resources).toEqual(['teams', 'activities'])
})

test.concurrent('meetings have a list, and are read without the activities of --skip', async context => {
  const place = placeFor(await workspace(context))
  const { stdout } = await parley(['backfill', '--json', '--only', 'meetings', '--skip', 'activities'], place)
  expect(printed(stdout).resources.map(({ resource }) => resource)).toEqual(['meetings'])
})

test.concurrent.each([
  [['--only', 'members', '--skip', 'members'], ''],
  [
    ['--only', 'members,crm_record_links', '--skip', 'crm_objects,members'],
    '. Left out too: crm_records, crm_record_links (not complete without crm_objects)',
  ],
])('%j leaves nothing to read and is refused', async (flags, leftOut) => {
  const place = placeFor({ url: 'http://127.0.0.1:9', apiKey: 'k', workspaceId: 'w' })
  expect(await parley(['backfill', ...flags], place)).toEqual({
    status: EXIT_STATUS.usage,
    stdout: '',
    stderr: `parley: --skip leaves no resource to read${leftOut}\nhint: Take a name out of --skip, or name other resources with --only or in sync.resources.\n`,
  })
})

test.concurrent('--only and --skip take the names of resources', async context => {
  const simulator = await workspace(context)
  const place = placeFor(simulator)
  const { stdout } = await parley(['backfill', '--json', '--only', 'teams,message_bodies'], place)
  expect(printed(stdout).resources.map(({ resource }) => resource)).toEqual([
    'teams',
    'messages',
    'message_bodies',
  ])
  const wrong = await parley(['backfill', '--skip', 'mesages'], place)
  expect(wrong).toEqual({
    status: EXIT_STATUS.usage,
    stdout: '',
    stderr: expect.stringMatching(
      /^parley: Unknown resource "mesages"\nhint: Did you mean messages\? The resources are /,
    ),
  })
})
