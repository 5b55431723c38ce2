import { quote } from './sql.ts'
import type { Sqlite } from './sqlite-types.ts'

/**
 * Renames a table without checking or changing views. A view may select columns of another table that had this name, or
 * be broken, and SQLite would refuse the rename because of it.
 */
export function renameTable(db: Sqlite, from: string, to: string): void {
  db.pragma('legacy_alter_table = ON')
  try {
    db.exec(`ALTER TABLE ${quote(from)} RENAME TO ${quote(to)}`)
  } finally {
    db.pragma('legacy_alter_table = OFF')
  }
}
