import type { RowOf } from '../../catalog/bookkeeping/table-declaration.ts'
import type { PUBLICATION_TABLE } from '../../catalog/bookkeeping/tables.ts'
import { tryToNote } from '../database/connections.ts'
import { hasTable } from '../database/existing-tables.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'

/** Attempts to publish the warehouse: rows of `sync_publications`. */

export type PublicationAttempt = Omit<RowOf<typeof PUBLICATION_TABLE>, 'id'>

/** The attempts to publish to one target. */
export interface PublicationHistory {
  /** The newest complete publication. Its error says why files of earlier ones could not be removed. */
  last: PublicationAttempt | undefined
  /** The failed attempts after `last`. */
  failures: { since: string; times: number; newest: PublicationAttempt } | undefined
}

/** What the daemon stores in `sync_meta` about its publications. */
export interface PublishingNote {
  /** The target's address without credentials. */
  target: string
  /** When the daemon first had this target. */
  since: string
  /** When the next publication is due. */
  due_at: string | null
  /** From when on a missing publication is a problem. */
  late_at: string
  /** Null while the daemon does not publish. */
  running_since: string | null
}

const ADD = `INSERT INTO sync_publications (target, publication, started_at, finished_at, published_at, complete_as_of,
    fresh_as_of, tables_changed, rows, files_written, files_removed, bytes_written, error_code, error)
  VALUES (@target, @publication, @started_at, @finished_at, @published_at, @complete_as_of,
    @fresh_as_of, @tables_changed, @rows, @files_written, @files_removed, @bytes_written, @error_code, @error)`

export function createPublications(prepare: Prepare) {
  const add = prepare(ADD)
  return { add: (attempt: PublicationAttempt) => void add.run(attempt) }
}

/** The history of a target. A database of an older version has none. */
export function readPublications(db: Sqlite, target: string): PublicationHistory {
  if (!hasTable(db, 'sync_publications')) return { last: undefined, failures: undefined }
  const newest = (where: string) =>
    db
      .prepare<unknown[], RowOf<typeof PUBLICATION_TABLE>>(
        `SELECT * FROM sync_publications WHERE target = ? AND ${where} ORDER BY id DESC LIMIT 1`,
      )
      .get(target)
  const last = newest('publication IS NOT NULL')
  const failed = newest('publication IS NULL')
  const complete = last && withoutId(last)
  if (failed === undefined || failed.id < (last?.id ?? 0)) return { last: complete, failures: undefined }
  const { since, times } = db
    .prepare<unknown[], { since: string; times: number }>(
      'SELECT min(started_at) AS since, count(*) AS times FROM sync_publications WHERE target = ? AND id > ?',
    )
    .get(target, last?.id ?? 0) ?? { since: failed.started_at, times: 1 }
  return { last: complete, failures: { since, times, newest: withoutId(failed) } }
}

/** The names of the targets that have had a complete publication. */
export function publishedTargets(db: Sqlite): ReadonlySet<string> {
  if (!hasTable(db, 'sync_publications')) return new Set()
  const sql = 'SELECT DISTINCT target FROM sync_publications WHERE publication IS NOT NULL'
  return new Set(db.prepare<unknown[], string>(sql).pluck().all())
}

function withoutId({ id: _, ...attempt }: RowOf<typeof PUBLICATION_TABLE>): PublicationAttempt {
  return attempt
}

/**
 * Tries to store the attempt of a process that does not hold the lock of the warehouse, as `tryToNote` does: the
 * publication does not depend on the row.
 * @param reader an open connection to the same file. Close it only after this call
 */
export const recordAttempt = (reader: Sqlite, attempt: PublicationAttempt): boolean =>
  tryToNote(reader.name, db => db.prepare(ADD).run(attempt))
