import { describe, expect, test } from 'vitest'
import { loadSettings } from '../../src/config/load-settings.ts'
import type { SettingKey } from '../../src/config/settings.ts'
import { DERIVED_TABLES, REPORT_VIEWS } from '../../src/dictionary/report-tables.ts'
import { findingsOf } from '../../src/doctor/finding.ts'
import { reportFindings } from '../../src/doctor/report-settings.ts'
import { ensureReportTables } from '../../src/store/reporting/derived-tables.ts'
import type { ReportConfig } from '../../src/store/reporting/report-settings.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { reportsOf } from '../support/reports-of.ts'

const FIRST = '2026-01-10T16:00:00.000Z'
const NOW = '2026-03-04T05:00:00.000Z'
const LATER = '2026-02-10T16:00:00.000Z'
const MUCH_LATER = '2026-02-20T16:00:00.000Z'

function configOf(
  env: Readonly<Record<string, string>> = {},
  { used }: { used?: readonly SettingKey[] } = {},
): ReportConfig {
  return loadSettings({ flags: {}, env, cwd: '/', requireApi: false, ...(used && { used }) }).settings
}

const relation = (name: string, object: string | null, resource: string | null = null) => ({
  ...{ name, label: name, type: 'RELATION', is_active: true },
  relation: { type: 'MANY_TO_ONE', target_object: object, target_resource: resource },
})
const plainField = (name: string, type: string) => ({ name, label: name, type, is_active: true })

const DEAL_FIELDS = [
  plainField('name', 'TEXT'),
  plainField('amount', 'NUMBER'),
  plainField('currency', 'TEXT'),
  plainField('close_date', 'DATE'),
  plainField('probability', 'NUMBER'),
  plainField('is_closed', 'BOOLEAN'),
  relation('stage_id', 'stage'),
  relation('pipeline_id', 'pipeline'),
  relation('company_id', 'company'),
  relation('owner_id', null, 'members'),
]

type Fields = Readonly<Record<string, unknown>>

/** A warehouse with the metadata of a CRM, in which records can be read and read again. */
function workspace(dealFields: readonly object[] = DEAL_FIELDS) {
  const store = temporaryStore()
  const object = (name: string, fields: readonly object[], more: object = {}) =>
    store.put('crm_objects', [{ name, label: name, fields, is_custom: false, ...more }], {
      requested: name,
      now: FIRST,
    })
  const records = (name: string, rows: Readonly<Record<string, Fields>>, now = FIRST) =>
    store.put(
      'crm_records',
      Object.entries(rows).map(([id, fields]) => ({ id, object: name, fields, created_at: FIRST })),
      { requested: name, now },
    )
  object('deal', dealFields)
  object('stage', [
    plainField('name', 'TEXT'),
    plainField('position', 'NUMBER'),
    relation('pipeline_id', 'pipeline'),
  ])
  object('pipeline', [plainField('name', 'TEXT')])
  object('company', [plainField('name', 'TEXT'), plainField('website', 'TEXT')])
  object('contact', [
    plainField('name', 'TEXT'),
    plainField('email', 'TEXT'),
    plainField('opt-in?', 'BOOLEAN'),
  ])
  records('pipeline', { p: { name: 'Sales' }, r: { name: 'Renewals' } })
  records('stage', {
    talk: { name: 'Talk', position: 1, pipeline_id: 'p' },
    won: { name: 'Won', position: 2, pipeline_id: 'p' },
    lost: { name: 'Lost', position: 3, pipeline_id: 'p' },
    kept: { name: 'Renewed', position: 1, pipeline_id: 'r' },
  })
  const reports = reportsOf({ ...store, now: NOW })
  return {
    store,
    object,
    records,
    deals: (rows: Readonly<Record<string, Fields>>, now = FIRST) => records('deal', rows, now),
    update: async (...given: Parameters<typeof configOf>) => {
      await store.crmTables.finish()
      return reports.update(configOf(...given))
    },
    deal: (id = 'd') => store.all(`SELECT * FROM deals WHERE deal_id = '${id}'`)[0],
  }
}

const BASE = { name: 'Big', amount: 100, stage_id: 'talk', pipeline_id: 'p', is_closed: false }

