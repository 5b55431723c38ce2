import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { EXIT_STATUS, StopError } from '../errors.ts'
import { type FreeBytes, makeCopy, plannedCopy, removeUnfinishedCopies } from './backup.ts'
import { type OwnObjects, ownObjectsIn } from './database/own-objects.ts'
import { brokenReferences } from './database/references.ts'
import { type LeftOut, setAside } from './database/set-aside.ts'
import type { Sqlite } from './open.ts'
import { giveUpSearch } from './search.ts'
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

/** What the migrations of this version, or of another folder, have made. */
export function ownObjects(folder: string = FOLDER): OwnObjects {
  return ownObjectsIn(migrationsIn(folder).map(({ tag }) => readFileSync(`${folder}/${tag}.sql`, 'utf8')))
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
  /** Called for each trigger, index or view of other people that no longer fits the tables. */
  onLeftOut?: ((object: LeftOut) => void) | undefined
  freeBytes?: FreeBytes
}

/**
 * Brings the schema up to this version, all of it or nothing, after a copy beside the file.
 * @throws StopError 73 when there is no space for the copy or a migration fails; the database is then as it was
 */
export function migrate(db: Sqlite, file: string, options: UpgradeOptions = {}): void {
  const { migrations: folder = FOLDER, onUpgrade, onLeftOut, freeBytes } = options
  const applied = appliedMigrations(db)
  const pending = migrationsIn(folder).filter(({ when }) => !applied.includes(when))
  const [first] = pending
  if (!first) return
  removeUnfinishedCopies(file)
  const copy = plannedCopy(db, file, first.tag)
  if (applied.length > 0) onUpgrade?.({ migrations: pending.map(({ tag }) => tag), copy })
  if (copy) makeCopy(db, file, copy, freeBytes)
  for (const object of apply(db, file, folder, pending)) onLeftOut?.(object)
}

/** The columns are those of drizzle's own migrator, so that its tools can read them. */
const APPLIED =
  'CREATE TABLE IF NOT EXISTS "__drizzle_migrations" (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)'

/**
 * drizzle's migrator is not used: it commits before the references can be checked. Foreign keys are off on the
 * connection, or a table that is rebuilt would lose its cascading children.
 */
function apply(db: Sqlite, file: string, folder: string, pending: readonly Migration[]): LeftOut[] {
  const own = ownObjects(folder)
  // A table that is rebuilt, or an index, is sorted: of a large file that is more than a service may use.
  db.pragma('temp_store = FILE')
  try {
    const work = db.transaction(() => {
      db.exec(APPLIED)
      giveUpSearch(db)
      const restore = setAside(db, own)
      const noted = notesWithdrawals(db)
      for (const migration of pending) applyOne(db, file, folder, migration)
      if (!noted && notesWithdrawals(db)) noteEarlierWithdrawals(db)
      const leftOut = restore()
      ensureViews(db)
      refuseOrphans(db, file, own)
      return leftOut
    })
    return work.immediate()
  } finally {
    db.pragma('temp_store = MEMORY')
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
    throw nameTaken(file, error) ?? broken(`The upgrade of ${file} failed at ${tag}`, error)
  }
  const hash = createHash('sha256').update(sql).digest('hex')
  db.prepare('INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)').run(hash, when)
}

function refuseOrphans(db: Sqlite, file: string, own: OwnObjects): void {
  const [first] = brokenReferences(db, own).filter(({ isOwn }) => isOwn)
  if (first) {
    throw broken(
      `The upgrade of ${file} would leave ${first.rows} rows of ${first.table} without their parent`,
    )
  }
}

/** A table of someone else has the name of one that a migration makes. */
function nameTaken(file: string, error: unknown): StopError | undefined {
  const name = /^table [`"]?(\w+)[`"]? already exists$/.exec(error instanceof Error ? error.message : '')?.[1]
  if (name === undefined) return undefined
  return new StopError(
    `${file} has a table ${name} that parley did not make, and this version needs the name`,
    {
      code: 'table-name-taken',
      hint: `Rename it with ALTER TABLE ${name} RENAME TO my_${name}. Nothing was changed, and the version before still works.`,
      cause: error,
      exitStatus: EXIT_STATUS.databaseUnavailable,
    },
  )
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
