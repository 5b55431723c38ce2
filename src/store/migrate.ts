import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { type FreeBytes, makeCopy, plannedCopy, removeUnfinishedCopies } from './backup.ts'
import type { Sqlite } from './open.ts'
import { giveUpSearch } from './search.ts'
import { quote } from './sql.ts'
import { ensureViews } from './views.ts'
import { noteEarlierWithdrawals } from './withdrawals.ts'

/** Where `npm run schema` writes the migrations; beside `src` and `dist` alike. */
const FOLDER = fileURLToPath(new URL('../../drizzle', import.meta.url))

interface Migration {
  /** Its time stamp, by which a database knows which it has had. */
  when: number
  tag: string
}

function migrationsIn(folder: string): readonly Migration[] {
  const journal = JSON.parse(readFileSync(`${folder}/meta/_journal.json`, 'utf8')) as { entries: Migration[] }
  return journal.entries
}

/** Time stamp of the newest migration that this version knows. */
export function newestMigration(folder: string = FOLDER): number {
  return Math.max(...migrationsIn(folder).map(({ when }) => when))
}

/** Time stamps of the migrations that a database has had, oldest first. */
export function appliedMigrations(db: Sqlite): number[] {
  const table = db.prepare("SELECT 1 FROM sqlite_master WHERE name = '__drizzle_migrations'").get()
  if (!table) return []
  return db
    .prepare('SELECT created_at FROM __drizzle_migrations ORDER BY created_at')
    .pluck()
    .all() as number[]
}

/** What is about to happen to a database that an older version has made. */
export interface Upgrade {
  migrations: readonly string[]
  /** The copy that is made before, or was by an upgrade that did not come to its end; undefined for a small file. */
  copy: { path: string; bytes: number } | undefined
}

export interface UpgradeOptions {
  /** Folder with the migrations and their journal; by default this version's own. */
  migrations?: string
  /** Told before an upgrade begins, which can take minutes. Not called for a new database. */
  onUpgrade?: (upgrade: Upgrade) => void
  freeBytes?: FreeBytes
}

/**
 * Brings the schema up to this version, all of it or nothing, after a copy beside the file.
 * @throws StopError 73 when there is no space for the copy or a migration fails; the database is then as it was
 */
export function migrate(db: Sqlite, file: string, options: UpgradeOptions = {}): void {
  const { migrations: folder = FOLDER, onUpgrade, freeBytes } = options
  const applied = appliedMigrations(db)
  const pending = migrationsIn(folder).filter(({ when }) => !applied.includes(when))
  const [first] = pending
  if (!first) return
  removeUnfinishedCopies(file)
  const copy = plannedCopy(db, file, first.tag)
  if (applied.length > 0) onUpgrade?.({ migrations: pending.map(({ tag }) => tag), copy })
  if (copy) makeCopy(db, file, copy, freeBytes)
  apply(db, file, folder, pending)
}

/** The columns are those of drizzle's own migrator, so that its tools can read them. */
const APPLIED =
  'CREATE TABLE IF NOT EXISTS "__drizzle_migrations" (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)'

/**
 * drizzle's migrator is not used: it commits before the references can be checked, and runs in a transaction where
 * switching foreign keys off has no effect, so that a table which is rebuilt loses its cascading children.
 */
function apply(db: Sqlite, file: string, folder: string, pending: readonly Migration[]): void {
  db.pragma('foreign_keys = OFF')
  try {
    const work = db.transaction(() => {
      db.exec(APPLIED)
      const restoreViews = setViewsAside(db)
      giveUpSearch(db)
      const noted = notesWithdrawals(db)
      for (const migration of pending) applyOne(db, file, folder, migration)
      if (!noted && notesWithdrawals(db)) noteEarlierWithdrawals(db)
      restoreViews()
      ensureViews(db)
      refuseOrphans(db, file)
    })
    work.immediate()
  } finally {
    db.pragma('foreign_keys = ON')
  }
}

function notesWithdrawals(db: Sqlite): boolean {
  return db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sync_erasures'").get() !== undefined
}

function applyOne(db: Sqlite, file: string, folder: string, { tag, when }: Migration): void {
  const sql = readFileSync(`${folder}/${tag}.sql`, 'utf8')
  try {
    db.exec(sql)
  } catch (error) {
    // A full disk and its like are no fault of the migration.
    if (!/^SQLITE_(ERROR|CONSTRAINT)/.test(codeOf(error))) throw error
    throw broken(`The upgrade of ${file} failed at ${tag}`, error)
  }
  const hash = createHash('sha256').update(sql).digest('hex')
  db.prepare('INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)').run(hash, when)
}

/** A table cannot be rebuilt while a view reads it. Analysts may have made some of their own. */
function setViewsAside(db: Sqlite): () => void {
  const views = db.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'view'").all() as {
    name: string
    sql: string
  }[]
  for (const { name } of views) db.exec(`DROP VIEW ${quote(name)}`)
  return () => {
    // A table has taken the place of a view: the migrations have made what the view showed.
    const tables = new Set(db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all())
    for (const { name, sql } of views) if (!tables.has(name)) db.exec(sql)
  }
}

function refuseOrphans(db: Sqlite, file: string): void {
  const orphans = db.prepare('SELECT count(*) FROM pragma_foreign_key_check').pluck().get()
  if (orphans !== 0) throw broken(`The upgrade of ${file} would leave ${orphans} rows without their parent`)
}

function broken(message: string, cause?: unknown): StopError {
  return new StopError(message, {
    code: 'migration-broken',
    hint: 'Nothing was changed, and the version before still works. Go back to it and report this.',
    cause,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
