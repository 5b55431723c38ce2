import { quote } from '../../database/sql.ts'
import type { Prepare } from '../../database/sqlite-types.ts'

export interface TasksOfRecords {
  feed: string
  scope: string
  records: string
  object: string
}

/** Records with an `_id` greater than `after`, up to and including `upTo`. */
interface RecordRange {
  after: number
  upTo: number
}

/**
 * The tasks that read the associations of records, one task for each record. Each function handles many records.
 * `records` is the table of the records. In the SQL, `+object` keeps SQLite from using the index on `object`. With that
 * index, SQLite would examine all records of the object instead of a range.
 */
export function createAssociationTasks(prepare: Prepare) {
  const removeSome = prepare(
    `DELETE FROM sync_tasks WHERE feed = @feed AND scope = @scope AND key IN (
       SELECT key FROM sync_tasks WHERE feed = @feed AND scope = @scope AND scope || ' ' || key NOT IN (
         SELECT _scope FROM sync_rejects WHERE _feed = @feed AND resolved_at IS NULL)
       LIMIT +@atMost)`,
  )
  return {
    /** The number of records of each object in a range, deleted ones included. */
    countByObject(records: string, range: RecordRange): ReadonlyMap<string, number> {
      const counts = prepare<[string, number]>(
        `SELECT object, count(*) FROM ${quote(records)} WHERE _id > @after AND _id <= @upTo GROUP BY +object`,
      )
      return new Map(counts.raw().all(range))
    },
    /** Adds a task for each live record of a range whose id matches the GLOB pattern `keys`. */
    addRange(
      { feed, scope, records, object }: TasksOfRecords,
      range: RecordRange,
      { keys, dueAt }: { keys: string; dueAt: string },
    ) {
      const add = prepare(
        `INSERT OR IGNORE INTO sync_tasks (feed, scope, key, sort_at, due_at)
         SELECT @feed, @scope, id, updated_at, @dueAt FROM ${quote(records)}
         WHERE _id > @after AND _id <= @upTo AND +object = @object AND _deleted_at IS NULL AND id GLOB @keys`,
      )
      add.run({ feed, scope, object, ...range, keys, dueAt })
    },
    /** Removes the tasks of records that were deleted since an instant. */
    removeDeleted({ feed, scope, records, object }: TasksOfRecords, since: string) {
      const remove = prepare(
        `DELETE FROM sync_tasks WHERE feed = ? AND scope = ? AND key IN (
           SELECT id FROM ${quote(records)} WHERE +object = ? AND _deleted_at >= ?)`,
      )
      remove.run(feed, scope, object, since)
    },
    /**
     * Removes up to `atMost` tasks of a scope, except those whose answer had rejects. Returns whether there may be more.
     */
    removeSome: (scope: { feed: string; scope: string }, atMost: number) =>
      removeSome.run({ ...scope, atMost }).changes === atMost,
  }
}
