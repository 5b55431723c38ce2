import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXIT_STATUS } from '../../src/base/errors.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { emptyFolder, PROGRAM, parley } from './parley.ts'
import { backfilled } from './workspace.ts'

const FILE = 'config/parley.toml'
const read = (cwd: string, name = FILE) => readFileSync(join(cwd, name), 'utf8')

test('init creates the folder and a file that only its owner can read, and says what to do next', async () => {
  const cwd = emptyFolder()
  const { status, stdout, stderr } = await parley(['init'], { cwd })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toMatch(/^Wrote config\/parley\.toml\. Next:\n/)
  expect(stdout).toContain('parley doctor\n')
  expect(statSync(join(cwd, FILE)).mode & 0o777).toBe(0o600)
  expect(readdirSync(join(cwd, 'config'))).toEqual(['parley.toml'])
})

test('init creates the folder so that only its owner may write it, whatever the umask is', () => {
  const cwd = emptyFolder()
  const script = 'umask 0 && exec "$@"'
  const { status } = spawnSync('sh', ['-c', script, 'sh', process.execPath, PROGRAM, 'init'], { cwd })
  expect(status).toBe(0)
  expect(statSync(join(cwd, 'config')).mode & 0o777).toBe(0o755)
})

test('--stdout prints the example file and writes no file', async () => {
  const cwd = emptyFolder()
  const { status, stdout } = await parley(['init', '--stdout'], { cwd })
  const example = readFileSync(new URL('../../config/parley.example.toml', import.meta.url), 'utf8')
  expect({ status, stdout }).toEqual({ status: 0, stdout: example })
  expect(readdirSync(cwd)).toEqual([])
})

