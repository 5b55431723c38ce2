import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { DICTIONARY } from '../../src/dictionary/dictionary.ts'
import { atomically, openAt } from '../store/temporary-store.ts'
import { emptyFolder, PROGRAM, parley, parleyProcess } from './parley.ts'

const PAGE = readFileSync(new URL('../../drizzle/README.md', import.meta.url), 'utf8')
const NAMES = DICTIONARY.map(({ name }) => name)

interface TableTold {
  name: string
  columns: { name: string }[]
}

/** A folder with a warehouse that has one CRM object with its table. */
async function warehouse(): Promise<string> {
  const cwd = emptyFolder()
  const store = openAt(join(cwd, 'parley.db'))
  atomically(store, () => {
    store.db.exec(`
      INSERT INTO crm_objects (name, label, _first_seen_at, _synced_at) VALUES ('offer', 'Angebot', '-', '-');
      INSERT INTO crm_fields (object, name, position, label, type) VALUES
        ('offer', 'select', 0, 'Auswahl', 'text'), ('offer', 'amount', 1, 'Betrag', 'currency')`)
  })
  await store.crmTables.finish()
  store.close()
  return cwd
}

test.concurrent('schema lists every table with a sentence, and describes the views of live rows once', async () => {
  const { status, stdout } = await parley(['schema'])
  expect(status).toBe(EXIT_STATUS.done)
  const listed = stdout.split('\n').map(line => line.split(' ')[0])
  expect(listed).toEqual(expect.arrayContaining(NAMES.filter(name => !name.startsWith('live_'))))
  expect(stdout).toMatch(/\nmeetings +table +Recorded meetings\. /)
  expect(stdout).not.toMatch(/\nlive_meetings /)
  expect(stdout).toContain('has a view live_… without the deleted rows')
  expect(stdout).toContain('search_transcripts, search_meetings, search_indices: full-text indices')
})

test.concurrent('schema TABLE shows its columns with unit, NULL, API field and example', async () => {
  const { status, stdout } = await parley(['schema', 'meetings'])
  expect(status).toBe(EXIT_STATUS.done)
  expect(stdout).toMatch(/^meetings \(table\): Recorded meetings\. /)
  expect(stdout).toMatch(
    /\nrecording_duration +integer +Length of the recording\. Unit: not stated\. API: recording_duration\. Example: 2700\n/,
  )
  expect(stdout).toMatch(/\naccess +text +`open`, or .* NULL: its detail has not been read yet\./)
  expect(stdout).toMatch(/\nid +text +key +Meeting id\. API: meeting_id\. /)
})

test.concurrent('schema TABLE prints what the schema page shows of it', async () => {
  const [, args = '', shown] =
    /^```sh\nparley (schema \w+) --database demo\.db\n```\n\n```text\n(.*?)^```/ms.exec(PAGE) ?? []
  const { stdout } = await parley(args.split(' '))
  expect(stdout).toBe(shown)
})

test.concurrent('schema takes a name in any case, as SQLite does', async () => {
  const [{ stdout }, exact] = await Promise.all([
    parley(['schema', 'Live_MEETINGS']),
    parley(['schema', 'live_meetings']),
  ])
  expect(stdout).toMatch(/^live_meetings \(view\): /)
  expect(stdout).toBe(exact.stdout)
})

test.concurrent('schema ends without an error when its reader closes early', async () => {
  const { status, stderr } = await parleyProcess(['schema', '--duckdb', '--database', 'mine.db'], {
    deaf: true,
  })
  expect({ status, stderr }).toEqual({
    status: EXIT_STATUS.done,
    stderr: expect.not.stringContaining('EPIPE'),
  })
})