describe('the view deals', () => {
  test('has a deal with the same columns in every workspace', async () => {
    const { store, deals, records, update, deal } = workspace()
    store.put('members', [{ id: 'mem_1', name: 'Aiko Tanaka' }])
    records('company', { c: { name: 'Acme', website: 'https://www.Acme.example/jp' } })
    deals({ d: { ...BASE, company_id: 'c', owner_id: 'mem_1', close_date: '2026-03-31', currency: 'eur' } })
    await update({ PARLEY_REPORTING_TIME_ZONE: 'Asia/Tokyo' })
    expect(deal()).toEqual({
      ...{ deal_id: 'd', deal: 'Big', company_id: 'c', company: 'Acme' },
      ...{ pipeline_id: 'p', pipeline: 'Sales', pipeline_kind: 'sales' },
      ...{ stage_id: 'talk', stage: 'Talk', stage_position: 1 },
      ...{ owner_id: 'mem_1', owner: 'Aiko Tanaka', owner_state: 'member' },
      ...{ amount: 100, currency: 'EUR', amount_reporting: null },
      ...{ created_day: '2026-01-11', close_date: '2026-03-31', closed_day: null, closed_from: null },
      ...{ days_to_close: null, probability: null, forecast_category: null, deal_type: null },
      ...{ lost_reason: null, next_step: null, outcome: 'open', object: 'deal' },
      ...{ open_deals: 1, won_deals: 0, lost_deals: 0 },
      ...{ open_amount: null, won_amount: null, lost_amount: null },
    })
    expect(store.all('SELECT company, domain FROM companies')).toEqual([
      { company: 'Acme', domain: 'acme.example' },
    ])
  })

  test.each([
    ['https://www.Acme.example/jp', 'acme.example'],
    [' HTTP://acme.example?utm=1', 'acme.example'],
    ['acme.example:8080/a', 'acme.example'],
    ['www.acme.example#top', 'acme.example'],
    ['https://mywww.com', 'mywww.com'],
    ['https://', null],
  ])('finds the domain of the company with the page %j', async (website, domain) => {
    const { store, deals, records, update } = workspace()
    records('company', { c: { name: 'Acme', website } })
    deals({ d: { ...BASE, company_id: 'c' } })
    await update()
    expect(store.column('SELECT domain FROM companies')).toEqual([domain])
  })

  test('has the same rows without typed tables', async () => {
    const { store, deals, update, deal } = workspace()
    deals({ d: { ...BASE, close_date: '2026-03-31', probability: 0.5, owner_id: 'gone-1234' } })
    await update()
    const typed = deal()
    store.exec('UPDATE crm_objects SET table_name = NULL; UPDATE crm_fields SET column_name = NULL')
    store.exec("UPDATE report_settings SET why = why || ' '")
    await workspaceUpdateOf(store)
    expect(deal()).toEqual(typed)
  })

  test.each([
    ['2024-02-29', '2024-02-29'],
    ['2026-02-29', null],
    ['2026-13-01', null],
    ['2026-04-31T10:00:00Z', null],
    ['0000-00-00', null],
    ['0000-12-31', null],
    ['0001-01-01', '0001-01-01'],
    ['9999-12-31', '9999-12-31'],
  ])('takes the close date %s for the day %s, with typed tables and without', async (sent, close_date) => {
    const { store, deals, update, deal } = workspace()
    deals({ d: { ...BASE, close_date: sent } })
    await update()
    expect(deal()).toMatchObject({ close_date })
    store.exec('UPDATE crm_objects SET table_name = NULL; UPDATE crm_fields SET column_name = NULL')
    store.exec("UPDATE report_settings SET why = why || ' '")
    await workspaceUpdateOf(store)
    expect(deal()).toMatchObject({ close_date })
  })

  test.each(['1e400', '-1e400'])(
    'takes %s, which is beyond the range of a double, for no number',
    async sent => {
      const { deals, records, update, deal } = workspace()
      records('stage', { talk: { name: 'Talk', position: sent, pipeline_id: 'p' } })
      deals({ d: { ...BASE, amount: sent } })
      await update()
      expect(deal()).toMatchObject({ amount: null, stage_position: null })
    },
  )

  test.each<[sent: unknown, amount: number | null]>([
    ['1,234.50', null],
    ['1.234,50', null],
    ['500 EUR', null],
    ['', null],
    ['1234.50', 1234.5],
    ['-2e3', -2000],
    [12, 12],
    ['9007199254740993', 9007199254740992],
  ])('takes %j in a text field for the amount %j, with typed tables and without', async (sent, amount) => {
    const fields = DEAL_FIELDS.map(field => (field.name === 'amount' ? plainField('amount', 'TEXT') : field))
    const { store, deals, update, deal } = workspace(fields)
    deals({ d: { ...BASE, amount: sent } })
    await update({ PARLEY_CRM_DEAL_AMOUNT: 'amount' })
    expect(deal()).toMatchObject({ amount })
    store.exec('UPDATE crm_objects SET table_name = NULL; UPDATE crm_fields SET column_name = NULL')
    store.exec("UPDATE report_settings SET why = why || ' '")
    await workspaceUpdateOf(store, { PARLEY_CRM_DEAL_AMOUNT: 'amount' })
    expect(deal()).toMatchObject({ amount })
  })

  test('finds a local day without reading the whole calendar', async () => {
    const { store, deals, update } = workspace()
    deals({ d: BASE })
    await update()
    const plan = store.all('EXPLAIN QUERY PLAN SELECT * FROM deals').map(({ detail }) => String(detail))
    expect(plan.filter(line => line.includes('calendar_by_utc_from')).length).toBeGreaterThan(1)
    expect(plan.filter(line => /^SCAN c\b/.test(line))).toEqual([])
  })

  test('declares the type of each column, like the views of companies and contacts', async () => {
    const text = ['next_step', 'forecast_category', 'deal_type', 'lost_reason'].map(name =>
      plainField(name, 'TEXT'),
    )
    const { store, update } = workspace([...DEAL_FIELDS, ...text])
    await update()
    const typeless =
      store.column(`SELECT v.name || '.' || c.name FROM sqlite_master v JOIN pragma_table_info(v.name) c
      WHERE v.name IN ('deals', 'deal_facts', 'companies', 'company_facts', 'contacts', 'contact_facts') AND c.type = ''`)
    expect(typeless).toEqual([])
  })

  test('is there, typed and empty, where the CRM has no deals', () => {
    const store = temporaryStore()
    expect(store.all('SELECT * FROM deals')).toEqual([])
    expect(store.column("SELECT name FROM pragma_table_info('deals')")).toHaveLength(34)
  })

  test('an object that the workspace made itself is not taken for that of deals, unless it is named', async () => {
    const { object, deals, update, deal } = workspace()
    object('deal', DEAL_FIELDS, { is_custom: true })
    deals({ d: BASE })
    await update()
    expect(deal()).toBeUndefined()
    await update({ PARLEY_CRM_DEAL_OBJECT: 'deal' })
    expect(deal()).toMatchObject({ deal: 'Big' })
  })

  test.each<[what: string, fields: Fields, env: Record<string, string>, outcome: string]>([
    [
      'a stage of the settings beats its own field',
      { stage_id: 'talk' },
      { PARLEY_CRM_DEAL_WON: 'Sales/Talk' },
      'won',
    ],
    ['its own field beats its stage', { stage_id: 'won', is_closed: false }, {}, 'open'],
    ['a closed deal is what its stage says', { stage_id: 'lost', is_closed: true }, {}, 'lost'],
    ['a closed deal of an open stage is closed', { stage_id: 'talk', is_closed: true }, {}, 'closed'],
    ['without a field, the stage says it', { stage_id: 'won', is_closed: null }, {}, 'won'],
    ['nothing says it', { stage_id: 'nowhere', is_closed: null }, {}, 'unknown'],
  ])('the outcome of a deal: %s', async (_what, fields, env, outcome) => {
    const { deals, update, deal } = workspace()
    deals({ other: BASE, d: { ...BASE, ...fields } })
    await update(env)
    expect(deal()).toMatchObject({ outcome })
  })

  test.each<[what: string, fields: Fields, outcome: string]>([
    ['won', { is_won: true, is_closed: true }, 'won'],
    ['closed and not won', { is_won: false, is_closed: true }, 'lost'],
    ['neither', { is_won: false, is_closed: false }, 'open'],
    ['of a status', { status: ' Won ' }, 'won'],
    ['of another status', { status: 'Abandoned' }, 'unknown'],
  ])('the outcome of a deal by its own fields: %s', async (_what, fields, outcome) => {
    const { deals, update, deal } = workspace([
      ...[plainField('name', 'TEXT'), plainField('is_won', 'BOOLEAN'), plainField('is_closed', 'BOOLEAN')],
      plainField('status', 'SELECT'),
    ])
    deals({ d: { name: 'Big', ...fields } })
    await update()
    expect(deal()).toMatchObject({ outcome })
  })

  test.each<[what: string, owner: unknown, expected: Fields]>([
    ['no one', null, { owner_id: null, owner: null, owner_state: 'none' }],
    ['a member without a name', 'mem_2', { owner: 'two@example.com', owner_state: 'unnamed' }],
    ['a member who has left', 'mem_3', { owner: 'Rosa Garcia', owner_state: 'left' }],
    ['a member who was never published', 'mem-9876', { owner: 'Former member 9876', owner_state: 'left' }],
  ])('its owner: %s', async (_what, owner_id, expected) => {
    const { store, deals, update, deal } = workspace()
    store.put('members', [
      { id: 'mem_2', email: 'two@example.com' },
      { id: 'mem_3', name: 'Rosa Garcia' },
    ])
    store.atomically(() => store.tombstone('members', [['mem_3']], LATER))
    deals({ d: { ...BASE, owner_id } })
    await update()
    expect(deal()).toMatchObject(expected)
  })

  test('its owner is unknown until members were read', async () => {
    const { deals, update, deal } = workspace()
    deals({ d: { ...BASE, owner_id: 'mem-9876' } })
    await update()
    expect(deal()).toMatchObject({ owner: 'Member 9876', owner_state: 'unknown' })
  })

  test('amounts are converted by the rates, and left alone in a currency without one', async () => {
    const { store, deals, update } = workspace()
    deals({
      a: { ...BASE, currency: 'EUR' },
      b: { ...BASE, currency: 'usd' },
      c: { ...BASE, currency: 'JPY' },
      d: BASE,
    })
    await update({ PARLEY_REPORTING_CURRENCY: 'EUR', PARLEY_REPORTING_RATES: 'USD=0.5' })
    expect(store.column('SELECT amount_reporting FROM deals ORDER BY deal_id')).toEqual([100, 50, null, null])
  })

  test('amounts are not converted by rates to a currency that is not set', async () => {
    const { deals, update, deal } = workspace()
    deals({ d: { ...BASE, currency: 'USD' } })
    await update({ PARLEY_REPORTING_RATES: 'USD=0.5' }, { used: [] })
    expect(deal()).toMatchObject({ amount: 100, amount_reporting: null })
  })

  test('a probability from 1 to 100 makes those of its pipeline per cent, and one outside of 0 to 100 is none', async () => {
    const { store, deals, update } = workspace()
    const renewal = { ...BASE, pipeline_id: 'r', stage_id: 'kept' }
    deals({
      a: { ...BASE, probability: 0.5 },
      b: { ...renewal, probability: 40 },
      c: { ...renewal, probability: 1 },
      d: { ...renewal, probability: 140 },
      e: { ...BASE, probability: -1 },
      f: { ...BASE, probability: 150 },
    })
    await update()
    expect(store.column('SELECT probability FROM deals ORDER BY deal_id')).toEqual([
      0.5,
      0.4,
      0.01,
      ...[null, null, null],
    ])
  })

  test('stages that hold shares stay shares where deals hold per cent', async () => {
    const { store, object, records, deals, update } = workspace()
    const inPipeline = [plainField('name', 'TEXT'), relation('pipeline_id', 'pipeline')]
    object('stage', [...inPipeline, plainField('probability', 'NUMBER')])
    records('stage', { talk: { name: 'Talk', pipeline_id: 'p', probability: 0.4 } })
    deals({ own: { ...BASE, probability: 70 }, none: BASE })
    await update()
    expect(store.column('SELECT probability FROM deals ORDER BY deal_id')).toEqual([0.4, 0.7])
    expect(store.column("SELECT probability FROM stage_outcomes WHERE stage_id = 'talk'")).toEqual([0.4])
  })

  test('the day on which it was closed is the one on which parley first saw it closed, else its close date', async () => {
    const { store, deals, update } = workspace()
    const closed = { ...BASE, is_closed: true, close_date: '2026-01-31', stage_id: 'won' }
    deals({ seen: BASE, found: closed, later: { ...BASE, close_date: '2026-01-31' } })
    deals({ seen: closed }, LATER)
    deals({ later: { ...BASE, close_date: '2026-01-31', stage_id: 'won' } }, LATER)
    deals({ seen: { ...closed, stage_id: 'lost' }, later: closed }, MUCH_LATER)
    await update({ PARLEY_REPORTING_TIME_ZONE: 'Asia/Tokyo' })
    expect(store.all('SELECT deal_id, closed_day, closed_from, days_to_close FROM deals ORDER BY 1')).toEqual(
      [
        { deal_id: 'found', closed_day: '2026-01-31', closed_from: 'close_date', days_to_close: 20 },
        { deal_id: 'later', closed_day: '2026-02-21', closed_from: 'observed', days_to_close: 20 },
        { deal_id: 'seen', closed_day: '2026-02-11', closed_from: 'observed', days_to_close: 20 },
      ],
    )
  })
})

