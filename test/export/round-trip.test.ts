import { describe, expect, test } from 'vitest'
import { TABLES } from '../../src/catalog/catalog.ts'
import type { ColumnKind } from '../../src/declare/table.ts'
import { declaredTables } from '../../src/export/export-tables.ts'
import { rowQueries } from '../../src/export/row-queries.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { markedWorld } from '../store/unique-texts.ts'
import { share } from '../support/effort.ts'
import { type DuckCell, openDuck, sorted } from './duckdb.ts'
import { emptyTarget, exportTo, manifestOf, storedRows } from './exporting.ts'

const duck = await openDuck()

/** The value that a reader must get from each kind of column. */
const DUCK_TYPES: Readonly<Record<ColumnKind, string>> = {
  text: 'VARCHAR',
  json: 'VARCHAR',
  integer: 'BIGINT',
  real: 'DOUBLE',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMP WITH TIME ZONE',
  date: 'DATE',
}

/** Columns of the contract with their kinds, internal ones left out. */
function contract(table: string): Record<string, ColumnKind> {
  const declared = TABLES.get(table)?.table
  if (!declared) throw new Error(`no table ${table}`)
  const own = Object.entries(declared.columns).map(([name, { kind }]) => [name, kind] as const)
  return Object.fromEntries([
    ...own.filter(([name]) => !name.startsWith('_')),
    ...(declared.kind === 'entity'
      ? ['_first_seen_at', '_synced_at', '_changed_at', '_deleted_at'].map(
          name => [name, 'timestamp'] as const,
        )
      : []),
    ...(declared.kind === 'link' ? [] : [['_extra', 'json'] as const]),
  ])
}

function cellAs(type: string | undefined, cell: string | number | bigint | null): DuckCell {
  if (cell === null) return null
  if (type === 'BOOLEAN') return cell === 1n
  return type === 'DOUBLE' ? Number(cell) : cell
}

/** Compares one table, value by value and type by type. Returns its number of rows. */
async function compareTable(store: TemporaryStore, target: string, table: string): Promise<number> {
  const kinds = contract(table)
  const found = await duck.table(target, table)
  const { month, ...types } = found.types
  expect(types, table).toEqual(
    Object.fromEntries(Object.entries(kinds).map(([name, kind]) => [name, DUCK_TYPES[kind]])),
  )
  const names = Object.keys(kinds)
  const stored = storedRows(store.path, `SELECT ${names.map(name => `"${name}"`).join(', ')} FROM "${table}"`)
  const expected = stored.map(row => row.map((cell, index) => cellAs(types[names[index] ?? ''], cell)))
  const rows = month === undefined ? found.rows : found.rows.map(row => row.slice(0, -1))
  expect(sorted(rows), table).toEqual(sorted(expected))
  return rows.length
}

const MONTHS: readonly [table: string, time: string][] = [
  ['activities', 'occurred_at'],
  ['message_copies', 'received_at'],
  ['messages', 'received_at'],
  ['meetings', 'start_time'],
  ['playbook_results', 'created_at'],
  ['crm_record_changes', 'observed_at'],
  ['access_logs', 'occurred_at'],
]

/** Texts that often break in writers and readers. */
const TEXTS = [
  '',
  ' ',
  '\u0000 between',
  '日本語の件名、長さ',
  '👩‍👩‍👧‍👦🏴‍☠️',
  '\u{10FFFF}',
  '"\\\n\r\t',
  "'; --",
  'NULL',
  'é',
]

