import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { describe, expect, test } from 'vitest'
import { loadSettings } from '../../src/config/load-settings.ts'
import { renderSettingsFile } from '../../src/config/settings-file.ts'
import { findingsOf } from '../../src/doctor/finding.ts'
import { reportFindings } from '../../src/doctor/report-settings.ts'
import { guessedSettings, readGuesses } from '../../src/store/reporting/guessed-settings.ts'
import { readOverview } from '../../src/store/status/overview.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'

const HOSTILE = 'a"b\\c\n[api]\u007f受注'

function guessing(settings: readonly (readonly [name: string, value: string | null, isGuessed?: number])[]) {
  const store = temporaryStore()
  const insert = store.db.prepare(
    'INSERT INTO report_settings (name, value, is_guessed, why) VALUES (?, ?, ?, ?)',
  )
  store.atomically(() => {
    for (const [name, value, isGuessed = 1] of settings)
      insert.run(name, value, isGuessed, `Guessed: ${value} fits.`)
  })
  return store
}

function stages(
  store: TemporaryStore,
  rows: readonly (readonly [id: string, name: string | null, pipeline: string | null])[],
) {
  const insert = store.db.prepare(
    `INSERT INTO stage_outcomes (stage_id, stage, pipeline_id, position, outcome, is_guessed, why) VALUES (?, ?, ?, 1, 'won', 1, 'Its name says so.')`,
  )
  const pipeline = store.db.prepare(
    "INSERT OR IGNORE INTO pipelines (pipeline_id, pipeline, kind, position, is_percent) VALUES (?, ?, 'sales', 1, 0)",
  )
  store.atomically(() => {
    for (const [id, name, of] of rows) {
      if (of !== null) pipeline.run(of, of)
      insert.run(id, name, of)
    }
  })
}

const linesOf = ({ db }: TemporaryStore) => {
  const [note] = [...reportFindings(db, findingsOf('reports'))].filter(({ mark }) => mark === 'note')
  return note?.found.slice(note.found.indexOf('\n') + 1) ?? ''
}
const won = (store: TemporaryStore) =>
  guessedSettings(store.db).find(({ key }) => key === 'crm.deal.won')?.value

describe('what is guessed', () => {
  test('doctor prints it as TOML that the settings accept with the same values, whatever names are', () => {
    const store = guessing([
      ['crm.deal.amount', HOSTILE],
      ['crm.deal.lost', null, 0],
      ['crm.company.name', '[x]'.slice(1)],
      ['reporting.internal_domains', '["a.example","b.example"]'],
    ])
    stages(store, [['s1', HOSTILE, 'Sales']])
    const lines = linesOf(store)
    expect(parse(lines)).toEqual({
      crm: { company: { name: 'x]' }, deal: { amount: HOSTILE, won: [`Sales/${HOSTILE}`] } },
      reporting: { internal_domains: ['a.example', 'b.example'] },
    })
    const config = join(store.folder, 'parley.toml')
    writeFileSync(config, lines, { mode: 0o600 })
    const { settings } = loadSettings({ flags: { config }, env: {}, cwd: '/', requireApi: false })
    expect(settings.crmDeal).toMatchObject({ amount: HOSTILE, won: [`Sales/${HOSTILE}`] })
    expect(settings.reporting.internalDomains).toEqual(['a.example', 'b.example'])
  })

  test.each([
    ['a stage of a pipeline', [['s1', 'Won', 'Sales']], '["Sales/Won"]'],
    ['a stage of no pipeline', [['s1', 'Won', null]], '["Won"]'],
    ['a stage without a name', [['s1', null, 'Sales']], '["s1"]'],
    [
      'stages that have the same name in a pipeline',
      [
        ['s1', 'Won', 'Sales'],
        ['s2', 'won ', 'Sales'],
      ],
      '["s1","s2"]',
    ],
    [
      'a stage whose name another one has in its pipeline',
      [
        ['s1', 'Won', null],
        ['s2', 'Won', 'Sales'],
      ],
      '["s1","Sales/Won"]',
    ],
  ] as const)('%s is named so that no other is meant', (_, rows, value) => {
    const store = guessing([])
    stages(store, rows)
    expect(won(store)).toBe(value)
  })

  test('a setting that is there has no second line', () => {
    const store = guessing([['crm.deal.won', '["Sales/Done"]', 0]])
    stages(store, [['s1', 'Won', 'Sales']])
    expect(won(store)).toBeUndefined()
  })

  test('fields that were not found, objects and values of a status are no guesses to decide', () => {
    const store = guessing([
      ['crm.deal.owner', null],
      ['crm.deal.object', 'deal'],
      ['crm.deal.status_values', '{"won":["yes"]}'],
    ])
    expect(guessedSettings(store.db)).toEqual([])
  })

  test('the number of guesses is that of those that the report lists', () => {
    const store = guessing([
      ['crm.deal.amount', 'acv'],
      ['crm.deal.owner', null],
      ['crm.deal.name', 'title', 0],
    ])
    stages(store, [['s1', 'Won', 'Sales']])
    expect(readGuesses(store.db).map(({ name }) => name)).toEqual([
      'crm.deal.amount',
      'outcome of Sales / Won',
    ])
    expect(readOverview(store.db, Date.now()).guesses).toBe(2)
  })

  test('a settings file has each guess in a comment that no name can end', () => {
    const store = guessing([['crm.deal.amount', HOSTILE]])
    const guesses = new Map(guessedSettings(store.db).map(guess => [guess.key, guess]))
    const file = renderSettingsFile({}, guesses)
    expect(Object.values(parse(file)).flatMap(section => Object.keys(section))).toEqual(
      Object.values(parse(renderSettingsFile({}))).flatMap(section => Object.keys(section)),
    )
    expect(file).toContain(
      '# Guessed now: a"b\\c [api] 受注 fits.\n# amount = "a\\"b\\\\c\\n[api]\\u007f受注"\n',
    )
  })
})