/** Another start of the program. */
async function workspaceUpdateOf(
  store: TemporaryStore,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  await reportsOf({ ...store, now: NOW }).update(configOf(env))
}

test.each<[what: string, fields: Fields, name: string | null]>([
  ['its first and last name', { firstname: 'Aiko', lastname: 'Tanaka' }, 'Aiko Tanaka'],
  ['its last name, where it has no first name', { lastname: 'Tanaka' }, 'Tanaka'],
  [
    'its last and first name, in letters with that order',
    { firstname: '愛子', lastname: '田中' },
    '田中 愛子',
  ],
  [
    'its whole name, where it has one',
    { name: 'A. Tanaka', firstname: 'Aiko', lastname: 'Tanaka' },
    'A. Tanaka',
  ],
  ['no name, where it has none', { firstname: ' ', lastname: '' }, null],
])('a contact has %s', async (_, fields, name) => {
  const { store, object, records, update } = workspace()
  const texts = ['name', 'firstname', 'lastname', 'email']
  object(
    'contact',
    texts.map(field => plainField(field, 'TEXT')),
  )
  records('contact', { k: { ...fields, email: 'aiko@theirs.example' } })
  await update()
  expect(store.column('SELECT contact FROM contacts')).toEqual([name])
  expect(store.column("SELECT name FROM people WHERE person_id = 'aiko@theirs.example'")).toEqual([name])
})

