import { createHash } from 'node:crypto'
import { isoInstant, systemClock } from '../../base/clock.ts'
import { EXIT_STATUS, errorCode, StopError } from '../../base/errors.ts'
import type { LeftOut } from '../database/existing-tables.ts'
import { hasColumn, hasTable } from '../database/existing-tables.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { queueEarlierDeletions } from '../deletions/purge-queue.ts'
import { invalidateSearch } from '../search/index-marks.ts'
import { MARKS, SEARCH_INDICES } from '../search/index-schema.ts'
import { META } from '../sync/meta.ts'
import { EARLIER_NAMES, ensureViews } from '../views/views.ts'
import { plannedCopy, removeUnfinishedCopies, writeUpgradeCopy } from './backup.ts'
import {
  brokenReferences,
  dropDependentObjects,
  migrationSql,
  type OwnObjects,
  ownObjects,
  ownObjectsIn,
} from './foreign-objects.ts'
import { appliedMigrations, FOLDER, type Migration, migrationsIn } from './journal.ts'
import { lowerCaseIds } from './lower-case-ids.ts'
import { regroupMails } from './regrouped-mails.ts'

/** A pending upgrade of a database that an older version wrote. */
export interface Upgrade {
  migrations: readonly string[]
  /** The backup from before the upgrade, new or from an interrupted upgrade; undefined for a small database. */
  copy: { path: string; bytes: number } | undefined
}

export interface UpgradeOptions {
  /** Folder with the migrations and their journal. Default: the migrations of this version. */
  migrations?: string
  /** Called before an upgrade, which can take minutes. Not called for a new database. */
  onUpgrade?: (upgrade: Upgrade) => void
  /** Called for each view, trigger or index that could not be created again after the upgrade. */
  onLeftOut?: ((object: LeftOut) => void) | undefined
  /** Bytes that this process may still write to the disk of a folder. */
  freeBytes?: (folder: string) => number
}

/**
 * Copies the database unless it is small, then applies all pending migrations in one transaction.
 * @throws StopError (73) when a name that a migration needs is taken, there is no space for the copy, or a migration
 * fails; the database is then unchanged
 */
export function migrate(db: Sqlite, file: string, options: UpgradeOptions = {}): void {
  const { migrations: folder = FOLDER, onUpgrade, onLeftOut, freeBytes } = options
  const applied = appliedMigrations(db)
  const pending = migrationsIn(folder).filter(({ when }) => !applied.includes(when))
  const [first] = pending
  if (!first) return
  const [taken] = takenNameErrors(db, file, folder)
  if (taken) throw taken
  removeUnfinishedCopies(file)
  const copy = plannedCopy(db, file, first.tag)
  if (applied.length > 0) onUpgrade?.({ migrations: pending.map(({ tag }) => tag), copy })
  if (copy) writeUpgradeCopy(db, file, copy, freeBytes)
  for (const object of applyMigrations(db, file, folder, pending)) onLeftOut?.(object)
}

/** The same table that drizzle's migrator creates, so that drizzle's tools can read it. */
const CREATE_JOURNAL_TABLE =
  'CREATE TABLE IF NOT EXISTS "__drizzle_migrations" (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)'

/**
 * drizzle's migrator is not used, because it commits before foreign keys can be checked. Foreign keys must be off on
 * the connection: otherwise, when a migration rebuilds a table, its child rows would be deleted by ON DELETE CASCADE.
 */
