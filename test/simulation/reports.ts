import { rmSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { reportConfig } from '../../src/app/reports.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { DICTIONARY } from '../../src/dictionary/dictionary.ts'
import { runDataTests } from '../../src/store/data-tests/run.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'
import { statementCache } from '../../src/store/database/statements.ts'
import { createReports } from '../../src/store/reporting/reports.ts'
import { derivedContent, forgetDerived } from '../support/derived-content.ts'

interface ReportCheck {
  /** The file, which stays as it is. */
  database: string
  env: Readonly<Record<string, string | undefined>>
  now(): number
}

/**
 * What is wrong with the tables for reports of a warehouse, once they have followed its last changes: rows that a full build
 * derives in another way, and tests of the content that are not met.
 */
export async function wrongReports({ database, env, now }: ReportCheck): Promise<string[]> {
  const copy = `${database}-reports`
  copyTo(copy, database)
  const db = openSqlite(copy)
  try {
    const reports = createReports({
      db,
      prepare: statementCache(db),
      clock: { now, elapsed: () => 0 },
      transaction: async work => db.transaction(work).immediate(),
    })
    const config = reportConfig(loadSettings({ flags: {}, env, cwd: '/', requireApi: false }).settings)
    await reports.update(config)
    const followed = derivedContent(db)
    const unmet = unmetTests(db)
    forgetDerived(db)
    await reports.update(config)
    const built = derivedContent(db)
    const differing = Object.keys(built).filter(name => !isDeepStrictEqual(built[name], followed[name]))
    return [...differing.map(name => `${name} for reports differ from those of a full build`), ...unmet]
  } finally {
    db.close()
    for (const end of ['', '-wal', '-shm']) rmSync(`${copy}${end}`, { force: true })
  }
}

function copyTo(copy: string, database: string): void {
  const source = openSqlite(database, { readonly: true, fileMustExist: true })
  try {
    source.prepare('VACUUM INTO ?').run(copy)
  } finally {
    source.close()
  }
}

const unmetTests = (db: Sqlite): string[] =>
  [...runDataTests(db, DICTIONARY)].flatMap(result =>
    'missing' in result || result.rows === 0 || !result.test.isPromised
      ? []
      : [
          `${result.test.table} (${result.test.columns.join(', ')}): ${result.rows} rows do not meet a test of ${result.test.kind}`,
        ],
  )