describe('stages and pipelines', () => {
  test('a deleted stage keeps what it meant', async () => {
    const { store, deals, update, deal } = workspace()
    deals({ d: { ...BASE, stage_id: 'won', is_closed: null } })
    await update()
    store.atomically(() => store.tombstone('crm_records', [['stage', 'won']], LATER))
    store.exec("UPDATE crm_records SET fields = NULL WHERE object = 'stage' AND id = 'won'")
    await update()
    expect(store.all("SELECT stage, outcome, why FROM stage_outcomes WHERE stage_id = 'won'")).toEqual([
      { stage: null, outcome: 'won', why: 'It was deleted, and keeps what it meant before.' },
    ])
    expect(deal()).toMatchObject({ outcome: 'won' })
  })

  test.each<[env: Record<string, string>, kinds: string[]]>([
    [{}, ['sales', 'renewal']],
    [{ PARLEY_CRM_SALES_PIPELINES: 'renewals' }, ['other', 'sales']],
    [{ PARLEY_CRM_RENEWAL_PIPELINES: 'p' }, ['renewal', 'sales']],
  ])('with %j the pipelines are %j', async (env, kinds) => {
    const { store, deals, update } = workspace()
    deals({ d: BASE })
    await update(env)
    expect(store.column('SELECT kind FROM pipelines ORDER BY pipeline_id')).toEqual(kinds)
  })

  test('a stage that is a text has its values as stages', async () => {
    const { store, deals, update } = workspace([plainField('name', 'TEXT'), plainField('stage', 'SELECT')])
    deals({ a: { name: 'A', stage: 'Closed Won' }, b: { name: 'B', stage: 'Proposal' }, c: { name: 'C' } })
    await update()
    expect(store.all('SELECT deal, stage, outcome FROM deals ORDER BY 1')).toEqual([
      { deal: 'A', stage: 'Closed Won', outcome: 'won' },
      { deal: 'B', stage: 'Proposal', outcome: 'unknown' },
      { deal: 'C', stage: null, outcome: 'unknown' },
    ])
  })

  test('a deal whose own fields contradict each other counts in its stage as what the view deals says', async () => {
    const { store, deals, update } = workspace([
      ...[plainField('name', 'TEXT'), plainField('is_won', 'BOOLEAN'), plainField('is_closed', 'BOOLEAN')],
      ...[plainField('status', 'SELECT'), plainField('stage', 'SELECT')],
    ])
    deals({ d: { name: 'Big', stage: 'Done', status: 'Won', is_won: false, is_closed: true } })
    await update()
    expect(store.all('SELECT outcome FROM deals')).toEqual([{ outcome: 'lost' }])
    expect(store.all('SELECT outcome, why FROM stage_outcomes')).toEqual([
      { outcome: 'lost', why: 'Its only deal is lost.' },
    ])
  })
})

