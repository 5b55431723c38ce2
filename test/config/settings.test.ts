import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { EXIT_STATUS, StopError } from '../../src/base/errors.ts'
import type { User } from '../../src/config/file-access.ts'
import type { HookTarget } from '../../src/config/kinds.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import type { SettingFlags } from '../../src/config/loaded-settings.ts'
import {
  fileKey,
  HOOK_VARIABLES,
  SECRETS,
  SETTING_LIST,
  type SettingKey,
  settingNamed,
} from '../../src/config/settings.ts'
import { giveToNobody } from '../store/other-user.ts'

const API = {
  PARLEY_BASE_URL: 'https://api.example.com',
  PARLEY_API_KEY: 'the-key',
  PARLEY_WORKSPACE_ID: 'acme',
}

const PAGE = 'config/README.md explains every setting.'

let cwd: string
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'parley-settings-'))
})

function file(name: string, text: string, mode = 0o600): void {
  mkdirSync(join(cwd, name, '..'), { recursive: true })
  writeFileSync(join(cwd, name), text)
  chmodSync(join(cwd, name), mode)
}

interface Given {
  flags?: SettingFlags
  user?: User
  env?: Record<string, string>
  resourceNames?: readonly string[]
  used?: readonly SettingKey[]
}

const load = ({ flags = {}, env = {}, ...rest }: Given = {}) =>
  loadSettings({ flags, env, cwd, requireApi: false, ...rest })
const loadForApi = ({ flags = {}, env = {}, ...rest }: Given = {}) =>
  loadSettings({ flags, env, cwd, requireApi: true, ...rest })

function complaint(attempt: () => unknown): string {
  try {
    attempt()
  } catch (error) {
    if (
      error instanceof StopError &&
      error.code === 'bad-settings' &&
      error.exitStatus === EXIT_STATUS.settings
    )
      return error.message
    throw error
  }
  throw new Error('these settings were accepted')
}

describe('the source of a value', () => {
  test('a flag wins over the environment, that over the file, that over the default', () => {
    file('config/parley.toml', '[sync]\npoll_seconds = 11\ninterval_scale = 0.5\n[api]\ntimeout_seconds = 12')
    const { settings, sources } = load({
      flags: { 'sync.poll_seconds': '31' },
      env: { PARLEY_SYNC_POLL_SECONDS: '21', PARLEY_SYNC_INTERVAL_SCALE: '0.25' },
    })
    expect(settings.sync).toMatchObject({ pollSeconds: 31, intervalScale: 0.25 })
    expect(settings.api.timeoutSeconds).toBe(12)
    expect(settings.api.giveUpSeconds).toBe(120)
    expect(sources).toMatchObject({
      'sync.poll_seconds': 'flag --poll-seconds',
      'sync.interval_scale': 'environment PARLEY_SYNC_INTERVAL_SCALE',
      'api.timeout_seconds': 'config/parley.toml',
      'api.give_up_seconds': 'default',
    })
  })

  test('an empty environment variable counts as not set, even with an unknown name', () => {
    file('config/parley.toml', '[log]\nlevel = "warn"')
    const { settings } = load({ env: { PARLEY_LOG_LEVEL: '', PARLEY_CONFIG: '', PARLEY_LOG_NOISE: '' } })
    expect(settings.log.level).toBe('warn')
  })

  test('--config wins over PARLEY_CONFIG, that over config/parley.toml', () => {
    file('config/parley.toml', '[log]\nlevel = "debug"')
    file('named.toml', '[log]\nlevel = "warn"')
    file('flagged.toml', '[log]\nlevel = "error"')
    const env = { PARLEY_CONFIG: 'named.toml' }
    expect(load().settings.log.level).toBe('debug')
    expect(load({ env }).settings.log.level).toBe('warn')
    const last = load({ env, flags: { config: 'flagged.toml' } })
    expect([last.settings.log.level, last.file]).toEqual(['error', 'flagged.toml'])
  })

  test.each([{ flags: { config: 'none.toml' } }, { env: { PARLEY_CONFIG: 'none.toml' } }])(
    'a named settings file that does not exist is an error: %j',
    given => {
      expect(complaint(() => load(given))).toContain('the settings file none.toml cannot be read: ENOENT')
    },
  )

  test('environment names other than PARLEY_SECTION_KEY are known', () => {
    const { settings } = loadForApi({ env: { ...API, PARLEY_DATABASE: 'acme.db' } })
    expect(settings.api).toMatchObject({
      baseUrl: 'https://api.example.com',
      key: 'the-key',
      workspaceId: 'acme',
    })
    expect(settings.database.path).toBe(join(cwd, 'acme.db'))
  })
})

