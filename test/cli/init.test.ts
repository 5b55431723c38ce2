import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadSettings } from '../../src/config.ts'
import { EXIT_STATUS } from '../../src/errors.ts'
import { emptyFolder, parley } from './parley.ts'

const FILE = 'config/parley.toml'
const read = (cwd: string, name = FILE) => readFileSync(join(cwd, name), 'utf8')

test('init makes the folder and a file that its owner alone can read, and says what to do next', async () => {
  const cwd = emptyFolder()
  const { status, stdout, stderr } = await parley(['init'], { cwd })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toMatch(/^Wrote config\/parley\.toml\. Next:\n/)
  expect(stdout).toContain('parley doctor\n')
  expect(statSync(join(cwd, FILE)).mode & 0o777).toBe(0o600)
  expect(readdirSync(join(cwd, 'config'))).toEqual(['parley.toml'])
})

test('--stdout prints the example file and writes none', async () => {
  const cwd = emptyFolder()
  const { status, stdout } = await parley(['init', '--stdout'], { cwd })
  const example = readFileSync(new URL('../../config/parley.example.toml', import.meta.url), 'utf8')
  expect({ status, stdout }).toEqual({ status: 0, stdout: example })
  expect(readdirSync(cwd)).toEqual([])
})

test('what is there already is not touched without --force', async () => {
  const cwd = emptyFolder()
  mkdirSync(join(cwd, 'config'))
  writeFileSync(join(cwd, FILE), '[log]\nlevel = "warn"\n')
  const { status, stdout, stderr } = await parley(['init'], { cwd })
  expect({ status, stdout }).toEqual({ status: EXIT_STATUS.usage, stdout: '' })
  expect(stderr).toMatch(
    /^parley: config\/parley\.toml is there already and was not touched\nhint: give --force /,
  )
  expect(read(cwd)).toBe('[log]\nlevel = "warn"\n')
})

test('--force writes over a file, even one that is wrong and that others can read', async () => {
  const cwd = emptyFolder()
  mkdirSync(join(cwd, 'config'))
  writeFileSync(join(cwd, FILE), 'not = toml = at all')
  chmodSync(join(cwd, FILE), 0o644)
  expect(await parley(['init', '--force'], { cwd })).toMatchObject({ status: 0, stderr: '' })
  expect(read(cwd)).toContain('# base_url = ')
  expect(statSync(join(cwd, FILE)).mode & 0o777).toBe(0o600)
})

test('settings given as flags are filled in and are read again', async () => {
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

test('the key of the environment does not get into the file', async () => {
  const cwd = emptyFolder()
  await parley(['init'], { cwd, env: { PARLEY_API_KEY: 'hush-hush' } })
  expect(read(cwd)).not.toContain('hush-hush')
})

test('--config and PARLEY_CONFIG say where it is written', async () => {
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

test('a place that cannot be written is said, and nothing half-written is left', async () => {
  const cwd = emptyFolder()
  writeFileSync(join(cwd, 'config'), 'a file where the folder should be')
  const { status, stderr } = await parley(['init'], { cwd })
  expect(status).toBe(EXIT_STATUS.settings)
  expect(stderr).toMatch(/^parley: config\/parley\.toml cannot be written: E/)
  expect(readdirSync(cwd)).toEqual(['config'])
})
