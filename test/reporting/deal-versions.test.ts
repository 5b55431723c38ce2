import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { loadSettings } from '../../src/config/load-settings.ts'
import { purgedContentTest } from '../../src/store/deletions/purged-content.ts'
import { ensureReportTables } from '../../src/store/reporting/derived-tables.ts'
import { openDuck } from '../export/duckdb.ts'
import { emptyTarget, exportTo, filesIn } from '../export/exporting.ts'
import { newFolder, openAt, type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { runs } from '../support/effort.ts'
import { reportsOf } from '../support/reports-of.ts'

const duck = await openDuck()

/** In Tokyo it is 21:00 then. */
const day = (number: number, hour = 12): string => new Date(Date.UTC(2026, 0, number, hour)).toISOString()

const ENV = {
  PARLEY_REPORTING_TIME_ZONE: 'Asia/Tokyo',
  PARLEY_CRM_DEAL_WON: 'won',
  PARLEY_CRM_DEAL_LOST: 'lost',
}

const field = (name: string, type: string) => ({ name, label: name, type, is_active: true })
const relation = (name: string, object: string | null, resource: string | null = null) => ({
  ...field(name, 'RELATION'),
  relation: { type: 'MANY_TO_ONE', target_object: object, target_resource: resource },
})

const DEAL_FIELDS = [
  ...[field('name', 'TEXT'), field('amount', 'NUMBER'), field('worth', 'NUMBER'), field('currency', 'TEXT')],
  ...[field('close_date', 'DATE'), field('is_closed', 'BOOLEAN'), field('forecast_category', 'TEXT')],
  ...[
    relation('stage_id', 'stage'),
    relation('pipeline_id', 'pipeline'),
    relation('owner_id', null, 'members'),
  ],
]

type Fields = Readonly<Record<string, unknown>>

const BASE = {
  name: 'Big',
  amount: 100,
  currency: 'EUR',
  stage_id: 'talk',
  pipeline_id: 'p',
  is_closed: false,
}

const configOf = (env: Readonly<Record<string, string>> = ENV) =>
  loadSettings({ flags: {}, env, cwd: '/', requireApi: false }).settings

/** A warehouse with the metadata of a CRM, in which deals can be read and read again. */
function workspace() {
  const store = temporaryStore()
  const records = (object: string, rows: Readonly<Record<string, Fields>>, now = day(1)) =>
    store.put(
      'crm_records',
      Object.entries(rows).map(([id, fields]) => ({ id, object, fields, created_at: day(1) })),
      { requested: object, now },
    )
  const metadata = { deal: DEAL_FIELDS, stage: [field('name', 'TEXT')], pipeline: [field('name', 'TEXT')] }
  for (const [name, fields] of Object.entries(metadata))
    store.put('crm_objects', [{ name, label: name, fields, is_custom: false }], { requested: name })
  records('pipeline', { p: { name: 'Sales' } })
  records('stage', {
    talk: { name: 'Talk' },
    offer: { name: 'Offer' },
    won: { name: 'Won' },
    lost: { name: 'Lost' },
  })
  const reports = reportsOf({ ...store, now: day(20) })
  return {
    store,
    records,
    read: (fields: Fields, now: string, id = 'd') => records('deal', { [id]: fields }, now),
    remove: (now: string, id = 'd') =>
      store.atomically(() => store.tombstone('crm_records', [['deal', id]], now)),
    purge: (now: string) => store.atomically(() => store.purger.purge({ before: now, limit: 1000, now })),
    update: async (env: Readonly<Record<string, string>> = ENV) => {
      await store.crmTables.finish()
      return reports.update(configOf(env))
    },
    /** Computes all versions again. */
    rebuild: async () => {
      store.atomically(() => store.resync(['reports'], day(20)))
      await reports.update(configOf())
    },
  }
}

const versions = (store: TemporaryStore, columns = '*') =>
  store.all(`SELECT ${columns} FROM deal_versions ORDER BY deal_id, from_at`)

const cells = (store: TemporaryStore, columns: string) =>
  versions(store, columns).map(row => Object.values(row))

describe('the versions of a deal', () => {
  test('begin when parley first read it, and with each change of what they show', async () => {
    const { store, read, update } = workspace()
    read(BASE, day(2))
    read({ ...BASE, name: 'Bigger' }, day(3))
    read({ ...BASE, amount: 250.5, stage_id: 'offer', currency: 'usd' }, day(4))
    read({ ...BASE, amount: 250.5, stage_id: 'won', is_closed: true, close_date: '2026-01-05' }, day(5))
    await update()
    expect(versions(store)[0]).toEqual({
      ...{ deal_id: 'd', from_at: day(2), to_at: day(4), from_day: '2026-01-02', to_day: '2026-01-04' },
      ...{
        is_last_of_day: 1,
        is_first_read: 1,
        pipeline_id: 'p',
        stage_id: 'talk',
        stage: 'Talk',
        amount: 100,
      },
      ...{ currency: 'EUR', close_date: null, owner_id: null, forecast_category: null, outcome: 'open' },
    })
    expect(cells(store, 'from_at, is_first_read, stage, amount, currency, close_date, outcome')).toEqual([
      [day(2), 1, 'Talk', 100, 'EUR', null, 'open'],
      [day(4), 0, 'Offer', 250.5, 'USD', null, 'open'],
      [day(5), 0, 'Won', 250.5, 'EUR', '2026-01-05', 'won'],
    ])
  })

  test('follow each other by changes, which have the values before and by how many days a date moved', async () => {
    const { store, read, update } = workspace()
    read({ ...BASE, close_date: '2026-02-28' }, day(2))
    read({ ...BASE, close_date: '2026-03-02', amount: 90 }, day(3))
    read({ ...BASE, close_date: null, amount: 90 }, day(4))
    await update()
    const columns =
      'seen_at, day, amount_before, amount, close_date_before, close_date, days_later, outcome_before'
    expect(store.all(`SELECT ${columns} FROM deal_changes ORDER BY seen_at`).map(Object.values)).toEqual([
      [day(3), '2026-01-03', 100, 90, '2026-02-28', '2026-03-02', 2, 'open'],
      [day(4), '2026-01-04', 90, 90, '2026-03-02', null, null, 'open'],
    ])
  })

  test('days are local days, and the last of a day is marked', async () => {
    const { store, read, update } = workspace()
    read(BASE, day(2, 14))
    read({ ...BASE, amount: 1 }, day(2, 16))
    read({ ...BASE, amount: 2 }, day(3, 10))
    read({ ...BASE, amount: 3 }, day(3, 16))
    await update()
    expect(cells(store, 'amount, from_day, to_day, is_last_of_day')).toEqual([
      [100, '2026-01-02', '2026-01-03', 1],
      [1, '2026-01-03', '2026-01-03', 0],
      [2, '2026-01-03', '2026-01-04', 1],
      [3, '2026-01-04', null, 1],
    ])
  })

  test('a value that does not fit its column was none, as in deals', async () => {
    const { store, read, update } = workspace()
    read({ ...BASE, amount: 'much', close_date: 'soon', currency: '  ' }, day(2))
    read({ ...BASE, amount: '17.5', close_date: '2026-03-04T05:06:07Z' }, day(3))
    read({ ...BASE, amount: 12_345_678_901_234, is_closed: 'false' }, day(4))
    read({ ...BASE, amount: '1e400', close_date: '2026-02-30' }, day(5))
    await update()
    expect(cells(store, 'amount, close_date, currency, outcome')).toEqual([
      [null, null, null, 'open'],
      [17.5, '2026-03-04', 'EUR', 'open'],
      [12_345_678_901_234, null, 'EUR', 'open'],
      [null, null, 'EUR', 'open'],
    ])
  })

  test('leave the warehouse with an export after a close date that is no day', async () => {
    const { store, read, update } = workspace()
    read({ ...BASE, close_date: '0000-00-00' }, day(2))
    read({ ...BASE, close_date: '2026-02-30' }, day(3))
    await update()
    const target = emptyTarget()
    await exportTo(store.path, target)
    const { types, rows } = await duck.table(target, 'deal_versions')
    expect(rows.map(row => row[Object.keys(types).indexOf('close_date')])).toEqual([null, null])
  })

  test('a field under a new name is the same field', async () => {
    const { store, read, update } = workspace()
    const { amount, ...others } = BASE
    read(BASE, day(2))
    read({ ...BASE, amount: 250 }, day(3))
    read({ ...others, worth: 250 }, day(4))
    read({ ...others, worth: 300, name: 'Bigger' }, day(5))
    read({ ...others, worth: amount }, day(2), 'other')
    await update({ ...ENV, PARLEY_CRM_DEAL_AMOUNT: 'worth' })
    expect(cells(store, 'deal_id, from_at, amount')).toEqual([
      ['d', day(2), 100],
      ['d', day(3), 250],
      ['d', day(5), 300],
      ['other', day(2), 100],
    ])
  })

  test('a field that appears while another field goes with another value is no field under a new name', async () => {
    const { store, read, update } = workspace()
    const { amount: _, ...others } = BASE
    read(BASE, day(2))
    read({ ...others, worth: 250 }, day(4))
    await update({ ...ENV, PARLEY_CRM_DEAL_AMOUNT: 'worth' })
    expect(cells(store, 'from_at, amount')).toEqual([
      [day(2), null],
      [day(4), 250],
    ])
  })

  test('are the same without typed tables', async () => {
    const { store, read, update, rebuild } = workspace()
    read({ ...BASE, amount: 7, is_closed: null, stage_id: 'won' }, day(2))
    read({ ...BASE, amount: 8.5, close_date: '2026-01-31' }, day(3))
    read({ ...BASE, amount: ' 750.5 ' }, day(2), 'spaces')
    await update()
    const amounts = () => store.column('SELECT amount FROM deals ORDER BY deal_id')
    const typed = versions(store)
    expect(amounts()).toEqual([8.5, null])
    store.exec('UPDATE crm_objects SET table_name = NULL; UPDATE crm_fields SET column_name = NULL')
    await rebuild()
    expect(versions(store)).toEqual(typed)
    expect(amounts()).toEqual([8.5, null])
    read({ ...BASE, amount: 9 }, day(4))
    await reportsOf({ ...store, now: day(20) }).update(configOf())
    expect(cells(store, 'amount')).toEqual([[7], [8.5], [9], [null]])
  })

  test('end with its deletion, and go on as if it had never gone when it comes back', async () => {
    const { store, read, remove, update } = workspace()
    read(BASE, day(2))
    remove(day(4))
    await update()
    expect(cells(store, 'from_at, to_at, stage, amount, outcome')).toEqual([
      [day(2), day(4), 'Talk', 100, 'open'],
      [day(4), null, null, null, 'gone'],
    ])
    read({ ...BASE, amount: 5 }, day(6))
    await update()
    expect(cells(store, 'from_at, to_at, amount, outcome')).toEqual([
      [day(2), day(6), 100, 'open'],
      [day(6), null, 5, 'open'],
    ])
  })

  test('a purge leaves key, times and outcome, also after all versions were computed again', async () => {
    const { store, read, remove, purge, update, rebuild } = workspace()
    read({ ...BASE, owner_id: 'mem_1', close_date: '2026-01-31', forecast_category: 'Commit' }, day(2))
    read({ ...BASE, is_closed: true, stage_id: 'won' }, day(3))
    read(BASE, day(2), 'other')
    remove(day(4))
    await update()
    const before = versions(store)
    purge(day(10))
    const values = ['pipeline_id', 'stage_id', 'stage', 'amount', 'currency', 'close_date', 'owner_id']
    const nothing = Object.fromEntries([...values, 'forecast_category'].map(name => [name, null]))
    const expected = before.map(row => (row['deal_id'] === 'd' ? { ...row, ...nothing } : row))
    expect(versions(store)).toEqual(expected)
    expect(before.map(({ outcome }) => outcome)).toEqual(['open', 'won', 'gone', 'open'])
    await update()
    expect(versions(store)).toEqual(expected)
    await rebuild()
    expect(versions(store)).toEqual(expected)
  })

  test('a purged deal that comes back shows no value of the time before', async () => {
    const { store, read, remove, purge, update } = workspace()
    read({ ...BASE, amount: 1 }, day(2))
    read({ ...BASE, amount: 2 }, day(3))
    remove(day(4))
    await update()
    purge(day(10))
    read({ ...BASE, amount: 9 }, day(11))
    await update()
    expect(cells(store, 'from_at, to_at, amount, stage, outcome')).toEqual([
      [day(2), day(3), null, null, 'open'],
      [day(3), day(11), null, null, 'open'],
      [day(11), null, 9, 'Talk', 'open'],
    ])
    read({ ...BASE, amount: 10 }, day(12))
    await update()
    expect(cells(store, 'from_at, amount, stage')).toEqual([
      [day(2), null, null],
      [day(3), null, null],
      [day(12), 10, 'Talk'],
    ])
  })

  test('a copy with values of a purged deal is recognised, and one of a record of another object is not', async () => {
    const { store, read, remove, records, purge, update } = workspace()
    read(BASE, day(2))
    records('stage', { e: { name: 'Extra' } }, day(2))
    read(BASE, day(2), 'e')
    remove(day(4))
    store.atomically(() => store.tombstone('crm_records', [['stage', 'e']], day(4)))
    await update()
    purge(day(10))
    const test = purgedContentTest(store.db, 'deal_versions', ['deal_id', 'from_at', 'stage', 'outcome'])
    expect(test?.(['d', day(2), 'Talk', 'open'])).toBe(true)
    expect(test?.(['d', day(2), null, 'open'])).toBe(false)
    expect(test?.(['e', day(2), 'Talk', 'open'])).toBe(false)
    expect(cells(store, 'deal_id, stage').filter(([id]) => id === 'e')).toEqual([['e', 'Talk']])
  })

  test.each<[what: string, env: Record<string, string>, amounts: number[], outcome: string, from: string]>([
    ['another field of the amount', { PARLEY_CRM_DEAL_AMOUNT: 'worth' }, [7, 8], 'open', '2026-01-03'],
    ['another meaning of a stage', { PARLEY_CRM_DEAL_WON: 'talk' }, [100, 1], 'won', '2026-01-03'],
    ['another zone', { PARLEY_REPORTING_TIME_ZONE: 'UTC' }, [100, 1], 'open', '2026-01-02'],
  ])('%s applies to the past too', async (_what, env, amounts, outcome, from) => {
    const { store, read, update } = workspace()
    read({ ...BASE, worth: 7 }, day(2, 18))
    read({ ...BASE, worth: 8, amount: 1 }, day(3))
    await update()
    await update({ ...ENV, ...env })
    expect(cells(store, 'amount, outcome')).toEqual(amounts.map(amount => [amount, outcome]))
    expect(cells(store, 'from_day')[0]).toEqual([from])
  })

  test('nothing is written while nothing has changed, and only changed deals otherwise', async () => {
    const { store, read, update, rebuild } = workspace()
    for (const id of ['aa1', 'aa2', 'bb1']) read(BASE, day(2), id)
    await update()
    const written: unknown[] = []
    store.db.function('written', (id: unknown) => void written.push(id))
    for (const [event, row] of [
      ['INSERT', 'NEW'],
      ['UPDATE', 'NEW'],
      ['DELETE', 'OLD'],
    ])
      store.db.exec(
        `CREATE TEMP TRIGGER written_${event} AFTER ${event} ON main.deal_versions BEGIN SELECT written(${row}.deal_id); END`,
      )
    await rebuild()
    read({ ...BASE, name: 'Other' }, day(3), 'bb1')
    await update()
    expect(written).toEqual([])
    store.exec("UPDATE deal_versions SET amount = -1 WHERE deal_id = 'bb1'")
    written.length = 0
    read({ ...BASE, amount: 3 }, day(4), 'aa1')
    await update()
    expect(new Set(written)).toEqual(new Set(['aa1']))
  })

  test('are computed again when that is requested', async () => {
    const { store, read, update, rebuild } = workspace()
    read(BASE, day(2))
    await update()
    store.exec('UPDATE deal_versions SET amount = 5')
    await update()
    expect(store.column('SELECT amount FROM deal_versions')).toEqual([5])
    await rebuild()
    expect(store.column('SELECT amount FROM deal_versions')).toEqual([100])
  })

  test('a later version of the table keeps the outcomes of purged deals', async () => {
    const { store, read, remove, purge, update } = workspace()
    read({ ...BASE, is_closed: true, stage_id: 'won' }, day(3))
    remove(day(4))
    await update()
    purge(day(10))
    store.db.exec('ALTER TABLE deal_versions ADD COLUMN mood TEXT')
    ensureReportTables(store.db)
    await reportsOf({ ...store, now: day(20) }).update(configOf())
    expect(cells(store, 'outcome')).toEqual([['won'], ['gone']])
    expect(store.column("SELECT name FROM pragma_table_info('deal_versions')")).not.toContain('mood')
  })

  test('leave the warehouse with an export, by month, and a change rewrites only the months that it touches', async () => {
    const { store, read, update } = workspace()
    const target = emptyTarget()
    const march = '2026-03-04T05:06:07.123Z'
    store.put('members', [{ id: 'mem_1', name: 'Aiko', email: 'aiko@example.com' }], { now: day(1) })
    store.put('teams', [{ id: 't', name: 'East', member_ids: ['mem_1'] }], { now: day(1) })
    read({ ...BASE, close_date: '2026-01-31' }, day(2))
    read({ ...BASE, amount: 5 }, march)
    read(BASE, day(2), 'e')
    await update()
    await exportTo(store.path, target)
    const { types, rows } = await duck.table(target, 'deal_versions')
    expect(types).toMatchObject({
      from_at: 'TIMESTAMP WITH TIME ZONE',
      from_day: 'DATE',
      is_first_read: 'BOOLEAN',
    })
    expect(rows.map(([id, from, to, fromDay]) => [id, from, to, fromDay]).sort()).toEqual([
      ['d', day(2), march, '2026-01-02'],
      ['d', march, null, '2026-03-04'],
      ['e', day(2), null, '2026-01-02'],
    ])
    expect((await duck.table(target, 'member_versions')).rows).toEqual([
      ['mem_1', day(1), null, 'Aiko', 'aiko@example.com', true],
    ])
    expect((await duck.table(target, 'team_versions')).rows).toEqual([['t', 'mem_1', day(1), null, 'East']])
    const before = filesIn(target)
    read({ ...BASE, amount: 6 }, '2026-03-05T05:06:07.123Z')
    await update()
    await exportTo(store.path, target)
    const after = filesIn(target)
    const written = [...after].flatMap(([file, found]) =>
      file.startsWith('deal_versions') && found.inode !== before.get(file)?.inode ? [file] : [],
    )
    expect(written.map(file => file.split('/')[1])).toEqual(['month=2026-03'])
  })

  test('are exact after a kill at any statement, once they are computed again', async () => {
    const { store, read, remove, update } = workspace()
    const folder = newFolder()
    let copies = 0
    store.db.function('kill', { varargs: true }, () => {
      copies += 1
      for (const suffix of ['', '-wal'])
        if (existsSync(store.path + suffix))
          copyFileSync(store.path + suffix, join(folder, `${copies}.db${suffix}`))
      return null
    })
    for (const table of ['deal_versions', 'sync_meta'])
      for (const event of ['INSERT', 'UPDATE', 'DELETE'])
        store.db.exec(
          `CREATE TEMP TRIGGER kill_${table}_${event} AFTER ${event} ON main.${table} BEGIN SELECT kill(); END`,
        )
    for (const id of ['a', 'b', 'c']) read(BASE, day(2), id)
    await update()
    read({ ...BASE, amount: 5 }, day(3), 'a')
    remove(day(3), 'b')
    copies = 0
    await update()
    const expected = versions(store)
    expect(copies).toBeGreaterThan(3)
    for (let copy = 1; copy <= copies; copy += 1) {
      const reopened = openAt(join(folder, `${copy}.db`))
      await reportsOf({ ...reopened, now: day(20) }).update(configOf())
      expect(reopened.db.prepare('SELECT * FROM deal_versions ORDER BY deal_id, from_at').all()).toEqual(
        expected,
      )
      reopened.close()
    }
  })
})

// ------------------------------------------------------------------------------------------------ random histories

interface Step {
  kind: 'read' | 'remove' | 'purge' | 'update'
  id: string
  fields: Fields
  /** Hours since the step before. */
  passed: number
}

const aStep: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('read', 'read', 'read', 'read', 'remove', 'purge', 'update'),
  id: fc.constantFrom('d1', 'd2', 'x'),
  fields: fc.record(
    {
      stage_id: fc.constantFrom('talk', 'offer', 'won', 'lost', 'nowhere', null),
      amount: fc.constantFrom(1, 2.5, '3', 'much', null),
      currency: fc.constantFrom('EUR', 'usd', ''),
      close_date: fc.constantFrom('2026-02-01', '2026-03-01', 'soon', null),
      owner_id: fc.constantFrom('mem_1', 'mem_2'),
      is_closed: fc.constantFrom(true, false, null),
      name: fc.constantFrom('A', 'B'),
    },
    { requiredKeys: [] },
  ),
  passed: fc.constantFrom(-30, 0, 1, 5, 12, 40),
})