describe('the values of a setting', () => {
  const cases: [key: SettingKey, text: string, read: unknown][] = [
    ['api.max_requests_per_second', '0.5', 0.5],
    ['api.max_requests_per_second', '0', undefined],
    ['api.max_concurrency', '4', 4],
    ['api.max_concurrency', '1.5', undefined],
    ['api.max_concurrency', '0x10', undefined],
    ['api.max_concurrency', ' ', undefined],
    ['api.max_concurrency', 'Infinity', undefined],
    ['api.max_response_bytes', '2048', 2048],
    ['api.max_response_bytes', '64MiB', 64 * 2 ** 20],
    ['api.max_response_bytes', '1GiB', undefined],
    ['api.max_response_bytes', '64MB', undefined],
    ['api.base_url', 'http://127.0.0.1:9000/base//', 'http://127.0.0.1:9000/base'],
    ['api.base_url', 'https://API.example.com', 'https://api.example.com'],
    ['api.base_url', 'ftp://api.example.com', undefined],
    ['api.base_url', 'api.example.com', undefined],
    ['api.base_url', 'https://api.example.com/?a=b', undefined],
    ['api.workspace_id', 'two words', undefined],
    ['database.path', ' ', undefined],
    ['database.path', 'parley.db ', undefined],
    ['database.path', '/a b/parley.db', '/a b/parley.db'],
    ['snapshot.folder', ' /a', undefined],
    ['publish.target', '/a ', undefined],
    ['publish.location', 's3://bucket', 's3://bucket'],
    ['publish.location', 'abfss://c@acme.dfs.example.com/lake', 'abfss://c@acme.dfs.example.com/lake'],
    ['publish.location', 'file:///data/my lake/', 'file:///data/my lake/'],
    ['publish.location', 'hdfs:/lake', 'hdfs:/lake'],
    ['publish.location', 'not a url', undefined],
    ['publish.location', 'http://', undefined],
    ['publish.location', 's3:', undefined],
    ['publish.location', 's3:/bucket', undefined],
    ['publish.location', '/rel', undefined],
    ['publish.location', 'C:/lake', undefined],
    ['publish.location', ' s3://bucket', undefined],
    ['publish.location', 's3://bucket ', undefined],
    ['publish.location', '', undefined],
    ['database.mode', '0640', 0o640],
    ['database.mode', '600', 0o600],
    ['database.mode', '0644', 0o644],
    ['database.mode', '0700', undefined],
    ['database.mode', '0400', undefined],
    ['sync.poll_seconds', '0.5', undefined],
    ['sync.interval_scale', '0.001', 0.001],
    ['sync.interval_scale', '0', undefined],
    ['sync.since', '2025-01-31', '2025-01-31T00:00:00.000Z'],
    ['sync.since', '2025-01-31T08:00:00.1239+09:00', '2025-01-30T23:00:00.123Z'],
    ['sync.since', '2025-02-30', undefined],
    ['sync.since', '2025-01-31T08:00:00', undefined],
    ['sync.since', 'yesterday', undefined],
    ['access_log.end_parameter', 'until', 'until'],
    ['access_log.end_parameter', 'a&b', undefined],
    ['transcripts.words', 'false', false],
    ['transcripts.words', '0', undefined],
    ['http.listen', 'off', { at: 'off' }],
    ['http.listen', '[::1]:80', { at: 'port', host: '::1', port: 80 }],
    ['http.listen', 'localhost:0', { at: 'port', host: 'localhost', port: 0 }],
    ['http.listen', 'unix:/run/a.sock', { at: 'socket', path: '/run/a.sock' }],
    ['http.listen', '8787', undefined],
    ['http.listen', 'localhost:65536', undefined],
    ['retention.withdrawn_days', 'never', 'never'],
    ['retention.withdrawn_days', '0', 0],
    ['retention.withdrawn_days', '1.5', undefined],
    ['log.level', 'loud', undefined],
  ]

  test.each([
    ['publish', 'every', '5m', 'an interval'],
    ['api', 'max_response_bytes', '32MiB', 'a number of bytes'],
  ])('the setting %s.%s refuses a list with one allowed value', (section, name, value, expected) => {
    file('config/parley.toml', `[${section}]\n${name} = ["${value}"]\n`)
    expect(complaint(load)).toContain(
      `${section}.${name} is ["${value}"] in config/parley.toml: expected ${expected}`,
    )
  })

  test.each(cases)('the setting %s accepts or refuses %j', (key, text, read) => {
    if (read === undefined) {
      const message = complaint(() => load({ flags: { [key]: text } }))
      expect(message.replaceAll('"', '')).toContain(`${key} is ${text} in flag --`)
    } else {
      const [section = '', name = ''] = key
        .split('.')
        .map(part => part.replace(/_(.)/g, (_, c) => c.toUpperCase()))
      const { proxies: _, ...sections } = load({ flags: { [key]: text } }).settings
      const settings: Record<string, Record<string, unknown>> = sections
      expect(settings[section]?.[name]).toEqual(read)
    }
  })

  test('TOML numbers, booleans, dates and lists are read', () => {
    file(
      'config/parley.toml',
      '[sync]\nsince = 2025-01-31T08:00:00+09:00\nresources = ["teams", "members", "teams"]\n[search]\nenabled = false',
    )
    const { settings } = load({ resourceNames: ['members', 'teams'] })
    expect(settings.sync.since).toBe('2025-01-30T23:00:00.000Z')
    expect(settings.sync.resources).toEqual(['teams', 'members'])
    expect(settings.search.enabled).toBe(false)
  })

  test.each([
    'max_concurrency = "4"',
    'max_concurrency = true',
    'max_concurrency = [4]',
    'max_concurrency = nan',
  ])('a value of the wrong type in the file is an error: %s', line => {
    file('config/parley.toml', `[api]\n${line}`)
    expect(complaint(() => load())).toMatch(
      /api\.max_concurrency is .* in config\/parley\.toml: expected a whole/,
    )
  })

  test.each<[name: string, text: string, read: unknown]>([
    ['WORK_FROM', '08:30', 510],
    ['WORK_TO', '24:00', 1440],
    ['WORK_TO', '24:01', undefined],
    ['WORK_FROM', '8:30', undefined],
    ['INTERNAL_DOMAINS', 'Own.example, own.co.jp', ['own.example', 'own.co.jp']],
    ['INTERNAL_DOMAINS', 'jo@own.example', undefined],
    ['PARTNER_DOMAINS', 'https://own.example', undefined],
    ['PARTNER_DOMAINS', 'own.', undefined],
  ])('PARLEY_REPORTING_%s accepts or refuses %j', (name, text, read) => {
    const reporting = () => load({ env: { [`PARLEY_REPORTING_${name}`]: text } }).settings.reporting
    if (read === undefined) expect(reporting).toThrow(`PARLEY_REPORTING_${name}`)
    else expect(Object.values(reporting())).toContainEqual(read)
  })

  test.each(['USD=0.92=5', 'USD=1,USD=2', 'USD=1e999', 'USD=0.92,', 'USD', 'USD=0', 'usd=1', '=1'])(
    'the rates %j are refused, and the message has them as they were given',
    text => {
      expect(complaint(() => load({ env: { PARLEY_REPORTING_RATES: text } }))).toContain(
        `reporting.rates is "${text}" in environment PARLEY_REPORTING_RATES: expected a table`,
      )
    },
  )

  test('an infinite rate in the file is refused', () => {
    file('config/parley.toml', '[reporting]\nrates = { USD = inf }')
    expect(complaint(() => load())).toContain('reporting.rates is')
  })

  test('work ends later than it begins, else both values are named with their sources', () => {
    const refused = (env: Record<string, string>) => complaint(() => load({ env }))
    expect(refused({ PARLEY_REPORTING_WORK_FROM: '18:00' })).toBe(
      'Invalid settings: reporting.work_to is "18:00" by default: expected a time later than reporting.work_from, which is "18:00" in environment PARLEY_REPORTING_WORK_FROM',
    )
    file('config/parley.toml', '[reporting]\nwork_to = "08:05"')
    expect(refused({})).toBe(
      'Invalid settings: reporting.work_to is "08:05" in config/parley.toml: expected a time later than reporting.work_from, which is "09:00" by default',
    )
    expect(refused({ PARLEY_REPORTING_WORK_FROM: '7 a.m.' })).toMatch(
      /^Invalid settings: reporting\.work_from is "7 a\.m\." in environment PARLEY_REPORTING_WORK_FROM: expected a time of day from .*$/,
    )
    expect(load({ env: { PARLEY_REPORTING_WORK_FROM: '08:04' } }).settings.reporting.workTo).toBe(485)
  })

  test('a domain is of one side, else both settings are named with their sources', () => {
    file('config/parley.toml', '[reporting]\npartner_domains = ["agency.example", "OWN.example"]')
    const refused = complaint(() => load({ env: { PARLEY_REPORTING_INTERNAL_DOMAINS: 'own.example' } }))
    expect(refused).toBe(
      'Invalid settings: reporting.partner_domains names own.example in config/parley.toml: expected domains that reporting.internal_domains in environment PARLEY_REPORTING_INTERNAL_DOMAINS does not name',
    )
  })

  test('rates need the currency they convert to', () => {
    const env = { PARLEY_REPORTING_RATES: 'USD=0.92, JPY = 0.0061' }
    const text =
      'reporting.rates is set in environment PARLEY_REPORTING_RATES: expected reporting.currency to be set too, since the rates convert amounts into it'
    expect(complaint(() => load({ env }))).toBe(`Invalid settings: ${text}`)
    expect(load({ env, used: ['database.path'] }).warnings).toEqual([text])
    const { settings, warnings } = load({ env: { ...env, PARLEY_REPORTING_CURRENCY: 'EUR' } })
    expect([settings.reporting.rates, warnings]).toEqual([{ USD: 0.92, JPY: 0.0061 }, []])
  })

  test('the report over HTTP needs a token', () => {
    const load = (env: Record<string, string>) =>
      loadSettings({
        flags: {},
        env: { PARLEY_BASE_URL: 'https://a.example', PARLEY_WORKSPACE_ID: 'w', PARLEY_API_KEY: 'k', ...env },
        cwd: '/',
        requireApi: true,
      }).settings.http.report
    const [on, token] = [
      { PARLEY_HTTP_REPORT: 'true' },
      { PARLEY_HTTP_TOKEN: 'a-token-of-the-status-server' },
    ]
    expect(() => load(on)).toThrow(
      'http.report is true in environment PARLEY_HTTP_REPORT: expected http.token to be set too',
    )
    expect([load(token), load({ ...on, ...token })]).toEqual([false, true])
  })

  test('a command that reads no secrets does not miss the token of the report', () => {
    const env = { PARLEY_HTTP_REPORT: 'true', PARLEY_HTTP_TOKEN_FILE: '/nowhere/token' }
    expect(loadSettings({ flags: {}, env, cwd: '/', requireApi: false }).settings.http.report).toBe(true)
  })

  test('resources are checked against the known names', () => {
    const attempt = () =>
      load({ flags: { 'sync.resources': 'members,robots' }, resourceNames: ['members', 'teams'] })
    expect(complaint(attempt)).toBe(
      'Invalid settings: sync.resources is ["members","robots"] in flag --only: there is no resource "robots"; expected a list of names from members, teams',
    )
    expect(
      complaint(() =>
        load({ flags: { 'sync.resources': 'team,members' }, resourceNames: ['members', 'teams'] }),
      ),
    ).toContain('there is no resource "team"; did you mean teams?')
    expect(complaint(() => load({ flags: { 'sync.resources': '' } }))).toContain('sync.resources')
  })
})

