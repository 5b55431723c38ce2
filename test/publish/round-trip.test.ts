import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TABLES } from '../../src/catalog/catalog.ts'
import { quote } from '../../src/store/database/sql.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { backfilled, type Place } from '../cli/workspace.ts'
import { sorted } from '../export/duckdb.ts'
import { temporaryStore } from '../store/temporary-store.ts'
import { markedWorld } from '../store/unique-texts.ts'
import { auditLake } from './lake-audit.ts'
import {
  fieldsOf,
  hasPlainNames,
  type LakeCell,
  type LakeRow,
  metadataOf,
  publicationsIn,
  rowsByIcebird,
  rowsOf,
} from './lake-reader.ts'
import { type Cleanup, type Lake, newLake, publishTo } from './publishing.ts'

type Stored = string | number | bigint | null

const cleanups: Parameters<Cleanup>[0][] = []
let place: Place
let lake: Lake

beforeAll(async () => {
  place = await backfilled({ onTestFinished: close => void cleanups.push(close) })
  const db = openSqlite(place.file)
  db.exec(
    "UPDATE meetings SET _deleted_at = '2026-01-02T03:04:05.678Z' WHERE id = (SELECT min(id) FROM meetings)",
  )
  db.exec("UPDATE crm_deal SET amount = '12345678901234567890.12' WHERE id = (SELECT min(id) FROM crm_deal)")
  db.close()
  lake = await newLake(work => void cleanups.push(work))
  await publishTo(place.file, lake)
})

afterAll(async () => {
  for (const cleanup of cleanups) await cleanup()
})

/** A stored cell as a reader of this type sees it. A text in a CRM's column that is no value of its type is NULL. */
function cellAs(type: string, cell: Stored): LakeCell {
  if (cell === null) return null
  if (type === 'boolean') return cell === 1n
  if (type === 'double') return Number.isFinite(Number(cell)) ? Number(cell) : null
  if (type === 'timestamptz') return /^\d{4}-\d\d-\d\dT.{12}Z$/.test(String(cell)) ? cell : null
  if (type === 'date') return /^\d{4}-\d\d-\d\d/.exec(String(cell))?.[0] ?? null
  return cell
}

/** The names and the rows of a table of the warehouse, by the schema of the published table. */
function storedRows(file: string, table: string, fields: ReturnType<typeof fieldsOf>) {
  const db = openSqlite(file, { readonly: true })
  const own = new Set(db.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[])
  const sources = fields.map(({ name }) => {
    const digits = quote(name.replace(/_exact$/, ''))
    return own.has(name) ? quote(name) : `iif(typeof(${digits}) = 'text', ${digits}, NULL)`
  })
  const rows = db
    .prepare(`SELECT ${sources.join(', ')} FROM ${quote(table)}`)
    .raw()
    .safeIntegers()
    .all() as Stored[][]
  db.close()
  return {
    names: [...own],
    rows: rows.map(row => row.map((cell, at) => cellAs(fields[at]?.type ?? '', cell))),
  }
}

const cellsOf = (rows: readonly LakeRow[], fields: ReturnType<typeof fieldsOf>) =>
  sorted(rows.map(row => fields.map(({ name }) => row[name] ?? null)))

/** Columns of the warehouse that are not for analysts. */
const isInternal = (name: string) =>
  name.startsWith('_') &&
  !['_first_seen_at', '_synced_at', '_changed_at', '_deleted_at', '_extra'].includes(name)

/** Compares one table, value by value, with two readers. Returns its number of rows. */
async function compareTable(file: string, from: Lake, folder: string, table = folder): Promise<number> {
  const metadata = await metadataOf(from, folder)
  const fields = fieldsOf(metadata).filter(({ name }) => name !== '_month')
  const stored = storedRows(file, table, fields)
  expect(
    fields.map(({ name }) => name),
    table,
  ).toEqual(expect.arrayContaining(stored.names.filter(name => !isInternal(name))))
  const expected = sorted(stored.rows)
  expect(cellsOf(await rowsOf(from, folder), fields), table).toEqual(expected)
  if (hasPlainNames(metadata))
    expect(cellsOf(await rowsByIcebird(from, folder), fields), table).toEqual(expected)
  return stored.rows.length
}

