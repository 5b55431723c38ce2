import { DICTIONARY } from '../../src/dictionary/dictionary.ts'
import { quote } from '../../src/store/database/sql.ts'
import type { Sqlite } from '../../src/store/database/sqlite-types.ts'

/** Stores one live row in every table that is no view: what the dictionary shows as examples. */
export function storeExamples(db: Sqlite): void {
  for (const { name, form, columns } of DICTIONARY) {
    if (form === 'view' || name === 'data_dictionary') continue
    const shown = columns.filter(column => column.name !== '_deleted_at')
    const names = shown.map(column => quote(column.name)).join(', ')
    db.prepare(`INSERT INTO ${quote(name)} (${names}) VALUES (${shown.map(() => '?').join(', ')})`).run(
      ...shown.map(({ example }) => example),
    )
  }
}