describe('wrong settings', () => {
  test.each([
    [
      'an empty key file',
      { PARLEY_API_KEY_FILE: 'empty' },
      'Write the API key into empty, as its only line.',
    ],
    [
      'a missing key file',
      { PARLEY_API_KEY_FILE: 'none' },
      'Write the API key into none, readable by you alone: (umask 077 && cat > none).',
    ],
    [
      'a folder in place of a key file',
      { PARLEY_API_KEY_FILE: 'config' },
      'Name a file that holds the API key, not a folder.',
    ],
    ['a missing key', {}, 'Run parley init to write a settings file with the API key.'],
    [
      'a missing settings file',
      { PARLEY_CONFIG: 'none.toml' },
      'Check the path in --config or PARLEY_CONFIG, or create the file with: parley init --config none.toml',
    ],
    ['two different things', { PARLEY_API_KEY_FILE: 'empty', PARLEY_LOG_LEVEL: 'loud' }, PAGE],
    ['a value out of range', { PARLEY_API_KEY: 'k', PARLEY_LOG_LEVEL: 'loud' }, PAGE],
  ])('wrong settings have one hint that fits: %s', (_, env, hint) => {
    file('empty', '')
    file('config/other', '')
    const { PARLEY_API_KEY: _key, ...rest } = API
    expect(() => loadForApi({ env: { ...rest, ...env } })).toThrow(expect.objectContaining({ hint }))
  })

  test('all wrong settings are reported at once, each with its key, place, value and allowed values', () => {
    file('config/parley.toml', '[sync]\npoll_second = 5\n[databse]\npath = "x"\n[log]\nlevel = 3\n')
    const message = complaint(() =>
      loadForApi({
        flags: { 'api.max_concurrency': 'many' },
        env: { PARLEY_RETENTION_RUNS_DAYS: '-1', PARLEY_SYNC_SINC: 'x' },
      }),
    )
    expect(message.split('\n').map(line => line.trim())).toEqual([
      'Invalid settings, 9 problems:',
      'environment PARLEY_SYNC_SINC is not a setting; did you mean PARLEY_SYNC_SINCE?',
      'sync.poll_second in config/parley.toml is not a setting; did you mean sync.poll_seconds?',
      '[databse] in config/parley.toml is not a section; did you mean [database]?',
      'api.max_concurrency is "many" in flag --max-concurrency: expected a whole number from 1 to 1000',
      'retention.runs_days is -1 in environment PARLEY_RETENTION_RUNS_DAYS: expected a whole number from 1 to 36500',
      'log.level is 3 in config/parley.toml: expected one of trace, debug, info, warn, error, fatal, silent',
      expect.stringContaining('api.base_url is not set: use --base-url, PARLEY_BASE_URL'),
      expect.stringContaining(
        'api.key is not set: use PARLEY_API_KEY, or name a file with the key by --api-key-file',
      ),
      expect.stringContaining('api.workspace_id is not set: use --workspace-id, PARLEY_WORKSPACE_ID'),
    ])
  })

  test('a wrong value is reported even when another place overrides it', () => {
    file('config/parley.toml', '[log]\nlevel = "loud"')
    expect(complaint(() => load({ flags: { 'log.level': 'info' } }))).toContain(
      '"loud" in config/parley.toml',
    )
  })

  test.each([
    ['PARLEY_API_BASE_URL', 'PARLEY_BASE_URL'],
    ['PARLEY_DATABASE_PATH', 'PARLEY_DATABASE'],
    ['PARLEY_WORKSPACE', 'PARLEY_WORKSPACE_ID'],
    ['PARLEY_RESOURCES', 'PARLEY_SYNC_RESOURCES'],
    ['PARLEY_GIVE_UP_SECONDS', 'PARLEY_API_GIVE_UP_SECONDS'],
    ['PARLEY_TOKEN', 'PARLEY_HTTP_TOKEN'],
  ])('%s in the environment is reported as a mistake', (name, meant) => {
    expect(complaint(() => load({ env: { [name]: 'x' } }))).toContain(
      `environment ${name} is not a setting; did you mean ${meant}?`,
    )
  })

  test('a name in the environment that resembles no setting is an error too', () => {
    expect(complaint(() => load({ env: { PARLEY_ONLY_MEETINGS_PLEASE: 'x' } }))).toBe(
      'Invalid settings: environment PARLEY_ONLY_MEETINGS_PLEASE is not a setting',
    )
  })

  test('the variables that an orchestrator sets for a service named parley are ignored', () => {
    const env = {
      PARLEY_SERVICE_HOST: '10.0.0.1',
      PARLEY_SERVICE_PORT: '8787',
      PARLEY_SERVICE_PORT_HTTPS_METRICS: '1',
      PARLEY_PORT: 'tcp://10.0.0.1:8787',
      PARLEY_PORT_8787_TCP: 'tcp://10.0.0.1:8787',
      PARLEY_PORT_8787_TCP_ADDR: '10.0.0.1',
      PARLEY_STATUS_PORT_8787_TCP_PROTO: 'tcp',
    }
    expect(load({ env }).warnings).toEqual([])
    expect(complaint(() => load({ env: { PARLEY_PORT: '8787' } }))).toContain('PARLEY_PORT is not a setting')
  })

  test('the message for a key in the wrong section names the right one', () => {
    file('config/parley.toml', '[api]\npoll_seconds = 5')
    expect(complaint(() => load())).toContain('did you mean sync.poll_seconds?')
  })

  test('a settings file that is not UTF-8 is refused with what to do', () => {
    file('parley.toml', '')
    writeFileSync(join(cwd, 'parley.toml'), Buffer.from('[database]\npath = "café.db"', 'latin1'))
    const attempt = () => load({ flags: { config: 'parley.toml' } })
    expect(complaint(attempt)).toBe('Invalid settings: the settings file parley.toml is not UTF-8')
    expect(attempt).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('Save parley.toml as UTF-8.') }),
    )
  })

  test.each(SECRETS.map(([key]) => key))(
    'an empty path for the file of %s is an error that names the flag or the settings file',
    key => {
      const expected = 'expected the path of a file'
      const named = `${fileKey(key)} is ""`
      const { PARLEY_API_KEY: _key, ...env } = API
      const refused = (flags: SettingFlags) =>
        complaint(() => loadForApi({ flags, env: key === 'api.key' ? env : API }))
      expect(refused({ [key]: '' })).toBe(
        `Invalid settings: ${named} in flag ${settingNamed(key).flag}: ${expected}`,
      )
      const [section, name] = fileKey(key).split('.')
      file('config/parley.toml', `[${section}]\n${name} = ""`)
      expect(refused({})).toBe(`Invalid settings: ${named} in config/parley.toml: ${expected}`)
    },
  )

  test.each([...SETTING_LIST.map(([key]) => key), ...SECRETS.map(([key]) => fileKey(key))])(
    'a table is no value of %s',
    key => {
      file('config/parley.toml', `${key} = { x = "1" }`)
      expect(complaint(() => loadForApi({ env: API }))).toContain(key)
    },
  )

  test('a key outside of any section is an error', () => {
    file('config/parley.toml', 'api = "x"\nlevel = "info"')
    const message = complaint(() => load())
    expect(message).toContain('api in config/parley.toml is not a section')
    expect(message).toContain('[level] in config/parley.toml is not a section')
  })

  test('a TOML error has the file, line and column, and shows no line of the file', () => {
    file('config/parley.toml', '[api]\nkey = "very-secret\n')
    const message = complaint(() => load())
    expect(message).toMatch(/config\/parley\.toml is not TOML at line 2, column \d+: ./)
    expect(message).not.toContain('very-secret')
  })

  test('a message never shows the key, whatever is wrong with it', () => {
    const env = { PARLEY_API_KEY: 'húsh' }
    expect(complaint(() => load({ env }))).toBe(
      'Invalid settings: api.key is invalid (not shown) in environment PARLEY_API_KEY: expected a key of printable ASCII characters without spaces',
    )
    for (const line of ['key = "hush hush"', 'key = ["hush"]', 'ky = "hush"', 'key = { hush = 1 }']) {
      file('config/parley.toml', `[api]\n${line}`)
      expect(complaint(() => load())).not.toContain('hush')
    }
    expect(complaint(() => load({ env: { PARLEY_API_KEYS: 'hush' } }))).not.toContain('hush')
  })

  test('a message never shows a password in a URL', () => {
    const message = complaint(() => load({ env: { PARLEY_BASE_URL: 'https://me:hush@api.example.com' } }))
    expect(message).toContain('api.base_url is a URL with a user name (not shown)')
    expect(message).not.toContain('hush')
  })
})