describe('the settings of reports', () => {
  const value = (store: TemporaryStore, name: string) =>
    store.all(`SELECT value, is_guessed FROM report_settings WHERE name = '${name}'`)[0]

  test('a guess, what the settings decide instead, and the change from one to the other are rows', async () => {
    const { store, deals, update } = workspace([...DEAL_FIELDS, plainField('worth', 'NUMBER')])
    deals({ d: BASE })
    await update()
    expect(value(store, 'crm.deal.amount')).toEqual({ value: 'amount', is_guessed: 1 })
    await update({ PARLEY_CRM_DEAL_AMOUNT: 'worth' })
    expect(value(store, 'crm.deal.amount')).toEqual({ value: 'worth', is_guessed: 0 })
    expect(store.all('SELECT name, old_value, new_value FROM report_settings_changes')).toEqual([
      { name: 'crm.deal.amount', old_value: 'amount', new_value: 'worth' },
    ])
  })

  test('a guess made while the CRM is read for the first time is no change, and a later one is', async () => {
    const names = ['name', 'amount', 'probability']
    const { store, object, update } = workspace([plainField('name', 'TEXT')])
    const read = async (count: number, now: string) => {
      const fields = names.slice(0, count).map(name => plainField(name, name === 'name' ? 'TEXT' : 'NUMBER'))
      object('deal', fields, { label: now })
      await update()
    }
    await update()
    await read(2, FIRST)
    expect(value(store, 'crm.deal.amount')).toEqual({ value: 'amount', is_guessed: 1 })
    store.exec(`UPDATE sync_resources SET first_complete_at = '${NOW}' WHERE resource LIKE 'crm_%'`)
    await update()
    expect(store.all('SELECT * FROM report_settings_changes')).toEqual([])
    await read(3, LATER)
    expect(store.all('SELECT name, old_value, new_value FROM report_settings_changes')).toEqual([
      { name: 'crm.deal.probability', old_value: null, new_value: 'probability' },
    ])
  })

  test('doctor shows the net change of a setting in seven days, and since when', async () => {
    const { store, deals, update } = workspace()
    deals({ d: BASE })
    await update()
    const at = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString()
    const note = store.db.prepare('INSERT INTO report_settings_changes VALUES (?, ?, ?, ?, ?)')
    note.run('crm.deal.amount', at(9), 'amount', null, '')
    note.run('crm.deal.amount', at(8), null, 'amount', '')
    note.run('crm.deal.currency', at(200), 'coin', 'cash', '')
    note.run('crm.deal.currency', at(7), 'cash', null, '')
    note.run('crm.deal.currency', at(6), null, 'currency', '')
    const found = [...reportFindings(store.db, findingsOf('reports'))]
    const day = `${at(6).slice(0, 16).replace('T', ' ')} UTC`
    expect(
      found.flatMap(({ found: text }) => (/^crm\.deal\.(amount|currency) is/.test(text) ? text : [])),
    ).toEqual([`crm.deal.currency is currency since ${day}; before it was cash`])
  })

  test('what fits nothing in the CRM is reported with what there is, and doctor shows it', async () => {
    const { store, deals, update } = workspace()
    deals({ d: BASE })
    const problems = await update({
      PARLEY_CRM_DEAL_AMOUNT: 'price',
      PARLEY_CRM_DEAL_WON: 'Sales/Wno',
      PARLEY_CRM_COMPANY_OBJECT: 'firm',
      PARLEY_CRM_RENEWAL_PIPELINES: 'Again',
    })
    expect(problems).toEqual([
      'crm.company.object: The settings name firm, which is no object of the CRM. There are: company, contact, deal, pipeline, stage.',
      expect.stringMatching(
        /^crm\.deal\.amount: The settings name price, which deal does not have\. It has: name, amount/,
      ),
      'crm.deal.won or crm.deal.lost names Sales/Wno, which is no stage. There are: Renewals/Renewed, Sales/Lost, Sales/Talk, Sales/Won.',
      'crm.renewal_pipelines names Again, which is no pipeline. There are: Sales, Renewals.',
    ])
    const found = [...reportFindings(store.db, findingsOf('reports'))]
    expect(found.filter(({ mark }) => mark === 'wrong').map(({ found: text }) => text)).toEqual(problems)
    expect(value(store, 'crm.deal.amount')).toEqual({ value: null, is_guessed: 0 })
  })

  test('doctor names the settings with which the tables were not computed yet', async () => {
    const { store, deals, update } = workspace()
    deals({ d: BASE })
    const notTaken = (env: Readonly<Record<string, string>>) =>
      [...reportFindings(store.db, findingsOf('reports'), { reports: configOf(env) })].flatMap(
        ({ found: text }) => /other settings: (.+)$/.exec(text)?.[1] ?? [],
      )
    const all = {
      ...{ PARLEY_REPORTING_TIME_ZONE: 'Asia/Tokyo', PARLEY_REPORTING_INTERNAL_DOMAINS: 'own.example' },
      ...{ PARLEY_CRM_DEAL_AMOUNT: 'price', PARLEY_CRM_DEAL_OWNER: 'none', PARLEY_CRM_DEAL_WON: 'Sales/Wno' },
      ...{ PARLEY_CRM_COMPANY_OBJECT: 'firm', PARLEY_CRM_CONTACT_EMAIL: 'email' },
    }
    await update(all)
    expect(notTaken(all)).toEqual([])
    expect(notTaken({ ...all, PARLEY_REPORTING_WEEK_START: 'sunday' })).toEqual(['reporting.week_start'])
    await update({})
    expect(notTaken({})).toEqual([])
    expect(notTaken(all)).toEqual([
      'reporting.time_zone, reporting.internal_domains, crm.deal.won, crm.deal.amount, crm.deal.owner, crm.company.object, crm.contact.email',
    ])
  })

  test('a stage or a pipeline that two settings name is reported once, and doctor shows it', async () => {
    const { store, deals, update } = workspace()
    deals({ d: BASE })
    const problems = await update({
      ...{ PARLEY_CRM_DEAL_WON: 'Lost', PARLEY_CRM_DEAL_LOST: 'Sales/Lost' },
      ...{ PARLEY_CRM_SALES_PIPELINES: 'Sales', PARLEY_CRM_RENEWAL_PIPELINES: 'sales,Renewals' },
    })
    expect(problems).toEqual([
      'crm.deal.won and crm.deal.lost both name Sales/Lost: expected one of them to name it.',
      'crm.sales_pipelines and crm.renewal_pipelines both name Sales: expected one of them to name it.',
    ])
    const found = [...reportFindings(store.db, findingsOf('reports'))]
    expect(found.filter(({ mark }) => mark === 'wrong').map(({ found: text }) => text)).toEqual(problems)
  })

  test('roles without a field are one warning of doctor, unless the settings say that there is none', async () => {
    const { store, deals, update } = workspace([plainField('name', 'TEXT'), plainField('status', 'TEXT')])
    deals({ d: { name: 'A' } })
    const warnings = async (env: Readonly<Record<string, string>>) => {
      await update(env)
      const found = [...reportFindings(store.db, findingsOf('reports'))]
      return found.flatMap(({ mark, found: text }) => (mark === 'warning' ? text : []))
    }
    const missing = 'no field of deal is known for crm.deal.amount, crm.deal.close_date, crm.deal.owner'
    expect(await warnings({})).toEqual([missing])
    expect(await warnings({ PARLEY_CRM_DEAL_STATUS: 'none' })).toContain(
      `${missing}, crm.deal.stage or crm.deal.is_closed`,
    )
    const none = Object.fromEntries(
      ['AMOUNT', 'CLOSE_DATE', 'OWNER', 'STAGE', 'STATUS'].map(role => [`PARLEY_CRM_DEAL_${role}`, 'none']),
    )
    expect((await warnings(none)).filter(text => text.startsWith('no field'))).toEqual([])
  })

  test('the calendar has the days of all deals, but not of dates that are mistakes', async () => {
    const { store, deals, update } = workspace()
    deals({
      ...{ a: { ...BASE, close_date: '2031-05-01' }, b: { ...BASE, close_date: '0202-05-01' } },
      ...{ c: { ...BASE, close_date: '2019-05-01' }, d: { ...BASE, close_date: '2910-05-01' } },
    })
    await update()
    expect(store.all('SELECT min(day) AS first, max(day) AS last FROM calendar')).toEqual([
      { first: '2017-01-01', last: '2031-12-31' },
    ])
  })

  test('nothing is computed again while neither the CRM nor the settings change', async () => {
    const { deals, update } = workspace()
    deals({ d: BASE })
    expect(await update()).toEqual([])
    expect(await update()).toBeUndefined()
    deals({ d: { ...BASE, amount: 5 } }, LATER)
    expect(await update()).toEqual([])
  })

  test('tables and views of other people keep their names, and then there are none for reports', async () => {
    const { store, deals, update } = workspace()
    deals({ d: BASE })
    await update()
    store.exec('DROP VIEW deals; CREATE VIEW deals AS SELECT 1 AS mine')
    dropReportObjects(store)
    ensureReportTables(store.db)
    await workspaceUpdateOf(store)
    expect(store.column("SELECT name FROM sqlite_master WHERE name IN ('calendar', 'people')")).toEqual([])
    expect(store.all('SELECT * FROM deals')).toEqual([{ mine: 1 }])
    expect([...reportFindings(store.db, findingsOf('reports'))]).toMatchObject([
      {
        mark: 'wrong',
        found: 'there are no tables and views for reports, since somebody else has made deals',
      },
    ])
  })
})