interface Shown {
  stage_id: string | null
  amount: number | null
  currency: string | null
  close_date: string | null
  owner_id: string | null
  outcome: string
}

/** What a deal shows by its fields, in plain TypeScript. */
function shownBy(
  fields: Fields,
  stages: ReadonlyMap<string, { outcome: string; is_guessed: number }>,
): Shown {
  const stage_id = (fields['stage_id'] as string | undefined) ?? null
  const stage = stages.get(stage_id ?? '')
  const isClosed = fields['is_closed'] ?? null
  const byField = isClosed === null ? undefined : isClosed === false ? 'open' : 'closed'
  const isDecided = stage?.outcome === 'won' || stage?.outcome === 'lost'
  const outcome =
    stage?.is_guessed === 0 || (byField !== 'open' && isDecided)
      ? stage?.outcome
      : (byField ?? stage?.outcome ?? 'unknown')
  return {
    stage_id,
    amount: { '1': 1, '2.5': 2.5, '3': 3 }[String(fields['amount'])] ?? null,
    currency: String(fields['currency'] ?? '').toUpperCase() || null,
    close_date: /^\d/.test(String(fields['close_date'] ?? '')) ? String(fields['close_date']) : null,
    owner_id: (fields['owner_id'] as string | undefined) ?? null,
    outcome: outcome ?? 'unknown',
  }
}