describe('the API key', () => {
  const { PARLEY_API_KEY: _, ...rest } = API

  test('the key comes from --api-key-file, PARLEY_API_KEY, PARLEY_API_KEY_FILE, the credential or the settings file, in this order', () => {
    file('flagged', 'from-flag\n')
    file('named', 'from-named\n')
    file('credentials/api_key', 'from-credential\n')
    file('config/parley.toml', '[api]\nkey = "from-settings"')
    const flags = { 'api.key': 'flagged' }
    const env: Record<string, string> = {
      ...API,
      PARLEY_API_KEY_FILE: 'named',
      CREDENTIALS_DIRECTORY: join(cwd, 'credentials'),
    }
    const seen = [loadForApi({ flags, env }), loadForApi({ env })]
    for (const name of ['PARLEY_API_KEY', 'PARLEY_API_KEY_FILE', 'CREDENTIALS_DIRECTORY']) {
      delete env[name]
      seen.push(loadForApi({ env }))
    }
    expect(seen.map(({ settings }) => [settings.api.key, settings.api.keySource.text])).toEqual([
      ['from-flag', 'flagged (flag --api-key-file)'],
      ['the-key', 'environment PARLEY_API_KEY'],
      ['from-named', 'named (environment PARLEY_API_KEY_FILE)'],
      ['from-credential', 'systemd credential api_key'],
      ['from-settings', 'config/parley.toml'],
    ])
  })

  test('the key comes from the file that the settings file names, by a path relative to the settings file', () => {
    file('etc/acme.key', 'from-key-file\n')
    const load = (path: string) => {
      file('etc/acme.toml', `[api]\nkey_file = ${path}`)
      return loadForApi({ flags: { config: 'etc/acme.toml' }, env: rest })
    }
    for (const path of ['"acme.key"', '"../etc/acme.key"', JSON.stringify(join(cwd, 'etc/acme.key'))]) {
      const { settings, sources, warnings } = load(path)
      expect([settings.api.key, warnings]).toEqual(['from-key-file', []])
      expect(sources['api.key']).toMatch(/acme\.key \(etc\/acme\.toml\)$/)
    }
    expect(complaint(() => load('"nowhere"'))).toContain(
      "the API key's file etc/nowhere (etc/acme.toml) cannot be read: ENOENT",
    )
    expect(complaint(() => load('7'))).toContain(
      'api.key_file is 7 in etc/acme.toml: expected the path of a file',
    )
    expect(complaint(() => load('"acme.key"\nkey = "k"'))).toContain(
      'api.key and api.key_file are both in etc/acme.toml: keep one',
    )
  })

  test('the key in the environment overrides the file that the settings file names, which is then not read', () => {
    file('config/parley.toml', '[api]\nkey_file = "nowhere"')
    expect(loadForApi({ env: API }).settings.api.key).toBe('the-key')
  })

  test('a key file that is empty or cannot be read is an error that names the file', () => {
    file('empty', '\n')
    const load = (name: string) =>
      complaint(() => loadForApi({ env: { ...rest, PARLEY_API_KEY_FILE: name } }))
    expect(load('nowhere')).toContain(
      "the API key's file nowhere (environment PARLEY_API_KEY_FILE) cannot be read: ENOENT (there is no such file)",
    )
    expect(load('empty')).toContain("the API key's file empty (environment PARLEY_API_KEY_FILE) is empty")
  })

  test('a file content that is not a key is an error that names the file', () => {
    file('config/parley.key', 'two words')
    file('config/parley.toml', '[api]\nkey_file = "parley.key"')
    expect(complaint(() => loadForApi({ env: rest }))).toContain(
      'api.key is invalid (not shown) in config/parley.key (config/parley.toml): expected a key',
    )
  })

  test.each([0o640, 0o604, 0o620])(
    'a key file of mode %o, which others can read or change, is a warning',
    mode => {
      file('key', 'k', mode)
      file('config/parley.toml', '[api]\nkey = "k"', 0o604)
      expect(loadForApi({ env: { ...rest, PARLEY_API_KEY_FILE: 'key' } }).warnings).toEqual([
        'config/parley.toml holds the API key and others can read or change it: run chmod 600 on it',
        'key holds the API key and others can read or change it: run chmod 600 on it',
      ])
    },
  )

  test('a private key file in a folder in which others can replace it is a warning', () => {
    file('open/key', 'k')
    const warnings = () => loadForApi({ env: { ...rest, PARLEY_API_KEY_FILE: 'open/key' } }).warnings
    expect(warnings()).toEqual([])
    chmodSync(join(cwd, 'open'), 0o777)
    expect(warnings()).toEqual([
      `someone else may change open/key, which holds the API key: ${join(cwd, 'open')} can be changed by every user`,
    ])
  })

  test('a private key file and a systemd credential are no warnings', () => {
    file('key', 'k')
    file('credentials/api_key', 'k', 0o440)
    expect(loadForApi({ env: { ...rest, PARLEY_API_KEY_FILE: 'key' } }).warnings).toEqual([])
    expect(
      loadForApi({ env: { ...rest, CREDENTIALS_DIRECTORY: join(cwd, 'credentials') } }).warnings,
    ).toEqual([])
  })

  test('a command that sends no API requests does not look for the key', () => {
    expect(load({ env: { PARLEY_API_KEY_FILE: 'nowhere' } }).settings.api.key).toBeUndefined()
  })
})