function applyMigrations(db: Sqlite, file: string, folder: string, pending: readonly Migration[]): LeftOut[] {
  const own = ownObjects(folder)
  // Rebuilding a table or an index sorts it. For a large database that needs more memory than a service may use.
  db.pragma('temp_store = FILE')
  try {
    const work = db.transaction(() => {
      db.exec(CREATE_JOURNAL_TABLE)
      invalidateSearch(db)
      const restore = dropDependentObjects(db, own)
      const [hadPurgeQueue, hadCopyTexts] = [
        hasTable(db, 'sync_erasures') || hasPurgeQueue(db),
        hasCopyTexts(db),
      ]
      for (const migration of pending) applyOne(db, file, folder, migration)
      // These functions expect the table names that the migrations leave.
      if (!hadPurgeQueue && hasPurgeQueue(db)) queueEarlierDeletions(db)
      if (!hadCopyTexts && hasCopyTexts(db) && hasPurgeQueue(db)) correctKeys(db)
      if (hasTable(db, 'sync_meta')) forgetOpenings(db)
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

function hasPurgeQueue(db: Sqlite): boolean {
  return hasTable(db, 'sync_purge_queue')
}

/** Makes the next publication compare all rows, since changes by migrations are not noted. */
function forgetOpenings(db: Sqlite): void {
  db.prepare('DELETE FROM sync_meta WHERE key = ?').run(META.openings)
}

function hasCopyTexts(db: Sqlite): boolean {
  return hasColumn(db, 'message_copies', 'text')
}

/**
 * Corrects the keys of earlier versions, which stored ids in the case of the answer and treated all blank Message-IDs
 * as one.
 */
function correctKeys(db: Sqlite): void {
  const now = isoInstant(systemClock().now())
  regroupMails(db, now)
  lowerCaseIds(db, now)
}

function applyOne(db: Sqlite, file: string, folder: string, migration: Migration): void {
  const { tag, when } = migration
  const sql = migrationSql(folder, migration)
  try {
    db.exec(sql)
  } catch (error) {
    // A full disk and similar errors are not the fault of the migration.
    if (!/^SQLITE_(ERROR|CONSTRAINT)/.test(errorCode(error) ?? '')) throw error
    const found = error instanceof Error ? error.message : typeof error
    throw migrationBroken(`The upgrade of ${file} failed at ${tag}: ${found}`, error)
  }
  const hash = createHash('sha256').update(sql).digest('hex')
  db.prepare('INSERT INTO __drizzle_migrations (hash, created_at) VALUES (?, ?)').run(hash, when)
}

function refuseOrphans(db: Sqlite, file: string, own: OwnObjects): void {
  const [first] = brokenReferences(db, own).filter(({ isOwn }) => isOwn)
  if (first) {
    throw migrationBroken(
      `The upgrade of ${file} would leave ${first.rows} rows of ${first.table} without their parent rows`,
    )
  }
}

/** Views of parley with names of tables that some migration creates. */
const OWN_VIEWS: ReadonlySet<string> = new Set(['message_participants', ...Object.keys(EARLIER_NAMES)])

/** How somebody moves an object out of the way. */
const MOVES: Readonly<Record<NamedObject['type'], (name: string) => string>> = {
  table: name => `Rename that table: ALTER TABLE ${name} RENAME TO my_${name}.`,
  view: name => `Drop that view with DROP VIEW ${name}, and create it again with another name.`,
  index: name => `Drop that index with DROP INDEX ${name}, and create it again with another name.`,
}

interface NamedObject {
  type: 'table' | 'view' | 'index'
  name: string
  sql: string | null
}

const SEARCH_NAMES: ReadonlySet<string> = new Set([MARKS, ...SEARCH_INDICES.map(({ name }) => name)])

/** Whether an object has the name of a full-text index, or of their marks, and is neither. */
const takesSearchName = ({ name, sql }: NamedObject): boolean =>
  SEARCH_NAMES.has(name.toLowerCase()) && !/^CREATE VIRTUAL TABLE |\bindexed_up_to\b/i.test(sql ?? '')

/**
 * @param migrations the folder with the migrations
 * @returns the errors with which the next upgrade fails, since objects that parley did not create have names that the
 * pending migrations or the full-text indices need
 */
export function takenNameErrors(db: Sqlite, file: string, migrations = FOLDER): StopError[] {
  const applied = appliedMigrations(db)
  const created = (isApplied: boolean) => {
    const some = migrationsIn(migrations).filter(({ when }) => applied.includes(when) === isApplied)
    const { tables, indices } = ownObjectsIn(some.map(migration => migrationSql(migrations, migration)))
    return new Set([...tables, ...indices])
  }
  const [own, wanted] = [created(true), created(false)]
  return db
    .prepare<unknown[], NamedObject>(
      "SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view', 'index') ORDER BY name",
    )
    .all()
    .filter(object => {
      const name = object.name.toLowerCase()
      return (wanted.has(name) && !own.has(name)) || takesSearchName(object)
    })
    .filter(({ type, name }) => type !== 'view' || !OWN_VIEWS.has(name))
    .map(object => nameTakenError(file, object))
}

function nameTakenError(file: string, { type, name }: NamedObject): StopError {
  return new StopError(
    `${file} has ${type === 'index' ? 'an' : 'a'} ${type} ${name} that parley did not create, and this version needs that name`,
    {
      code: 'table-name-taken',
      hint: `${MOVES[type](name)} Nothing was changed, and the previous version still works.`,
      exitStatus: EXIT_STATUS.databaseUnavailable,
    },
  )
}

function migrationBroken(message: string, cause?: unknown): StopError {
  return new StopError(message, {
    code: 'migration-broken',
    hint: 'Install the previous version, which still works, and report this. Nothing was changed.',
    cause,
    exitStatus: EXIT_STATUS.databaseUnavailable,
  })
}