function writeEdges(store: TemporaryStore): void {
  const { db } = store
  const member = db.prepare(
    "INSERT INTO members (id, name, email, role, _first_seen_at, _synced_at) VALUES (?, ?, NULL, ?, '0001-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z')",
  )
  for (const [index, text] of TEXTS.entries()) member.run(`edge ${index}`, text, text)
  member.run('long', 'ab漢'.repeat(600_000), null)
  const log = db.prepare(
    "INSERT INTO access_logs (id, occurred_at, status_code, duration_ms, _first_seen_at, _synced_at) VALUES (?, ?, ?, ?, '1969-12-31T23:59:59.999Z', '1970-01-01T00:00:00.001Z')",
  )
  const wholes = [0n, -1n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 31n, null]
  const times = ['0001-01-01T00:00:00.000Z', '1969-12-31T23:59:59.999Z', '2024-02-29T23:59:59.999Z', null]
  for (const [index, whole] of wholes.entries())
    log.run(`whole ${index}`, times[index % times.length], whole, whole)
  const hint = db.prepare('INSERT INTO bot_transcription_hints (position, hint, intensity) VALUES (?, ?, ?)')
  const reals = [0.1 + 0.2, 5e-324, -0, 1.7976931348623157e308, 2 ** 53 + 2, null]
  for (const [index, real] of reals.entries()) hint.run(1000 + index, 'edge', real)
  const item = db.prepare(
    'INSERT INTO meeting_action_items (meeting_id, id, position, due_date, completed) VALUES (?, ?, ?, ?, ?)',
  )
  const [meeting] = store.column('SELECT id FROM meetings LIMIT 1')
  for (const [index, day] of ['0001-01-01', '2024-02-29', '9999-12-31', null].entries()) {
    item.run(meeting, `edge ${index}`, 1000 + index, day, [0, 1, null][index % 3])
  }
}

describe('an export that DuckDB reads back', () => {
  test('every table of the contract has every row, value and type of the warehouse', async () => {
    const store = temporaryStore()
    markedWorld(store, value => value).write('2026-03-04T05:06:07.123Z')
    store.db.exec(
      "INSERT INTO collection_meetings VALUES ('col_1', 'mtg_1'); INSERT INTO crm_record_links VALUES ('deal', 'a', 'company', 'b')",
    )
    store.db.exec(
      "INSERT INTO access_logs (id, occurred_at, _first_seen_at, _synced_at) VALUES ('l', '2026-03-04T05:06:07.123Z', '2026-03-04T05:06:07.123Z', '2026-03-04T05:06:07.123Z')",
    )
    const target = emptyTarget()
    await exportTo(store.path, target)
    for (const table of TABLES.keys())
      expect(await compareTable(store, target, table), table).toBeGreaterThan(0)
  })

  test('extreme values of each type arrive unchanged', async () => {
    const store = temporaryStore()
    markedWorld(store, value => value).write('2026-03-04T05:06:07.123Z')
    writeEdges(store)
    const target = emptyTarget()
    await exportTo(store.path, target)
    for (const table of ['members', 'access_logs', 'bot_transcription_hints', 'meeting_action_items']) {
      expect(await compareTable(store, target, table)).toBeGreaterThanOrEqual(4)
    }
  })

  test('tables without rows have their columns', async () => {
    const store = temporaryStore()
    const target = emptyTarget()
    await exportTo(store.path, target)
    const empty = [...TABLES.keys(), 'sync_rejects']
    for (const table of TABLES.keys()) expect(await compareTable(store, target, table)).toBe(0)
    const files = manifestOf(target).tables.filter(({ table }) => empty.includes(table))
    expect(files.map(({ rows, files: { length } }) => [rows, length])).toEqual(empty.map(() => [0, 1]))
  })

  test('a month with more rows than a row group is complete, also when texts fill the group earlier', async () => {
    const store = temporaryStore()
    const add = store.db.prepare(
      "INSERT INTO activities (id, occurred_at, type, _first_seen_at, _synced_at) VALUES (?, ?, ?, '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z')",
    )
    store.db.transaction(() => {
      for (let index = 0; index < 45_000; index += 1) {
        const type = index < 300 ? '長い'.repeat(20_000) : `type ${index % 7}`
        add.run(`a${index}`, `2026-02-0${1 + (index % 9)}T00:00:00.000Z`, type)
      }
    })()
    const target = emptyTarget()
    await exportTo(store.path, target, { tables: ['activities'] })
    expect(await compareTable(store, target, 'activities')).toBe(45_000)
    const groups = await duck.read(
      `SELECT count(DISTINCT row_group_id) FROM parquet_metadata('${target}/activities/*/*.parquet')`,
    )
    expect(Number(groups.rows[0]?.[0])).toBeGreaterThan(3)
  })

  test('the participants of merged e-mails and the description of the warehouse are tables too', async () => {
    const store = temporaryStore()
    markedWorld(store, value => value).write('2026-03-04T05:06:07.123Z')
    store.rejects.note(
      { resource: 'messages', feed: 'messages.list', scope: '', item: { a: 'é' }, reason: 'no id' },
      '2026-03-04T05:06:07.123Z',
    )
    const target = emptyTarget()
    await exportTo(store.path, target)
    for (const [table, columns] of [
      ['message_participants', 'header_message_id, role, handle, display_name, contact_id'],
      ['sync_coverage', 'resource, from_at, to_at, listed_at, rows_live, bodies_present, bodies_pending'],
      ['sync_rejects', 'id, resource, item, reason, first_seen_at, last_seen_at, resolved_at'],
      ['sync_status', 'resource, state, reason, rows_live, rows_deleted, newest_at, fresh_as_of'],
      [
        'data_dictionary',
        'table_name, column_name, position, type, null_meaning, description, source_field, unit, example',
      ],
    ] as const) {
      const found = await duck.read(
        `SELECT ${columns} FROM read_parquet('${target}/${table}/**/*.parquet', hive_partitioning = true)`,
      )
      expect(sorted(found.rows), table).toEqual(
        sorted(storedRows(store.path, `SELECT ${columns} FROM ${table}`)),
      )
    }
  })
})