describe('the published tables of a whole workspace', () => {
  test('every table has every row and value of the warehouse, by field id and as icebird reads it', async () => {
    const [publication] = await publicationsIn(lake)
    const db = openSqlite(place.file, { readonly: true })
    const typed = db.prepare('SELECT table_name FROM crm_objects WHERE table_name IS NOT NULL').pluck().all()
    db.close()
    const folders = Object.keys(publication?.snapshots ?? {})
    const nameOf = (folder: string) =>
      (typed as string[]).find(
        name => name.replaceAll(/[^A-Za-z0-9_]+/g, '_').slice(0, 100) === folder.replace(/-[0-9a-f]{8}$/, ''),
      ) ?? folder
    const names = folders.map(nameOf)
    expect(names).toEqual(expect.arrayContaining([...TABLES.keys(), ...(typed as string[]), 'sync_status']))
    let rows = 0
    for (const folder of folders) rows += await compareTable(place.file, lake, folder, nameOf(folder))
    expect(rows).toBeGreaterThan(300)
  })

  test('a deleted row is published with its _deleted_at', async () => {
    const rows = await rowsByIcebird(lake, 'meetings')
    expect(rows.map(row => row['_deleted_at']).filter(at => at !== null)).toEqual([
      '2026-01-02T03:04:05.678Z',
    ])
  })

  test('a number that is too long for a double keeps its digits in the column next to it', async () => {
    const rows = await rowsOf(lake, 'crm_deal')
    expect(rows.filter(row => row['amount_exact'] !== null)).toMatchObject([
      { amount: 12345678901234567000, amount_exact: '12345678901234567890.12' },
    ])
  })

  test('metadata, manifests and files agree with each other, and no other file is in the target', async () => {
    await auditLake(lake)
  })

  test('every column of every table has its meaning as doc', async () => {
    const [newest] = (await publicationsIn(lake)).slice(-1)
    for (const table of ['publications', ...Object.keys(newest?.snapshots ?? {})])
      for (const { name, doc } of fieldsOf(await metadataOf(lake, table)))
        expect(doc?.length, `${table}.${name}`).toBeGreaterThan(5)
  })

  test('the doc of a CRM column has its label, and says which values are not as in the warehouse', async () => {
    const docs = new Map(fieldsOf(await metadataOf(lake, 'crm_deal')).map(({ name, doc }) => [name, doc]))
    expect(docs.get('amount')).toMatch(
      /^Amount\..* Here it is a double.* The exact digits are in `amount_exact`\.$/,
    )
    expect(docs.get('amount_exact')).toBe('The exact digits of `amount`.')
    expect(docs.get('close_date')).toMatch(/^Close date\..* Here such a value is NULL\.$/)
  })

  test('tables with a time are partitioned by its month, and others by the month of their owner or not at all', async () => {
    const spec = async (table: string) => {
      const metadata = await metadataOf(lake, table)
      return metadata['partition-specs'][0]?.fields.map(field => [
        fieldsOf(metadata).find(({ id }) => id === field['source-id'])?.name,
        field.transform,
      ])
    }
    for (const [table, time] of [
      ['activities', 'occurred_at'],
      ['message_copies', 'received_at'],
      ['messages', 'received_at'],
      ['meetings', 'start_time'],
      ['access_logs', 'occurred_at'],
      ['crm_record_changes', 'observed_at'],
    ] as const)
      expect(await spec(table), table).toEqual([[time, 'month']])
    for (const table of ['transcript_entries', 'meeting_attendees', 'activity_links', 'message_participants'])
      expect(await spec(table), table).toEqual([['_month', 'identity']])
    for (const table of ['members', 'crm_records', 'crm_deal', 'sync_status', 'publications'])
      expect(await spec(table), table).toEqual([])
  })
})

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

describe('the published tables of a made-up warehouse', () => {
  test('extreme values of each type arrive unchanged', async () => {
    const store = temporaryStore()
    markedWorld(store, value => value).write('2026-03-04T05:06:07.123Z')
    const member = store.db.prepare(
      "INSERT INTO members (id, name, _first_seen_at, _synced_at) VALUES (?, ?, '0001-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z')",
    )
    for (const [index, text] of TEXTS.entries()) member.run(`edge ${index}`, text)
    member.run('long', 'ab漢'.repeat(300_000))
    const log = store.db.prepare(
      "INSERT INTO access_logs (id, occurred_at, status_code, _first_seen_at, _synced_at) VALUES (?, ?, ?, '1969-12-31T23:59:59.999Z', '1970-01-01T00:00:00.001Z')",
    )
    const wholes = [0n, -1n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n), null]
    const times = ['0001-01-01T00:00:00.000Z', '1969-12-31T23:59:59.999Z', '2024-02-29T23:59:59.999Z', null]
    for (const [index, whole] of wholes.entries())
      log.run(`whole ${index}`, times[index % times.length], whole)
    const hint = store.db.prepare(
      'INSERT INTO bot_transcription_hints (position, hint, intensity) VALUES (?, ?, ?)',
    )
    for (const [index, real] of [0.1 + 0.2, 5e-324, -0, 1.7976931348623157e308, null].entries())
      hint.run(1000 + index, 'edge', real)
    const target = await newLake()
    await publishTo(store.path, target)
    for (const table of ['members', 'access_logs', 'bot_transcription_hints'])
      expect(await compareTable(store.path, target, table)).toBeGreaterThanOrEqual(4)
    await auditLake(target)
  })

  test('a table without rows has a snapshot that readers can read', async () => {
    const store = temporaryStore()
    const target = await newLake()
    await publishTo(store.path, target)
    for (const table of TABLES.keys()) expect(await compareTable(store.path, target, table), table).toBe(0)
    await auditLake(target)
  })

  test('child rows are in the month of their owner, also when its time is unknown', async () => {
    const store = temporaryStore()
    markedWorld(store, value => value).write('2026-03-04T05:06:07.123Z')
    store.exec(
      "UPDATE meetings SET start_time = '2024-07-09T00:00:00.000Z'; INSERT INTO transcript_entries (meeting_id, position, text) VALUES ('lost', 0, 'alone')",
    )
    const target = await newLake()
    await publishTo(store.path, target)
    const months = (await rowsByIcebird(target, 'transcript_entries')).map(row => row['_month'])
    expect(new Set(months)).toEqual(new Set(['2024-07', null]))
  })
})