const dropReportObjects = (store: TemporaryStore) => {
  for (const { name } of REPORT_VIEWS) if (name !== 'deals') store.exec(`DROP VIEW IF EXISTS ${name}`)
  for (const { name } of DERIVED_TABLES) store.exec(`DROP TABLE ${name}`)
  for (const name of store.column(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB '_[a-z]*'",
  ))
    store.exec(`DROP TABLE ${name}`)
}

test('somebody else may have a name of those about conversations, and deals stay', async () => {
  const { store, deals, update, deal } = workspace()
  deals({ d: BASE })
  await update()
  dropReportObjects(store)
  store.exec('DROP VIEW deals; CREATE TABLE people (mine TEXT)')
  ensureReportTables(store.db)
  await workspaceUpdateOf(store)
  expect(deal()).toMatchObject({ deal: 'Big' })
  expect(store.column('SELECT deal_id FROM deal_versions')).toEqual(['d'])
  expect(store.column('SELECT DISTINCT table_name FROM column_values')).toContain('crm_fields')
  expect(
    store.column("SELECT name FROM sqlite_master WHERE name IN ('conversations', 'record_conversations')"),
  ).toEqual([])
  expect(store.column("SELECT name FROM pragma_table_info('people')")).toEqual(['mine'])
  expect([...reportFindings(store.db, findingsOf('reports'))][0]).toMatchObject({
    mark: 'wrong',
    found:
      'there are no tables and views for reports about conversations, since somebody else has made people',
  })
})

