import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadSettings } from '../../src/config/load-settings.ts'
import { SETTING_LIST } from '../../src/config/settings.ts'
import { renderSettingsFile } from '../../src/config/settings-file.ts'
import { renderSettingsReference, SMALLEST_FILE } from './settings-reference.ts'

const FOLDER = new URL('../../config/', import.meta.url).pathname

test('the reference in config/ agrees with the table of settings', async () => {
  await expect(renderSettingsReference()).toMatchFileSnapshot(join(FOLDER, 'README.md'))
})

test('the example file in config/ agrees with the table of settings', async () => {
  await expect(renderSettingsFile({})).toMatchFileSnapshot(join(FOLDER, 'parley.example.toml'))
})

function load(text: string, { requireApi } = { requireApi: false }) {
  const cwd = mkdtempSync(join(tmpdir(), 'parley-documents-'))
  writeFileSync(join(cwd, 'parley.toml'), text)
  writeFileSync(join(cwd, 'parley.key'), 'a-key\n', { mode: 0o600 })
  return loadSettings({ flags: { config: 'parley.toml' }, env: {}, cwd, requireApi })
}

test('the smallest settings file of the page is enough for the API', () => {
  const { settings } = load(SMALLEST_FILE, { requireApi: true })
  expect(settings.api).toMatchObject({ workspaceId: 'YOUR-WORKSPACE', key: 'a-key' })
})

test.each(SMALLEST_FILE.split('\n').slice(1, -1))('without its line %s it is not', line => {
  expect(() => load(SMALLEST_FILE.replace(line, ''), { requireApi: true })).toThrow(
    /Invalid|Missing|required/i,
  )
})

test('the unchanged example file changes no setting', () => {
  expect(new Set(Object.values(load(renderSettingsFile({})).sources))).toEqual(new Set(['default']))
})

test('the example file without its comment characters is valid', () => {
  const active = renderSettingsFile({})
    .replace(/^# (\w+ = )/gm, '$1')
    .replaceAll('"…"', '"a-key-or-a-secret"')
  const { sources, settings } = load(active)
  const places = Object.values(sources).map(source => source.replace(/^\S+ \((.*)\)$/, '$1'))
  expect(new Set(places)).toEqual(new Set(['parley.toml']))
  expect(settings.sync.since).toBe('2025-01-01T00:00:00.000Z')
})

test('values that are filled into the file are read back', () => {
  const { settings } = load(renderSettingsFile({ 'api.max_concurrency': '7', 'log.level': '"warn"' }))
  expect([settings.api.maxConcurrency, settings.log.level]).toEqual([7, 'warn'])
})

test.each(SETTING_LIST.filter(([, setting]) => setting.default !== undefined))(
  'the default of %s is allowed',
  (_, { kind, default: usual }) => expect(kind.read(usual, { cwd: '/' })).toBeDefined(),
)

test('no two settings share a flag', () => {
  const flags = SETTING_LIST.flatMap(([, { flag }]) => flag ?? [])
  expect(new Set(flags).size).toBe(flags.length)
})