test.concurrent.each([
  ['the disk is full', 'exec "$@" > /dev/full'],
  ['the disk becomes full while it is written', 'ulimit -S -f 64; exec "$@" > schema.json'],
])('schema ends with 73 and says so when %s', async (_, script) => {
  const run = spawn('sh', ['-c', script, 'sh', process.execPath, PROGRAM, 'schema', '--json'], {
    cwd: emptyFolder(),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [stderr, [status]] = await Promise.all([text(run.stderr), once(run, 'close')])
  expect({ status, stderr }).toEqual({
    status: EXIT_STATUS.databaseUnavailable,
    stderr: expect.stringMatching(/^parley: Standard output cannot be written \(E(NOSPC|FBIG)\)\nhint: /m),
  })
})

test.concurrent('schema needs neither settings nor a warehouse, says that there is none, and creates none', async () => {
  const cwd = emptyFolder()
  const { status, stderr } = await parley(['schema', '--database', 'mine.db'], { cwd })
  expect(status).toBe(EXIT_STATUS.done)
  expect(stderr).toBe(
    `parley: ${join(cwd, 'mine.db')} does not exist yet, so the typed tables of CRM objects are not shown\n`,
  )
  expect(readdirSync(cwd)).toEqual([])
})

test.concurrent('schema --json has every table with every column, or the named one', async () => {
  const { stdout } = await parley(['schema', '--json'])
  const { tables } = JSON.parse(stdout) as { tables: TableTold[] }
  expect(tables.map(({ name }) => name)).toEqual(NAMES)
  const one = await parley(['schema', 'live_meeting_speakers', '--json'])
  expect(JSON.parse(one.stdout)).toEqual({
    tables: [
      expect.objectContaining({
        name: 'live_meeting_speakers',
        form: 'view',
        columns: expect.arrayContaining([
          {
            name: 'speaker_ratio',
            position: 3,
            type: 'real',
            key: false,
            null_meaning: 'The API sent null or nothing.',
            description: 'Share of the talking time.',
            source_field: 'speakers[].speaker_ratio',
            unit: 'not stated',
            example: '0.61',
            refers_to: [],
            value_on_delete: 'row removed',
          },
        ]),
      }),
    ],
  })
})

test.concurrent('schema shows the typed tables of the CRM objects that the warehouse has', async () => {
  const cwd = await warehouse()
  const { stdout, stderr } = await parley(['schema', '--json'], { cwd })
  const { tables } = JSON.parse(stdout) as { tables: TableTold[] }
  const columns = (table: string) =>
    tables.find(({ name }) => name === table)?.columns.map(({ name }) => name)
  expect(stderr).toBe('')
  expect(columns('crm_offer')).toEqual(['id', 'select', 'amount', 'created_at', 'updated_at', '_deleted_at'])
  expect(columns('live_crm_offer')).toEqual(['id', 'select', 'amount', 'created_at', 'updated_at'])
  expect(columns('labelled_crm_offer')).toEqual(['id', 'Auswahl', 'Betrag', 'created_at', 'updated_at'])
  const one = await parley(['schema', 'crm_offer'], { cwd })
  expect(one.stdout).toMatch(/^crm_offer \(table\): Records of the CRM object `offer` \(Angebot\)/)
  expect(one.stdout).toMatch(/\namount +any +Betrag\. /)
})

test.concurrent('schema --datasette describes the file under its name, in the format of Datasette', async () => {
  const { stdout } = await parley(['schema', '--datasette', '--database', 'acme.db'])
  const metadata = JSON.parse(stdout) as {
    databases: Record<string, { tables: Record<string, unknown>; queries: Record<string, unknown> }>
  }
  expect(Object.keys(metadata.databases)).toEqual(['acme'])
  const tables = metadata.databases['acme']?.tables ?? {}
  expect(Object.keys(tables)).toEqual(expect.arrayContaining(NAMES))
  expect(tables['activities']).toMatchObject({
    description: 'The timeline of the workspace: meetings, messages and changes to CRM records.',
    columns: { created_via: expect.stringContaining('NULL: the API could not obtain it.') },
    sortable_columns: ['id', 'occurred_at', 'source_id'],
    sort_desc: 'occurred_at',
  })
  expect(tables['activities']).toHaveProperty('columns.actor_id', expect.stringContaining('`members.id`'))
  expect(tables['access_logs']).toMatchObject({ units: { duration_ms: 'ms', response_size_bytes: 'byte' } })
  expect(tables['meetings']).not.toHaveProperty('units')
  expect(tables['meetings']).toMatchObject({ label_column: 'title' })
  for (const name of ['sync_tasks', 'search_indices']) expect(tables[name]).toMatchObject({ hidden: true })
  expect(metadata.databases['acme']?.queries['open-deals-by-stage']).toMatchObject({
    title: 'Where do the open deals stand, and what are they worth?',
  })
})

test.concurrent('schema --duckdb attaches the file by its full path', async () => {
  const cwd = await warehouse()
  const { stdout } = await parley(['schema', '--duckdb'], { cwd })
  expect(stdout).toContain(
    `ATTACH IF NOT EXISTS '${join(cwd, 'parley.db')}' AS parley_file (TYPE sqlite, READ_ONLY);`,
  )
  expect(stdout).toContain('Days in tables for reports are those of\n-- reporting.time_zone.\nSET TimeZone')
  expect(stdout).toContain('TRY_CAST("start_time" AS TIMESTAMPTZ) AS "start_time"')
  const typed = stdout.split('\n').find(line => line.startsWith('CREATE OR REPLACE VIEW "crm_offer" AS '))
  expect(typed).toContain('TRY_CAST("amount" AS DOUBLE) END AS "amount", "amount_exact"')
})

test.concurrent('schema for an engine has the views of the tables that the settings publish', async () => {
  const cwd = await warehouse()
  const viewsIn = async (...args: string[]) => {
    const { stdout } = await parley(['schema', '--trino', '--config', 'parley.toml', ...args], { cwd })
    return stdout.match(/(?<=^CREATE OR REPLACE VIEW ")[^"]+/gm)
  }
  writeFileSync(join(cwd, 'parley.toml'), '[publish]\ntables = ["crm_offer", "messages"]\n', { mode: 0o600 })
  expect(await viewsIn()).toEqual(['live_messages', 'live_crm_offer', 'labelled_crm_offer'])
  expect(await viewsIn('--tables', 'members')).toEqual(['live_members'])
})

test.concurrent('schema for an engine refuses tables of the settings with their source, and its own by themselves', async () => {
  const env = { PARLEY_PUBLISH_TABLES: 'nope' }
  const source = 'publish.tables is ["nope"] in environment PARLEY_PUBLISH_TABLES: there is no table "nope"'
  for (const format of ['--trino', '--ossie']) {
    const set = await parley(['schema', format], { env })
    expect(set).toMatchObject({ status: EXIT_STATUS.settings, stdout: '' })
    expect(set.stderr).toContain(source)
  }
  const given = await parley(['schema', '--trino', '--tables', 'nop'], { env })
  expect(given).toMatchObject({ status: EXIT_STATUS.usage, stdout: '' })
  expect(given.stderr).toContain('Unknown table "nop"')
  expect(await parley(['schema', 'messages'], { env })).toMatchObject({ status: EXIT_STATUS.done })
})

test.concurrent.each<[args: string[], message: string, hint: string]>([
  [
    ['schema', 'meetngs'],
    '"meetngs" is not a table or view that parley schema describes',
    'Did you mean meetings? Run parley schema for the list of tables and views.',
  ],
  [
    ['schema', 'dealz'],
    '"dealz" is not a table or view that parley schema describes',
    'Did you mean deals? Run parley schema for the list of tables and views.',
  ],
  [
    ['schema', 'xyz'],
    '"xyz" is not a table or view that parley schema describes',
    'Run parley schema for the list of tables and views.',
  ],
  [
    ['schema', 'search_messages'],
    '"search_messages" is not a table or view that parley schema describes',
    'Full-text index of subjects and texts of e-mails; its rowid is `messages._id`. drizzle/README.md says how to use it. Run parley schema for the list of tables and views.',
  ],
  [
    ['schema', 'sync_tasks'],
    '"sync_tasks" is not a table or view that parley schema describes',
    'It is internal to parley and may change. Run parley schema for the list of tables and views.',
  ],
  [
    ['schema', 'teams', '--duckdb'],
    'parley schema --duckdb describes the whole database and takes no table: "teams"',
    'Leave "teams" out.',
  ],
  [
    ['schema', '--tables', 'teams'],
    '--tables is for the views of a query engine or a semantic model, and none is named',
    'Add --spark or --trino or --clickhouse or --ossie, or leave --tables out.',
  ],
  [
    ['schema', '--spark', '--catalogue', 'lake; DROP'],
    "option '--catalogue <name>' argument 'lake; DROP' is invalid. Expected the name of a catalogue and its namespace as they stand in SQL, such as lake.parley.",
    'Run parley schema --help for the usage.',
  ],
  [
    ['schema', '--json', '--duckdb'],
    "option '--json' cannot be used with option '--duckdb'",
    'Run parley schema --help for the usage.',
  ],
])('%j is wrong usage, with a hint', async (args, message, hint) => {
  const { status, stdout, stderr } = await parley(args)
  expect({ status, stdout }).toEqual({ status: EXIT_STATUS.usage, stdout: '' })
  expect(stderr).toContain(`parley: ${message}\nhint: ${hint}\n`)
})

test.concurrent('schema refuses a file that is not a warehouse', async () => {
  const cwd = emptyFolder()
  const { status, stdout } = await parley(['schema', '--database', process.execPath], { cwd })
  expect({ status, stdout }).toEqual({ status: EXIT_STATUS.databaseUnavailable, stdout: '' })
})