test('tables with a time index are read by it without sorting', () => {
  const { db } = temporaryStore()
  const sorting = declaredTables()
    .filter(({ rows }) => rows.time)
    .filter(table => {
      const bound = table.rows.time ? ['', '~'] : []
      const plan = db.prepare(`EXPLAIN QUERY PLAN ${rowQueries(table).withTime}`).all(...bound)
      return JSON.stringify(plan).includes('TEMP B-TREE')
    })
  expect(sorting.map(({ name }) => name)).toEqual([
    'playbook_results',
    'talk_point_results',
    'crm_record_changes',
    'deal_versions',
    'sync_runs',
  ])
})

describe('the tables of CRM objects', () => {
  const HOSTILE = ['a "b"', 'x.y', '値 段', `'; --`, 'l'.repeat(300), 'order', 'month', '%', 'A,B;{}()']

  /** A warehouse with one CRM object: the types of its fields, and their values in each record. */
  async function withObject(
    types: Readonly<Record<string, string>>,
    rows: readonly (readonly unknown[])[],
  ): Promise<TemporaryStore> {
    const store = temporaryStore()
    const names = Object.keys(types)
    const fields = Object.entries(types).map(([name, type]) => ({ name, type }))
    store.put('crm_objects', [{ name: 'o', fields }], { requested: 'o' })
    const records = rows.map((row, index) => ({
      id: String(index),
      object: 'o',
      fields: Object.fromEntries(names.map((name, at) => [name, row[at]])),
    }))
    store.put('crm_records', records, { requested: 'o' })
    await store.crmTables.finish()
    return store
  }

  async function exported(...object: Parameters<typeof withObject>) {
    const target = emptyTarget()
    const { path } = await withObject(...object)
    await exportTo(path, target, { tables: ['crm_o'] })
    return duck.read(`SELECT * FROM read_parquet('${target}/crm_o/part-00000.parquet') ORDER BY id`)
  }

  test('a field may have any name', async () => {
    const { types, rows } = await exported(Object.fromEntries(HOSTILE.map(name => [name, 'text'])), [HOSTILE])
    expect(Object.keys(types)).toEqual(['id', ...HOSTILE, 'created_at', 'updated_at', '_deleted_at'])
    expect(rows[0]?.slice(1, -3)).toEqual(HOSTILE)
  })

  test('a field whose name looks like a mark in the file does not hide that mark', async () => {
    const name = `parley.fingerprint: <crm_o:${'0'.repeat(32)}:1>`
    const { path } = await withObject({ [name]: 'text' }, [['x']])
    const target = emptyTarget()
    await exportTo(path, target, { tables: ['crm_o'] })
    const { tables } = await exportTo(path, target, { tables: ['crm_o'] })
    expect(tables).toMatchObject([{ rows: 1, files_written: 0 }])
  })

  test('the footer of a file with many columns is not larger than its rows', async () => {
    const names = share(Array.from({ length: 1900 }, (_, index) => `f${index}`))
    const sparse = names.map((_, index) => (index % 100 === 0 ? index : null))
    const types = Object.fromEntries(names.map(name => [name, 'number']))
    const { path } = await withObject(types, Array<typeof sparse>(1200).fill(sparse))
    const target = emptyTarget()
    await exportTo(path, target, { tables: ['crm_o'] })
    const groups = await duck.read(
      `SELECT count(DISTINCT row_group_id) FROM parquet_metadata('${target}/crm_o/part-00000.parquet')`,
    )
    expect(groups.rows).toEqual([[1n]])
  })
})

