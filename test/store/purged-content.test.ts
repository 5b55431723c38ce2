import { expect, test } from 'vitest'
import { TABLES } from '../../src/catalog/catalog.ts'
import { declaredTables } from '../../src/export/export-tables.ts'
import { quote } from '../../src/store/database/sql.ts'
import type { StoredCell } from '../../src/store/database/sqlite-types.ts'
import { purgedContentTest } from '../../src/store/deletions/purged-content.ts'
import { type TemporaryStore, temporaryStore } from './temporary-store.ts'
import { createMarker, isContentAt, markedWorld, markersIn } from './unique-texts.ts'

const NOW = '2026-03-04T05:06:07.123Z'

interface Copied {
  table: string
  columns: readonly string[]
  rows: readonly StoredCell[][]
}

/** The rows of all tables of resources, as a publication has them. */
function copyOf(store: TemporaryStore): Copied[] {
  return declaredTables()
    .filter(({ name }) => TABLES.has(name))
    .map(({ name, columns }) => {
      const names = columns.map(column => column.name)
      const sql = `SELECT ${names.map(quote).join(', ')} FROM ${quote(name)}`
      return { table: name, columns: names, rows: store.db.prepare(sql).raw().all() as StoredCell[][] }
    })
}

const hasContent = ({ table, columns }: Copied, row: readonly StoredCell[]): boolean =>
  row.some((cell, at) => markersIn(String(cell)).size > 0 && isContentAt(`${table}.${columns[at]}`))

test('of a copy from before a purge exactly the rows with purged content are recognised, in every table', () => {
  const store = temporaryStore()
  const world = markedWorld(store, createMarker())
  world.write(NOW)
  store.put('members', [{ id: 'live', name: 'mark-0-live' }], { now: NOW })
  const before = copyOf(store)
  store.atomically(() => {
    for (const { table, key } of world.rows) store.tombstone(table, [key], NOW)
  })
  // Deleted rows that wait for their purge still have their content.
  const waiting = before.map(({ table, columns }) => purgedContentTest(store.db, table, columns))
  expect(waiting.every(one => one === undefined)).toBe(true)

  store.atomically(() => store.purger.purge({ before: '9999', limit: 10_000, now: NOW }))
  const purged = new Set(world.rows.map(({ table }) => table))
  const recognised = new Set<string>()
  for (const copied of before) {
    const test = purgedContentTest(store.db, copied.table, copied.columns)
    for (const row of copied.rows) {
      const isLive = row.includes('live')
      if (test?.(row)) recognised.add(copied.table)
      if (purged.has(copied.table)) expect(test?.(row), copied.table).toBe(hasContent(copied, row) && !isLive)
    }
  }
  const withContent = before.filter(copied => copied.rows.some(row => hasContent(copied, row)))
  expect([...recognised].toSorted()).toEqual(withContent.map(({ table }) => table).toSorted())
  for (const { table, columns, rows } of copyOf(store)) {
    const test = purgedContentTest(store.db, table, columns)
    for (const row of rows) expect(test?.(row) ?? false, table).toBe(false)
  }
})
