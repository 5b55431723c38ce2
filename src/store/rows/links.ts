import { tableNamed } from '../../catalog/catalog.ts'
import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { keyOfValues, type RowKey } from '../deletions/suspicions.ts'

interface AssociatedRecord {
  object: string
  id: string
  /** The object of the records at the other end. */
  otherObject: string
  /** True when the record comes first in the table's key. */
  isFirst: boolean
}

export type AssociationsOfRecord = ReturnType<ReturnType<typeof createLinks>['ofRecord']>

/** The rows of link tables, which join two keys and have no content. */
export function createLinks(prepare: Prepare) {
  return {
    /** Adds members of a scope; the table's key is the scope and the member. Returns how many members are new. */
    addMembers(name: string, scope: string, keys: readonly string[]) {
      const columns = tableNamed(name).key.map(quote).join(', ')
      const insert = prepare(`INSERT OR IGNORE INTO ${quote(name)} (${columns}) VALUES (?, ?)`)
      return keys.reduce((sum, key) => sum + insert.run(scope, key).changes, 0)
    },
    /** The associations of one record, in a table with the key columns object, record, other object, other record. */
    ofRecord(name: string, { object, id, otherObject, isFirst }: AssociatedRecord) {
      const table = quote(name)
      const [firstObject = '', firstId = '', secondObject = '', secondId = ''] =
        tableNamed(name).key.map(quote)
      const [mine, other] = isFirst ? [firstId, secondId] : [secondId, firstId]
      const objects = isFirst ? [object, otherObject] : [otherObject, object]
      const select = prepare<string>(
        `SELECT ${other} FROM ${table} WHERE ${firstObject} = ? AND ${secondObject} = ? AND ${mine} = ?`,
      )
      const insert = prepare(
        `INSERT OR IGNORE INTO ${table} (${firstObject}, ${secondObject}, ${mine}, ${other}) VALUES (?, ?, ?, ?)`,
      )
      return {
        /** The ids of the associated records. */
        stored: () => select.pluck().all(...objects, id),
        /** Returns how many rows are new: 0 or 1. */
        add: (otherId: string) => insert.run(...objects, id, otherId).changes,
        row(otherId: string): RowKey {
          const [from, to] = isFirst ? [id, otherId] : [otherId, id]
          return keyOfValues(name, [objects[0] ?? '', from, objects[1] ?? '', to])
        },
      }
    },
  }
}