describe('the partitions of an export', () => {
  test('a row is in the partition of its month, and a row without a time in the partition without a month', async () => {
    const store = temporaryStore()
    markedWorld(store, value => value).write('2026-03-04T05:06:07.123Z')
    store.db.exec(
      `UPDATE meetings SET start_time = NULL;
       INSERT INTO meetings (id, start_time, _first_seen_at, _synced_at)
       VALUES ('other', '2025-12-31T23:59:59.999Z', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z')`,
    )
    const target = emptyTarget()
    await exportTo(store.path, target)
    for (const [table, time] of MONTHS) {
      const { rows } = await duck.read(
        `SELECT DISTINCT strftime(${time} AT TIME ZONE 'UTC', '%Y-%m') IS NOT DISTINCT FROM month
         FROM read_parquet('${target}/${table}/**/*.parquet', hive_partitioning = true)`,
      )
      if (table !== 'access_logs') expect(rows, table).toEqual([[true]])
    }
    const meetings = await duck.read(
      `SELECT month FROM read_parquet('${target}/meetings/**/*.parquet', hive_partitioning = true) ORDER BY 1`,
    )
    expect(meetings.rows).toEqual([['2025-12'], [null]])
  })

  test('child rows are in the partition of their meeting or message, also when its time is unknown', async () => {
    const store = temporaryStore()
    const world = markedWorld(store, value => value)
    world.write('2026-03-04T05:06:07.123Z')
    store.db
      .prepare("UPDATE meetings SET start_time = '2024-07-09T00:00:00.000Z' WHERE id = ?")
      .run(world.meeting)
    store.db.exec(
      "INSERT INTO transcript_entries (meeting_id, position, text) VALUES ('nobody''s', 0, 'alone')",
    )
    const target = emptyTarget()
    await exportTo(store.path, target)
    const months = async (table: string) =>
      (
        await duck.read(
          `SELECT DISTINCT month FROM read_parquet('${target}/${table}/**/*.parquet', hive_partitioning = true) ORDER BY 1`,
        )
      ).rows
    for (const { table, root } of TABLES.values()) {
      if (root?.name === 'meetings') expect(await months(table.name), table.name).toEqual([['2024-07']])
    }
    expect(await months('transcript_entries')).toEqual([['2024-07'], [null]])
    expect(await months('message_copy_participants')).toEqual(await months('message_copies'))
    expect(await months('message_participants')).toEqual(await months('messages'))
    expect(await months('activity_links')).toEqual(await months('activities'))
    expect(await months('talk_point_results')).toEqual(await months('playbook_results'))
  })
})