test('a name that somebody else has for a while takes nothing from what parley has made', async () => {
  const { store, deals, update } = workspace()
  deals({ d: BASE })
  await update()
  store.exec('DROP VIEW promises; CREATE TABLE promises (mine TEXT)')
  ensureReportTables(store.db)
  await workspaceUpdateOf(store)
  expect(store.column("SELECT name FROM sqlite_master WHERE name IN ('people', 'deals')")).toEqual(['deals'])
  store.exec('DROP TABLE promises')
  ensureReportTables(store.db)
  await workspaceUpdateOf(store)
  expect(
    store.column("SELECT name FROM sqlite_master WHERE name IN ('people', 'promises') ORDER BY 1"),
  ).toEqual(['people', 'promises'])
})

describe('deals of a CRM without pipelines', () => {
  const fields = [
    ...['Name', 'StageName'].map(name => plainField(name, 'TEXT')),
    plainField('Probability', 'NUMBER'),
    plainField('CloseDate', 'DATETIME'),
    plainField('CreatedDate', 'DATETIME'),
  ]

  test('probabilities above 1 are per cent, and 1 per cent is not certain', async () => {
    const { store, deals, update } = workspace(fields)
    const at = (StageName: string, Probability: number) => ({ Name: StageName, StageName, Probability })
    deals({ a: at('Early', 10), b: at('Cold', 1), c: at('Signed', 100) })
    await update()
    expect(store.all('SELECT deal, probability, outcome FROM deals ORDER BY deal_id')).toEqual([
      { deal: 'Early', probability: 0.1, outcome: 'unknown' },
      { deal: 'Cold', probability: 0.01, outcome: 'unknown' },
      { deal: 'Signed', probability: 1, outcome: 'won' },
    ])
  })

  test.each([
    ['2026-02-30T10:00:00Z', null],
    ['2026-02-13T25:00:00Z', null],
    ['2026-02-13T24:30:00Z', null],
    ['2026-02-13T24:00:00Z', '2026-02-14'],
    ['0000-00-00T00:00:00Z', null],
    ['2460000.5', null],
  ])('the instant %s is the day %s', async (CloseDate, day) => {
    const { deals, update, deal } = workspace(fields)
    deals({ d: { Name: 'x', CloseDate } })
    await update()
    expect(deal()).toMatchObject({ close_date: day })
  })

  test('instants of deals far before and after the present have their local days', async () => {
    const { store, deals, update } = workspace(fields)
    const instants = (CreatedDate: string, CloseDate: string) => ({ Name: 'x', CreatedDate, CloseDate })
    deals({
      a: instants('2016-05-05T10:00:00.000Z', '2026-01-15T10:00:00.000Z'),
      b: instants('2026-01-05T20:00:00.000Z', '2034-12-31T20:00:00.000Z'),
    })
    await update({ PARLEY_REPORTING_TIME_ZONE: 'Asia/Tokyo' })
    expect(store.all('SELECT created_day, close_date FROM deals ORDER BY deal_id')).toEqual([
      { created_day: '2016-05-05', close_date: '2026-01-15' },
      { created_day: '2026-01-06', close_date: '2035-01-01' },
    ])
  })
})