describe('the nudge secret', () => {
  const secret = 'sixteen-or-more-characters'

  test('the nudge secret comes from its flag, its environment name, a file named there, the credential or the settings file', () => {
    file('flagged', `flag-${secret}\n`)
    file('named', `named-${secret}\n`)
    file('credentials/http_nudge_secret', `credential-${secret}`)
    file('config/parley.toml', `[http]\nnudge_secret = "settings-${secret}"`)
    const flags = { 'http.nudge_secret': 'flagged' }
    const env: Record<string, string> = {
      ...API,
      PARLEY_HTTP_NUDGE_SECRET: `environment-${secret}`,
      PARLEY_HTTP_NUDGE_SECRET_FILE: 'named',
      CREDENTIALS_DIRECTORY: join(cwd, 'credentials'),
    }
    const seen = [loadForApi({ flags, env }), loadForApi({ env })]
    for (const name of [
      'PARLEY_HTTP_NUDGE_SECRET',
      'PARLEY_HTTP_NUDGE_SECRET_FILE',
      'CREDENTIALS_DIRECTORY',
    ]) {
      delete env[name]
      seen.push(loadForApi({ env }))
    }
    expect(
      seen.map(({ settings, sources }) => [settings.http.nudgeSecret, sources['http.nudge_secret']]),
    ).toEqual([
      [`flag-${secret}`, 'flagged (flag --nudge-secret-file)'],
      [`environment-${secret}`, 'environment PARLEY_HTTP_NUDGE_SECRET'],
      [`named-${secret}`, 'named (environment PARLEY_HTTP_NUDGE_SECRET_FILE)'],
      [`credential-${secret}`, 'systemd credential http_nudge_secret'],
      [`settings-${secret}`, 'config/parley.toml'],
    ])
  })

  test('the nudge secret is optional', () => {
    expect(loadForApi({ env: API }).settings.http.nudgeSecret).toBeUndefined()
  })

  test.each(['fifteen-letters', 'sixteen and more with spaces', 'x'.repeat(201), 'ü'.repeat(16)])(
    'the nudge secret %j is refused and not shown',
    wrong => {
      file('short', wrong)
      const message = (source: string) =>
        `Invalid settings: http.nudge_secret is invalid (not shown) in ${source}: expected a secret of at least 16 and at most 200 printable ASCII characters without spaces`
      expect(complaint(() => load({ env: { PARLEY_HTTP_NUDGE_SECRET: wrong } }))).toBe(
        message('environment PARLEY_HTTP_NUDGE_SECRET'),
      )
      expect(complaint(() => loadForApi({ env: { ...API, PARLEY_HTTP_NUDGE_SECRET_FILE: 'short' } }))).toBe(
        message('short (environment PARLEY_HTTP_NUDGE_SECRET_FILE)'),
      )
    },
  )

  test('a secret file that other users can read is a warning, and a missing one is an error', () => {
    file('open', secret, 0o644)
    file('config/parley.toml', `[http]\nnudge_secret = "${secret}"`, 0o644)
    expect(loadForApi({ env: { ...API, PARLEY_HTTP_NUDGE_SECRET_FILE: 'open' } }).warnings).toEqual([
      'config/parley.toml holds the nudge secret and others can read or change it: run chmod 600 on it',
      'open holds the nudge secret and others can read or change it: run chmod 600 on it',
    ])
  })

  test('a missing secret file is an error only for commands that use the API', () => {
    const missing = { ...API, PARLEY_HTTP_NUDGE_SECRET_FILE: 'nowhere' }
    expect(complaint(() => loadForApi({ env: missing }))).toContain(
      "the nudge secret's file nowhere (environment PARLEY_HTTP_NUDGE_SECRET_FILE) cannot be read: ENOENT",
    )
    expect(load({ env: missing }).settings.http.nudgeSecret).toBeUndefined()
  })
})

