import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadSettings } from '../../src/config/load-settings.ts'
import { EXIT_STATUS } from '../../src/errors.ts'
import { requirePrograms } from '../systemd/tools.ts'
import { emptyFolder, PROGRAM, parley } from './parley.ts'

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
  const named = await parley(['init', '--force', ...both, '--api-key-file', '../key'], { cwd })
  expect(named.stdout).toContain('1. Check the settings: parley doctor\n')
  expect(read(cwd)).toContain(`\nkey_file = "${join(cwd, '../key')}"\n`)
  const around = { PARLEY_WORKSPACE_ID: '42', PARLEY_API_KEY_FILE: 'key' }
  const given = await parley(['init', '--force'], { cwd, env: around })
  expect(given.stdout).toContain('1. Fill in base_url under [api].\n  2. Check')
})

test('on a terminal init asks for the key, does not show it, and writes it to a private file next to the settings', async () => {
  requirePrograms('python3')
  const cwd = emptyFolder()
  const flags = ['--config', 'acme.toml', '--base-url', 'https://api.example.com', '--workspace-id', '42']
  const { status, shown } = onTerminal(cwd, ['init', ...flags], 'the-keX\u007fy\r')
  expect({ status, shown }).toEqual({ status: 0, shown: expect.not.stringMatching(/the-ke/) })
  expect(shown).toContain('API key (not shown; press Enter to skip): ')
  expect(shown).toContain('1. Check the settings: parley doctor --config acme.toml')
  expect(read(cwd, 'acme.key')).toBe('the-key\n')
  expect(statSync(join(cwd, 'acme.key')).mode & 0o777).toBe(0o600)
  expect(read(cwd, 'acme.toml')).toContain('\nkey_file = "acme.key"\n')
  const { settings } = loadSettings({ flags: { config: 'acme.toml' }, env: {}, cwd, requireApi: true })
  expect(settings.api.key).toBe('the-key')
})

test.each([
  ['Ctrl-C', 'half\u0003', EXIT_STATUS.unfinished],
  ['what is no key', 'two words\r', EXIT_STATUS.usage],
])('%s in place of the key writes no file', (_, typed, status) => {
  const cwd = emptyFolder()
  expect(onTerminal(cwd, ['init'], typed)).toMatchObject({
    status,
    shown: expect.not.stringContaining(typed),
  })
  expect(readdirSync(cwd)).toEqual([])
})

test('Enter alone skips the key', () => {
  const cwd = emptyFolder()
  const { status, shown } = onTerminal(cwd, ['init'], '\r')
  expect({ status, shown }).toEqual({ status: 0, shown: expect.stringContaining('2. Put the API key in') })
  expect(readdirSync(join(cwd, 'config'))).toEqual(['parley.toml'])
})

/** Runs the program on a pseudo-terminal and types this text when it asks. */
function onTerminal(cwd: string, args: readonly string[], typed: string): { status: number; shown: string } {
  const script = `
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[2], sys.argv[2:])
shown, typed = b"", False
while True:
    try:
        part = os.read(terminal, 4096)
    except OSError:
        break
    if not part:
        break
    shown += part
    if not typed and b"to skip): " in shown:
        os.write(terminal, sys.argv[1].encode())
        typed = True
os.write(1, shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))`
  const { status, stdout } = spawnSync('python3', ['-c', script, typed, process.execPath, PROGRAM, ...args], {
    cwd,
    encoding: 'utf8',
    // Only for a program that hangs.
    timeout: 600_000,
    env: { PATH: process.env['PATH'] },
  })
  return { status: status ?? -1, shown: stdout }
}

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

test('an unwritable place is reported, and no partial file is left', async () => {
  const cwd = emptyFolder()
  writeFileSync(join(cwd, 'config'), 'a file where the folder should be')
  const { status, stderr } = await parley(['init'], { cwd })
  expect(status).toBe(EXIT_STATUS.settings)
  expect(stderr).toMatch(/^parley: config\/parley\.toml cannot be written: E/)
  expect(readdirSync(cwd)).toEqual(['config'])
})
