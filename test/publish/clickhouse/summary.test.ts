import { expect, test } from 'vitest'
import { attemptOf } from '../../../src/publish/attempt.ts'
import { dialectOf } from '../../../src/publish/clickhouse/dialect.ts'
import { layoutOf } from '../../../src/publish/clickhouse/layout.ts'
import { type DatabaseSummary, tableSummaries } from '../../../src/publish/clickhouse/summary.ts'
import { publishedTables } from '../../../src/publish/tables.ts'
import { temporaryStore } from '../../store/temporary-store.ts'
import { shown } from './state-rows.ts'

test('the summary counts parts, and has the table of publications last', () => {
  const place = { database: 'lake', cluster: undefined, isReplicated: false }
  const tables = publishedTables(temporaryStore().db, ['members', 'teams']).map(table => ({
    table,
    layout: layoutOf(table, dialectOf('26.7'), place),
    earlier: [],
  }))
  const [source = ''] = tables.map(({ layout }) => layout.name)
  const parts = [shown(3, 'a', 1), shown(3, 'b', 3), shown(3, 'c', 2)].map(row => ({ ...row, source }))
  const size = { rows: 3, bytes: 300, bytesWritten: 100 }
  const summaries = tableSummaries(tables, parts, { publication: 3, size })
  const none = { changedIn: 0, rows: 0, bytes: 0, parts: 0, partsWritten: 0, rowsWritten: 0, bytesWritten: 0 }
  expect(summaries).toEqual([
    {
      ...none,
      table: 'members',
      changedIn: 3,
      rows: 3,
      bytes: 3,
      parts: 3,
      partsWritten: 1,
      rowsWritten: 1,
      bytesWritten: 1,
    },
    { ...none, table: 'teams' },
    {
      table: 'publications',
      changedIn: 3,
      rows: 3,
      bytes: 300,
      parts: 3,
      partsWritten: 1,
      rowsWritten: 1,
      bytesWritten: 100,
    },
  ])
})

test('the row of an attempt counts the parts that were written and removed', () => {
  const at = '2026-06-30T12:00:00.000Z'
  const table = { changedIn: 3, rows: 5, bytes: 50, parts: 4, rowsWritten: 2, bytesWritten: 20 }
  const summary: DatabaseSummary = {
    publication: 3,
    published_at: at,
    complete_as_of: null,
    fresh_as_of: at,
    tables: [
      { ...table, table: 'members', partsWritten: 2 },
      { ...table, table: 'teams', partsWritten: 0, bytesWritten: 0 },
    ],
    parts_removed: 7,
  }
  expect(attemptOf({ target: 't', started_at: at, finished_at: at }, { summary })).toMatchObject({
    publication: 3,
    tables_changed: 1,
    rows: 10,
    files_written: 2,
    files_removed: 7,
    bytes_written: 20,
  })
})