describe('the hooks', () => {
  const name = 'PARLEY_HOOKS_ON_PROBLEM'

  test.each<[string, HookTarget]>([
    ['logger -t parley "$PARLEY_TEXT"', { by: 'command', command: 'logger -t parley "$PARLEY_TEXT"' }],
    ['curl https://example.com/', { by: 'command', command: 'curl https://example.com/' }],
    ['https://example.com/T0KEN?x=1', { by: 'webhook', url: 'https://example.com/T0KEN?x=1' }],
    ['http://127.0.0.1:8065/hooks/T0KEN', { by: 'webhook', url: 'http://127.0.0.1:8065/hooks/T0KEN' }],
    ['http://[::1]/T0KEN', { by: 'webhook', url: 'http://[::1]/T0KEN' }],
  ])('the hook %j is a command or a webhook', (value, expected) => {
    expect(load({ env: { [name]: value } }).settings.hooks.onProblem).toEqual(expected)
  })

  test.each([
    'http://example.com/T0KEN',
    'https://user:T0KEN@example.com/',
    'https://example.com/T0KEN and more',
    'ftp://example.com/T0KEN',
    'https://',
    'echo T0KEN\necho more',
    `echo T0KEN ${'x'.repeat(4000)}`,
    ' ',
  ])('the hook %j is refused and not shown', value => {
    const message = complaint(() => load({ env: { [name]: value } }))
    expect(message).toContain(
      `hooks.on_problem is invalid (not shown) in environment ${name}: expected a command`,
    )
    expect(message).not.toContain('T0KEN')
  })

  test('both hooks come from files that the settings file names, and are none without them', () => {
    file('problem.hook', 'echo problem\n')
    file('recovered.hook', 'https://example.com/T0KEN\n')
    file(
      'config/parley.toml',
      '[hooks]\non_problem_file = "../problem.hook"\non_recovered_file = "../recovered.hook"\nwait_minutes = 0',
    )
    expect(loadForApi({ env: API }).settings.hooks).toEqual({
      onProblem: { by: 'command', command: 'echo problem' },
      onRecovered: { by: 'webhook', url: 'https://example.com/T0KEN' },
      waitMinutes: 0,
    })
    file('config/parley.toml', '')
    expect(loadForApi({ env: API }).settings.hooks).toEqual({
      onProblem: undefined,
      onRecovered: undefined,
      waitMinutes: 15,
    })
  })

  test('the environment of a hook command contains no mistake, so that the command can run parley', () => {
    const env = Object.fromEntries(HOOK_VARIABLES.map(variable => [variable, 'x']))
    expect(loadForApi({ env: { ...API, ...env } }).warnings).toEqual([])
  })
})

