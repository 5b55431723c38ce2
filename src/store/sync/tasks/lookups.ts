import type { TimelineFeed } from '../../../declare/resource.ts'
import { quote } from '../../database/sql.ts'
import type { Prepare } from '../../database/sqlite-types.ts'

/** A column of another table with keys that a timeline's table may lack. The timeline's feed declares it. */
export type LookupSource = NonNullable<TimelineFeed['lookup']>

/** The tasks that read rows that a timeline did not show although another table refers to them. */
export function createLookupTasks(prepare: Prepare) {
  const isKnown = (table: string, key: string) =>
    `EXISTS (SELECT 1 FROM ${quote(table)} t WHERE t.id = ${key})`
  return {
    /**
     * Keys that live rows of the source refer to and that `table` does not have.
     * @param range each `_id` of the source greater than `after`, up to and including `upTo`
     */
    unknownKeys(table: string, source: LookupSource, { after, upTo }: { after: number; upTo: number }) {
      const key = `l.${quote(source.column)}`
      const unknown = prepare<string>(
        `SELECT DISTINCT ${key} FROM ${quote(source.table)} l
         WHERE l._id > ? AND l._id <= ? AND ${source.where} AND l._deleted_at IS NULL AND ${key} IS NOT NULL
           AND NOT ${isKnown(table, key)}`,
      )
      return unknown.pluck().all(after, upTo)
    },
    /**
     * Removes the feed's tasks for keys that the table has by now, or that no live row of the source refers to any more.
     */
    removeSettled(feed: string, table: string, source: LookupSource) {
      const column = `l.${quote(source.column)}`
      const isNamed = `EXISTS (SELECT 1 FROM ${quote(source.table)} l
        WHERE ${column} = sync_tasks.key AND ${source.where} AND l._deleted_at IS NULL)`
      prepare(
        `DELETE FROM sync_tasks WHERE feed = ? AND (${isKnown(table, 'sync_tasks.key')} OR NOT ${isNamed})`,
      ).run(feed)
    },
  }
}