describe('the view periods', () => {
  async function periods(completeAsOf: string, env: Record<string, string> = {}) {
    const { store, update } = workspace()
    store.exec(`INSERT INTO sync_meta VALUES ('chosen_resources', '["members"]')
      ON CONFLICT DO UPDATE SET value = excluded.value;
      UPDATE sync_resources SET complete_as_of = '${completeAsOf}' WHERE resource = 'members'`)
    await update(env)
    const rows = store.all('SELECT * FROM periods')
    return new Map(rows.map(({ period, ...days }) => [period, Object.values(days)]))
  }

  test('counts from the local day up to which the warehouse is complete', async () => {
    const found = await periods('2026-02-28T16:00:00.000Z', { PARLEY_REPORTING_TIME_ZONE: 'Asia/Tokyo' })
    expect(found.get('last 7 days')?.slice(0, 6)).toEqual([
      ...['2026-02-23', '2026-03-02', '2026-02-16', '2026-02-23'],
      ...['2026-03-01', 20_513],
    ])
  })

  test.each([
    ['UTC', '2026-03-01T00:00:00.000Z', '2026-04-01T00:00:00.000Z'],
    ['Asia/Tokyo', '2026-02-28T15:00:00.000Z', '2026-03-31T15:00:00.000Z'],
    ['America/New_York', '2026-03-01T05:00:00.000Z', '2026-04-01T04:00:00.000Z'],
  ])('the bounds of March in %s are %s and %s', async (zone, from, to) => {
    const found = await periods('2026-03-15T12:00:00.000Z', { PARLEY_REPORTING_TIME_ZONE: zone })
    expect(found.get('this month')?.slice(-2)).toEqual([from, to])
  })

  test.each([
    ['this week', ['2026-02-23', '2026-03-02', '2026-02-16', '2026-02-23']],
    ['last month', ['2026-01-01', '2026-02-01', '2025-12-01', '2026-01-01']],
    ['next quarter', ['2026-04-01', '2026-07-01', '2026-01-01', '2026-04-01']],
    ['this fiscal quarter', ['2026-01-01', '2026-04-01', '2025-10-01', '2026-01-01']],
    ['this fiscal year', ['2025-04-01', '2026-04-01', '2024-04-01', '2025-04-01']],
    ['next year', ['2027-01-01', '2028-01-01', '2026-01-01', '2027-01-01']],
    ['last 4 quarters', ['2025-01-01', '2026-01-01', '2024-01-01', '2025-01-01']],
    ['last 4 fiscal quarters', ['2025-01-01', '2026-01-01', '2024-01-01', '2025-01-01']],
  ])('%s is %j', async (period, days) => {
    const found = await periods('2026-02-28T12:00:00.000Z', { PARLEY_REPORTING_FISCAL_YEAR_START: '4' })
    expect(found.get(period)?.slice(0, 4)).toEqual(days)
  })
})

describe('the view period_coverage', () => {
  const READ_AT = '2026-03-02T00:00:00.000Z'
  const LAST_MONTH = '2026-02-11T00:00:00.000Z'
  const LAST_YEAR = '2025-11-11T00:00:00.000Z'

  /** For meetings, results and transcripts: how many reads are left, when the lists were read and this read was not. */
  async function leftIn(
    period: string,
    task: { feed: string; at: string | null; key?: string; fails: boolean },
  ) {
    const { store, update } = workspace()
    store.exec(`UPDATE sync_resources SET complete_as_of = '${READ_AT}' WHERE resource = 'members';
      INSERT INTO sync_meta VALUES ('chosen_resources', '["members", "meetings", "playbook_results", "transcripts"]') ON CONFLICT DO UPDATE SET value = excluded.value;
      INSERT INTO sync_segments (feed, listed_at) VALUES ('meetings.list', '${READ_AT}')`)
    const row = { id: 'r', meeting_id: 'read', playbook_id: 'p' }
    store.put('playbook_results', [row], { requested: 'read', now: FIRST })
    store.db
      .prepare(
        'INSERT INTO sync_tasks (feed, key, sort_at, due_at, round, waiting, failures) VALUES (?, ?, ?, ?, ?, ?, ?)',
      )
      .run(task.feed, task.key ?? 'unread', task.at, READ_AT, ...(task.fails ? [1, 1, 3] : [0, 0, 0]))
    await update()
    const found = store.all(
      `SELECT complete, still_to_read FROM period_coverage
       WHERE period = '${period}' AND resource IN ('meetings', 'playbook_results', 'transcripts') ORDER BY resource`,
    )
    expect(found.every(one => (one['complete'] === 'yes') === (one['still_to_read'] === 0))).toBe(true)
    return found.map(one => one['still_to_read'])
  }

  test.each([
    ['a detail that fails', 'last month', { feed: 'meetings.detail', at: LAST_YEAR, fails: true }, [0, 0, 0]],
    [
      'a detail that fails',
      'last 4 quarters',
      { feed: 'meetings.detail', at: LAST_YEAR, fails: true },
      [1, 1, 1],
    ],
    ['a detail without a time', 'last month', { feed: 'meetings.detail', at: null, fails: false }, [1, 1, 1]],
    ['results', 'last month', { feed: 'playbook_results.read', at: LAST_MONTH, fails: true }, [0, 1, 0]],
    [
      'new results of a meeting whose results are stored',
      'last month',
      { feed: 'playbook_results.read', key: 'read', at: LAST_MONTH, fails: true },
      [0, 0, 0],
    ],
  ])('without %s, %s lacks what belongs to it', async (_, period, task, left) => {
    expect(await leftIn(period, task)).toEqual(left)
  })
})