test.each([
  ['http://api.example.com', 1],
  ['https://api.example.com', 0],
  ['http://127.0.0.1:8000', 0],
  ['http://localhost:8000', 0],
  ['http://[::1]:8000', 0],
  ['http://127.example.com', 1],
])('sending the key to %s gives %i warnings', (url, count) => {
  expect(load({ env: { PARLEY_BASE_URL: url } }).warnings).toHaveLength(count)
})

describe('a command that uses only the path of the database', () => {
  const used: SettingKey[] = ['database.path']

  test('the command warns of every wrong setting that it does not use, and takes its default', () => {
    file(
      'parley.toml',
      '[sync]\nresourcse = ["teams"]\npoll_seconds = "often"\n[nonsense]\na = 1\n[database]\npath = "a.db"',
    )
    const env = { PARLEY_CONFIG: 'parley.toml', PARLEY_SYNC_SINCE: 'soon', PARLEY_SYNC_POLL_SECOND: '5' }
    const { settings, warnings } = load({ env, used })
    expect(settings.database.path).toBe(join(cwd, 'a.db'))
    expect(settings.sync).toEqual(load().settings.sync)
    expect(warnings.map(warning => /[\w.]+(?= is| in)|\[nonsense\]/.exec(warning)?.[0])).toEqual([
      'PARLEY_SYNC_POLL_SECOND',
      'sync.resourcse',
      '[nonsense]',
      'sync.poll_seconds',
      'sync.since',
    ])
  })

  test.for([
    ['a wrong value', '[database]\npath = 7', 'database.path is 7'],
    ['a key that was probably meant', '[database]\npth = "a.db"', 'did you mean database.path?'],
    ['a section that was probably meant', '[databse]\npath = "a.db"', 'did you mean [database]?'],
    ['a file that is no TOML', '[sync', 'parley.toml is not TOML at line 1'],
  ])('the command refuses %s', ([, text = '', problem = '']) => {
    file('parley.toml', text)
    expect(complaint(() => load({ flags: { config: 'parley.toml' }, used }))).toContain(problem)
  })

  test('the command only warns of a file that is not TOML when a flag gives the path', () => {
    file('parley.toml', '[sync')
    const { settings, warnings } = load({ flags: { config: 'parley.toml', 'database.path': 'b.db' }, used })
    expect(settings.database.path).toBe(join(cwd, 'b.db'))
    expect(warnings).toEqual([expect.stringContaining('parley.toml is not TOML at line 1')])
  })
})

