import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DuckDBConnection, DuckDBInstance, type JS } from '@duckdb/node-api'
import { exportTo, makeExportedViews } from '../export/exporting.ts'
import type { Expected } from './recount.ts'

/** DuckDB over an export of a warehouse. */
export interface ExportInDuckdb {
  connection: DuckDBConnection
  close(): void
}

export async function exportInDuckdb(file: string): Promise<ExportInDuckdb> {
  const target = mkdtempSync(join(tmpdir(), 'parley-questions-'))
  await exportTo(file, target)
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  await makeExportedViews(connection, target)
  return {
    connection,
    close: () => {
      connection.closeSync()
      instance.closeSync()
      rmSync(target, { recursive: true })
    },
  }
}

export async function answerOf(connection: DuckDBConnection, sql: string): Promise<Expected[]> {
  const result = await connection.runAndReadAll(sql)
  return plainRows(result.getRowObjectsJson())
}

/** Numbers and truth as numbers, and instants as SQLite has them: DuckDB has types for them, and writes large numbers as text. */
export const plainRows = (
  rows: readonly Readonly<Record<string, JS | string | number | null>>[],
): Expected[] =>
  rows.map(row => Object.fromEntries(Object.entries(row).map(([name, cell]) => [name, plain(cell)])))

const INSTANT = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d+)?(?:\+00)?$/

function plain(cell: JS | string | number | null): string | number | null {
  if (cell === null || cell === undefined) return null
  if (typeof cell === 'bigint' || typeof cell === 'boolean') return Number(cell)
  if (typeof cell === 'number') return cell
  const text = String(cell)
  const [, day, time, fraction = '.'] = INSTANT.exec(text) ?? []
  if (day !== undefined) return `${day}T${time}${fraction.padEnd(4, '0')}Z`
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text
}
