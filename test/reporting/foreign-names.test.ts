import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createReportUpdate } from '../../src/app/report-update.ts'
import { systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { DERIVED_TABLES, REPORT_VIEWS } from '../../src/dictionary/report-tables.ts'
import { dataFindings } from '../../src/doctor/data.ts'
import { findingsOf } from '../../src/doctor/finding.ts'
import { reportFindings } from '../../src/doctor/report-settings.ts'
import { readReport } from '../../src/report/read-report.ts'
import { openSqlite } from '../../src/store/database/sqlite.ts'
import { APPLICATION_ID } from '../../src/store/file/open.ts'
import { migrate } from '../../src/store/migrations/migrate.ts'
import { migrationsOf } from '../migrations/older-version.ts'
import { writeMigratedFile } from '../store/migrated-file.ts'
import { atomically, newFolder, openAt } from '../store/temporary-store.ts'
import { share } from '../support/effort.ts'
import { reportsOf } from '../support/reports-of.ts'

/** Tables and views of other people with the names of tables and views for reports. */

/** How many migrations there were before the first tables for reports. */
const BEFORE_REPORTS = 22

/** A file from before there were tables for reports. */
function olderFile(): string {
  const folder = newFolder()
  const path = join(folder, 'parley.db')
  const db = openSqlite(path)
  db.pragma(`application_id = ${APPLICATION_ID}`)
  db.pragma('journal_mode = WAL')
  migrate(db, path, { migrations: migrationsOf(folder, BEFORE_REPORTS) })
  db.close()
  return path
}

function newFile(): string {
  const path = join(newFolder(), 'parley.db')
  writeMigratedFile(path)
  return path
}

function change(path: string, sql: string): void {
  const db = openSqlite(path)
  db.exec(sql)
  db.close()
}

const NAMES = [...DERIVED_TABLES, ...REPORT_VIEWS].map(({ name }) => name)
const OF_VIEWS: ReadonlySet<string> = new Set(REPORT_VIEWS.map(({ name }) => name))
const { settings: SETTINGS } = loadSettings({ flags: {}, env: {}, cwd: '/', requireApi: false })

/**
 * A session of the writer: it opens the file, stores what it reads, and updates the tables for reports twice.
 * @returns what it logs
 */
async function session(path: string, member: string): Promise<string> {
  let logged = ''
  const log = await createLog({ level: 'trace', stream: { write: (text: string) => (logged += text) } })
  const store = openAt(path)
  try {
    const now = new Date().toISOString()
    atomically(store, () =>
      store.db
        .prepare('INSERT INTO members (id, name, email, _first_seen_at, _synced_at) VALUES (?, ?, ?, ?, ?)')
        .run(member, member, `${member}@example.com`, now, now),
    )
    const attempt = store.attempt
    const reports = reportsOf({ ...store, now, attempt })
    const update = createReportUpdate({ store: { db: store.db, reports }, log }, SETTINGS)
    await update()
    await update()
    return logged
  } finally {
    store.close()
  }
}

const MADE = {
  table: (name: string) => `CREATE TABLE ${name} (mine TEXT); INSERT INTO ${name} VALUES ('kept')`,
  view: (name: string) => `CREATE VIEW ${name} AS SELECT 'kept' AS mine`,
}

const dropped = (name: string) => `DROP ${OF_VIEWS.has(name) ? 'VIEW' : 'TABLE'} ${name};`

const FILES = [
  { file: 'a file from before tables for reports', create: olderFile, free: () => '' },
  { file: 'a file with tables for reports', create: newFile, free: dropped },
] as const

const CASES = FILES.flatMap(file =>
  NAMES.flatMap(name => (['table', 'view'] as const).map(form => ({ ...file, name, form }))),
)

test.each(share(CASES))(
  'a $form $name of other people in $file stays, and each session works',
  async ({ create, free, name, form }) => {
    const path = create()
    change(path, `${free(name)} ${MADE[form](name)}`)
    for (const member of ['first', 'second'])
      expect((await session(path, member)).match(/since somebody else has made/g)).toHaveLength(1)
    const db = openSqlite(path, { readonly: true })
    onTestFinished(() => void db.close())
    expect(db.prepare(`SELECT mine FROM ${name}`).pluck().all()).toEqual(['kept'])
    expect(db.prepare('SELECT id FROM members ORDER BY id').pluck().all()).toEqual(['first', 'second'])
    expect([...reportFindings(db, findingsOf('reports'))]).toContainEqual(
      expect.objectContaining({
        mark: 'wrong',
        found: expect.stringMatching(`somebody else has made ${name}$`),
      }),
    )
    const marks = [...dataFindings({ db, isWritten: false })].filter(({ mark }) => mark === 'wrong')
    expect(marks).toEqual([])
    expect(JSON.stringify(readReport(db, systemClock().now()))).toContain(`somebody else has made ${name}.`)
  },
)