test('--stdout shows what the warehouse guesses, so that a person only removes the comment', async context => {
  const { cwd, file } = await backfilled(context, { deals: 20 })
  const { stdout } = await parley(['init', '--stdout'], { cwd })
  const amount = '# amount = "amount"'
  expect(stdout).toMatch(new RegExp(`# Guessed now: amount looks like .*\\n${amount}\\n`))
  expect(stdout).toMatch(/^# won = \[".*\/.*"\]$/m)
  writeFileSync(join(cwd, 'own.toml'), stdout.replace(amount, amount.slice(2)), { mode: 0o600 })
  const settings = loadSettings({ flags: { config: 'own.toml' }, env: {}, cwd, requireApi: false }).settings
  expect(settings.crmDeal.amount).toBe('amount')
  const other = await parley(['init', '--no-try'], { cwd, env: { PARLEY_DATABASE: file } })
  expect(other.stdout).toMatch(/Decide what is guessed: \d+ settings/)
})

test('a database that parley did not create is no reason for init to fail', async () => {
  const cwd = emptyFolder()
  writeFileSync(join(cwd, 'parley.db'), 'not a database')
  expect(await parley(['init'], { cwd })).toMatchObject({ status: 0, stderr: '' })
})

test('an existing file is not changed without --force', async () => {
  const cwd = emptyFolder()
  mkdirSync(join(cwd, 'config'))
  writeFileSync(join(cwd, FILE), '[log]\nlevel = "warn"\n')
  const { status, stdout, stderr } = await parley(['init'], { cwd })
  expect({ status, stdout }).toEqual({ status: EXIT_STATUS.usage, stdout: '' })
  expect(stderr).toMatch(
    /^parley: config\/parley\.toml already exists and was not changed\nhint: Use --force /,
  )
  expect(read(cwd)).toBe('[log]\nlevel = "warn"\n')
})

test('--force overwrites a file, even one that is wrong and that other users can read', async () => {
  const cwd = emptyFolder()
  mkdirSync(join(cwd, 'config'))
  writeFileSync(join(cwd, FILE), 'not = toml = at all')
  chmodSync(join(cwd, FILE), 0o644)
  expect(await parley(['init', '--force'], { cwd })).toMatchObject({ status: 0, stderr: '' })
  expect(read(cwd)).toContain('# base_url = ')
  expect(statSync(join(cwd, FILE)).mode & 0o777).toBe(0o600)
})

test('settings given as flags are filled in and read back', async () => {
  const cwd = emptyFolder()
  const flags = ['--base-url', 'https://api.example.com', '--workspace-id', 'a"b\\', '--max-concurrency', '3']
  const more = ['--only', 'teams, members', '--withdrawn-days', 'never', '--search', 'false']
  expect(await parley(['init', ...flags, ...more], { cwd })).toMatchObject({ status: 0 })
  const { settings } = loadSettings({ flags: {}, env: {}, cwd, requireApi: false })
  expect(settings).toMatchObject({
    api: { baseUrl: 'https://api.example.com', workspaceId: 'a"b\\', maxConcurrency: 3 },
    sync: { resources: ['teams', 'members'] },
    retention: { withdrawnDays: 'never' },
    search: { enabled: false },
  })
})

test('init asks only for what is still missing', async () => {
  const cwd = emptyFolder()
  const both = ['--base-url', 'https://api.example.com', '--workspace-id', '42']
  const filled = await parley(['init', ...both], { cwd })
  expect(filled.stdout).not.toContain('Fill in')
  expect(filled.stdout).toContain('1. Put the API key in config/parley.key, readable by you alone')
  const one = await parley(['init', '--force', ...both.slice(0, 2)], { cwd })
  expect(one.stdout).toContain('1. Fill in workspace_id under [api].\n')
  mkdirSync(join(cwd, 'keys'))
  writeFileSync(join(cwd, 'key'), 'a-key')
  const named = await parley(['init', '--force', ...both, '--api-key-file', 'keys/../key'], { cwd })
  expect(named.stdout).toContain('1. Check the settings: parley doctor\n')
  expect(read(cwd)).toContain(`\nkey_file = "${join(cwd, 'key')}"\n`)
  const early = await parley(['init', '--force', ...both, '--api-key-file', 'keys/later'], { cwd })
  expect(early.stdout).toContain(
    '1. Put the API key in keys/later, which does not exist yet, readable by you alone (chmod 600).\n  2. Check',
  )
  const around = { PARLEY_WORKSPACE_ID: '42', PARLEY_API_KEY_FILE: 'key' }
  const given = await parley(['init', '--force'], { cwd, env: around })
  expect(given.stdout).toContain('1. Fill in base_url under [api].\n  2. Check')
})

test('the key in the environment is not written to the file', async () => {
  const cwd = emptyFolder()
  await parley(['init'], { cwd, env: { PARLEY_API_KEY: 'hush-hush' } })
  expect(read(cwd)).not.toContain('hush-hush')
})

test('--config and PARLEY_CONFIG set the place of the file', async () => {
  const cwd = emptyFolder()
  const flagged = await parley(['init', '--config', 'a/b/acme.toml'], { cwd })
  expect(flagged.stdout).toContain('parley backfill --config a/b/acme.toml\n')
  const named = await parley(['init'], { cwd, env: { PARLEY_CONFIG: 'named.toml' } })
  expect(named.stdout).toContain('parley backfill\n')
  expect([read(cwd, 'a/b/acme.toml'), read(cwd, 'named.toml')]).toEqual([
    expect.stringContaining('[api]'),
    expect.stringContaining('[api]'),
  ])
})

test.each([['init'], ['init --force']])(
  'parley %s refuses a folder in place of the settings file',
  async line => {
    const cwd = emptyFolder()
    const { status, stderr } = await parley([...line.split(' '), '--config', '.'], { cwd })
    expect(status).toBe(EXIT_STATUS.usage)
    expect(stderr).toBe(
      'parley: . is a folder, not a file\nhint: Name a file with --config, such as a new one in that folder.\n',
    )
  },
)

test('an unwritable place is reported, and no partial file is left', async () => {
  const cwd = emptyFolder()
  writeFileSync(join(cwd, 'config'), 'a file where the folder should be')
  const { status, stderr } = await parley(['init'], { cwd })
  expect(status).toBe(EXIT_STATUS.settings)
  expect(stderr).toMatch(
    /^parley: config\/parley\.toml cannot be written: a part of its path is not a folder \(E\w+\)\nhint: Correct the path, /,
  )
  expect(readdirSync(cwd)).toEqual(['config'])
})
