import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { onTestFinished } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { type ExportOptions, type ExportSummary, exportWarehouse } from '../../src/export/export.ts'
import type { Manifest } from '../../src/export/manifest.ts'
import { openTarget, type Target } from '../../src/export/target.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { openDatabase } from '../../src/store/file/open.ts'

export interface Exporting extends Partial<Pick<ExportOptions, 'tables' | 'since' | 'full' | 'signal'>> {
  mode?: number
  /** Wraps the target, for example to make it fail. */
  through?: (target: Target) => Target
}

/** The target, with a call before each file gets its final name. */
export const withLook = (target: Target, look: (file: string) => void): Target => ({
  ...target,
  beginFile(name) {
    const begun = target.beginFile(name)
    return {
      ...begun,
      end() {
        look(name)
        begun.end()
      },
    }
  },
})

/** Exports a warehouse as the command does, over a separate connection. */
export async function exportTo(
  database: string,
  folder: string,
  { mode = 0o600, through = target => target, ...options }: Exporting = {},
): Promise<ExportSummary> {
  const clock = systemClock()
  const db = openDatabase({ path: database, readonly: true })
  const target = openTarget(folder, mode, clock)
  try {
    return await exportWarehouse({
      db,
      target: through(target),
      clock,
      version: '1.2.3',
      full: false,
      signal: new AbortController().signal,
      onProgress: () => undefined,
      ...options,
    })
  } finally {
    target.close()
    db.close()
  }
}

export function emptyTarget(): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-export-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as Manifest
}

export interface FileFound {
  /** Changes when the file is written again. */
  inode: number
  content: string
}

/** Every Parquet file and every unfinished one, by its path. */
export function filesIn(folder: string): Map<string, FileFound> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const files = names.filter(
    name => statSync(join(folder, name)).isFile() && !/manifest|lock|views\.sql/.test(name),
  )
  return new Map(
    files.toSorted().map(name => {
      const path = join(folder, name)
      return [name, { inode: statSync(path).ino, content: readFileSync(path).toString('base64') }]
    }),
  )
}

export const contents = (folder: string): Record<string, string> =>
  Object.fromEntries([...filesIn(folder)].map(([name, { content }]) => [name, content]))

/** Runs the script of an export in DuckDB, which creates its views. */
export async function makeExportedViews(connection: DuckDBConnection, folder: string): Promise<void> {
  await connection.run(`SET file_search_path = '${folder}'`)
  await connection.run(readFileSync(join(folder, 'views.sql'), 'utf8'))
}

/** Rows of a table of the warehouse, with whole numbers as bigints. */
export function storedRows(database: string, sql: string): (string | number | bigint | null)[][] {
  const db = openSqlite(database, { readonly: true })
  try {
    return db.prepare(sql).raw().safeIntegers().all() as (string | number | bigint | null)[][]
  } finally {
    db.close()
  }
}
