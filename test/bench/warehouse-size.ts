import { quote } from '../../src/store/database/sql.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'

/** The contents of a finished warehouse. */
export interface WarehouseSize {
  /** Rows of all tables except the internal ones. */
  rows: number
  bytes: number
  /** Pages of indices, in bytes. WITHOUT ROWID tables do not count as indices. */
  indexBytes: number
  /** The table `messages` with its indices. */
  mergedBytes: number
  /** Tables and indices, the largest first. */
  parts: readonly { name: string; bytes: number }[]
}

interface Part {
  name: string
  table: string
  type: string
  bytes: number
}

const PARTS = `SELECT d.name, coalesce(m.tbl_name, d.name) AS "table", coalesce(m.type, 'table') AS type, sum(d.pgsize) AS bytes
  FROM dbstat d LEFT JOIN sqlite_master m ON m.name = d.name GROUP BY d.name ORDER BY bytes DESC`

export function measureWarehouse(path: string): WarehouseSize {
  const db = openSqlite(path, { readonly: true })
  try {
    const parts = db.prepare(PARTS).all() as Part[]
    const sum = (matches: (part: Part) => boolean) =>
      parts.filter(matches).reduce((total, { bytes }) => total + bytes, 0)
    return {
      rows: countRows(db),
      bytes: sum(() => true),
      indexBytes: sum(({ type }) => type === 'index'),
      mergedBytes: sum(({ table }) => table === 'messages'),
      parts: parts.map(({ name, bytes }) => ({ name, bytes })),
    }
  } finally {
    db.close()
  }
}

function countRows(db: Sqlite): number {
  const tables = db
    .prepare(
      `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sync\\_%' ESCAPE '\\'
         AND name NOT LIKE 'search\\_%' ESCAPE '\\'
         AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE '\\_\\_%' ESCAPE '\\'`,
    )
    .pluck()
    .all() as string[]
  return tables.reduce(
    (total, name) =>
      total +
      (db
        .prepare(`SELECT count(*) FROM ${quote(name)}`)
        .pluck()
        .get() as number),
    0,
  )
}