test('a base URL that ends with an API version is a warning that names the right one', () => {
  const warnings = (url: string) => load({ flags: { 'api.base_url': url } }).warnings
  expect(warnings('https://api.example.com/v1/')).toEqual([
    'api.base_url ends in /v1, but parley adds /v1 and /v2 itself: try https://api.example.com',
  ])
  expect(warnings('https://api.example.com/v1x')).toEqual([])
  expect(warnings('https://v1')).toEqual([])
})

test('a database of another user is used only if it is named, by commands that write to it', () => {
  const database = join(cwd, 'parley.db')
  // Belongs to the user of the tests, or to nobody when that is root.
  writeFileSync(database, '')
  giveToNobody(database)
  const another = { uid: 4711, gid: 4711 }
  const owner = { uid: statSync(database).uid, gid: 4711 }
  const used = (user: User, flags: SettingFlags = {}) =>
    loadForApi({ env: API, user, flags }).settings.database.path
  expect(complaint(() => used(another))).toBe(
    `Invalid settings: the database ${database} is not used, because it belongs to another user, who could read what parley writes`,
  )
  expect(() => used(another)).toThrow(
    expect.objectContaining({ hint: expect.stringContaining(`--database ${database}`) }),
  )
  expect([used(another, { 'database.path': 'parley.db' }), used(owner)]).toEqual([database, database])
  expect(load({ user: another }).settings.database.path).toBe(database)
  rmSync(database)
  expect(used(another)).toBe(database)
})

describe('a settings file that someone else may change', () => {
  const text = '[log]\nlevel = "warn"'
  const HOOK = '[hooks]\non_problem = "logger help"'

  test.each<[what: string, path: string, mode: number]>([
    ['file', 'config/parley.toml', 0o602],
    ['file of a group', 'config/parley.toml', 0o620],
    ['folder', 'config', 0o777],
    ['working directory', '.', 0o703],
  ])('is not used if nobody named it, and the hint has the option that names it: %s', (_, path, mode) => {
    file('config/parley.toml', text)
    chmodSync(join(cwd, path), mode)
    expect(complaint(() => load())).toMatch(
      /^Invalid settings: the settings file \S+config\/parley\.toml is not used, because someone else may change it: \S+ can be changed by (every user|its group)$/,
    )
    expect(() => load()).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('name it: --config config/parley.toml') }),
    )
    const flags = { config: 'config/parley.toml' }
    expect(load({ flags })).toMatchObject({
      settings: { log: { level: 'warn' } },
      warnings: path === '.' ? [] : [expect.stringMatching(/^someone else may change the settings file: /)],
    })
  })

  test('is used from a folder with the sticky bit, and through a link of this user', () => {
    file('elsewhere/parley.toml', text)
    symlinkSync('elsewhere', join(cwd, 'config'))
    chmodSync(cwd, 0o1777)
    expect(load()).toMatchObject({ settings: { log: { level: 'warn' } }, warnings: [] })
    chmodSync(join(cwd, 'elsewhere'), 0o777)
    expect(complaint(() => load())).toContain('elsewhere can be changed by every user')
  })

  test('never gives a command to run, in the file or in another one', () => {
    file('named.toml', HOOK, 0o620)
    const flags = { config: 'named.toml' }
    expect(complaint(() => loadForApi({ flags, env: API }))).toMatch(
      /hooks\.on_problem in named\.toml is a command, and someone else may change it: \S+named\.toml can be changed by its group/,
    )
    file('named.toml', '[hooks]\non_problem_file = "hook"')
    file('hook', 'logger help', 0o602)
    expect(complaint(() => loadForApi({ flags, env: API }))).toContain('hook can be changed by every user')
    chmodSync(join(cwd, 'hook'), 0o600)
    expect(loadForApi({ flags, env: API }).warnings).toEqual([])
    chmodSync(join(cwd, 'named.toml'), 0o620)
    expect(complaint(() => loadForApi({ flags, env: API }))).toContain(
      'is a command, and someone else may change it',
    )
  })

  test('may have the address of a webhook', () => {
    file('named.toml', '[hooks]\non_problem = "https://hooks.example.com/1"', 0o620)
    expect(loadForApi({ flags: { config: 'named.toml' }, env: API }).settings.hooks.onProblem).toMatchObject({
      by: 'webhook',
    })
  })
})
