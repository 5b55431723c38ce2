import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { parley } from '../cli/parley.ts'
import { type Cell, expectedTables, rowText } from '../support/published-cells.ts'
import { startTrial, type Trial } from '../support/trial.ts'

/** A backfilled warehouse of the simulator's hostile world, and the target to which it is published. */
export interface Published {
  trial: Trial
  /** The target, unless there is another one. */
  folder: string
  /** Publishes the warehouse as it is now. Returns the number of the publication. */
  publish(): Promise<number>
  /** The rows of every table as SQLite has them now, as sorted texts. */
  warehouse(): ReadonlyMap<string, ExpectedRows>
}

export interface ExpectedRows {
  columns: string[]
  rows: string[]
}

/** @param other a target that is not a folder, with the environment that it needs */
export async function startPublished(
  other?: { target: string; env: Record<string, string> } | undefined,
): Promise<Published> {
  const trial = await startTrial({ seed: 7 })
  const { status, stderr } = await trial.backfill()
  if (status !== 0) throw new Error(`The backfill ended with ${status}: ${stderr}`)
  const folder = join(trial.database, '../lake')
  return {
    trial,
    folder,
    async publish() {
      const args = ['publish', other?.target ?? folder, '--json', '--database', trial.database]
      const ended = await parley(args, { env: other?.env ?? {} })
      if (ended.status !== 0) throw new Error(`parley publish ended with ${ended.status}: ${ended.stderr}`)
      return JSON.parse(ended.stdout).publication
    },
    warehouse() {
      const db = openSqlite(trial.database, { readonly: true })
      try {
        return new Map(
          expectedTables(db).map(({ folder: name, columns, rows }) => [
            name,
            { columns: columns.map(column => column.name), rows: sortedRows([...rows()]) },
          ]),
        )
      } finally {
        db.close()
      }
    },
  }
}

export const sortedRows = (rows: readonly Cell[][]): string[] => rows.map(rowText).sort()

/** The number of data files of a table in its newest snapshot. */
export function fileCount(table: string): number {
  const version = readFileSync(join(table, 'metadata/version-hint.text'), 'utf8')
  const metadata = JSON.parse(readFileSync(join(table, `metadata/v${version}.metadata.json`), 'utf8'))
  return Number(metadata.snapshots.at(-1).summary['total-data-files'])
}