/** The reads of a deal in the order of time, the later of two in one instant. */
interface Life {
  reads: { at: string; fields: Fields }[]
  goneAt: string | null
  /** Whether it was ever purged, or the clock was set back: then only the shape of its versions is known. */
  isBlurred: boolean
}

const TRACKED = ['stage_id', 'amount', 'currency', 'close_date', 'owner_id', 'is_closed']

/** The versions by the reads alone. A change of the name begins none. */
function expectedVersions({ reads, goneAt }: Life, shown: (fields: Fields) => Shown): unknown[] {
  const starts = reads.filter(({ fields }, index) => {
    const before = reads[index - 1]?.fields
    return (
      before === undefined ||
      TRACKED.some(name => JSON.stringify(fields[name]) !== JSON.stringify(before[name]))
    )
  })
  const known = starts.map(({ at, fields }, index) => ({
    from_at: at,
    to_at: starts[index + 1]?.at ?? goneAt,
    ...shown(fields),
  }))
  const none = { stage_id: null, amount: null, currency: null, close_date: null, owner_id: null }
  return goneAt === null ? known : [...known, { from_at: goneAt, to_at: null, ...none, outcome: 'gone' }]
}

describe('any history of deals', () => {
  test('the versions tile the time, the last is what deals says, and the earlier are what was read', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(aStep, { minLength: 1, maxLength: 30 }), async steps => {
        const { store, read, remove, purge, update, rebuild } = workspace()
        const lives = new Map<string, Life>()
        let hour = 24
        let latest = hour
        for (const { kind, id, fields, passed } of steps) {
          hour += passed
          const at = new Date(Date.UTC(2026, 0, 1, hour)).toISOString()
          const life = lives.get(id)
          if (hour < latest) for (const each of lives.values()) each.isBlurred = true
          latest = Math.max(latest, hour)
          if (kind === 'read') {
            read(fields, at, id)
            const isSameInstant = life?.reads.at(-1)?.at === at
            if (!life) lives.set(id, { reads: [{ at, fields }], goneAt: null, isBlurred: hour < latest })
            // A change in the instant of the first read, or of another change, is part of it.
            else
              life.reads.splice(isSameInstant ? -1 : life.reads.length, isSameInstant ? 1 : 0, { at, fields })
            if (life) life.goneAt = null
          }
          if (kind === 'remove' && life && life.goneAt === null) {
            remove(at, id)
            life.goneAt = at
            // A deal that was read in the instant of its deletion has no version of it.
            if (life.reads.at(-1)?.at === at) life.isBlurred = true
          }
          if (kind === 'purge' && [...lives.values()].some(({ goneAt }) => goneAt !== null)) {
            purge(new Date(Date.UTC(2026, 0, 1, latest + 1)).toISOString())
            for (const each of lives.values()) each.isBlurred ||= each.goneAt !== null
          }
          if (kind === 'update') await update()
        }
        await update()
        const all = versions(store)
        await rebuild()
        expect(versions(store)).toEqual(all)

        const stages = new Map(
          store
            .all('SELECT stage_id, outcome, is_guessed FROM stage_outcomes')
            .map(row => [String(row['stage_id']), row as { outcome: string; is_guessed: number }]),
        )
        const COLUMNS = 'stage_id, amount, currency, close_date, owner_id, outcome'
        const present = new Map(
          store.all(`SELECT deal_id, ${COLUMNS} FROM deals`).map(({ deal_id, ...row }) => [deal_id, row]),
        )
        for (const [id, life] of lives) {
          const own = store.all(
            `SELECT from_at, to_at, ${COLUMNS} FROM deal_versions WHERE deal_id = '${id}' ORDER BY from_at`,
          )
          own.forEach(({ from_at, to_at }, index) => {
            expect(to_at).toBe(own[index + 1]?.['from_at'] ?? null)
            expect(to_at === null || String(from_at) < String(to_at)).toBe(true)
          })
          const { from_at, to_at, ...last } = own.at(-1) ?? {}
          if (life.goneAt === null) expect(last).toEqual(present.get(id))
          else expect([from_at, last['outcome']]).toEqual([life.goneAt, 'gone'])
          if (!life.isBlurred) expect(own).toEqual(expectedVersions(life, fields => shownBy(fields, stages)))
        }
      }),
      { numRuns: runs(50) },
    )
  })
})
