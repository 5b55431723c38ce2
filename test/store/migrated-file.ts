import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { statementCache } from '../../src/store/database/statements.ts'
import { fillDictionary, fillQuestions } from '../../src/store/dictionary/fill-dictionary.ts'
import { openWarehouse } from '../../src/store/open-warehouse.ts'
import { createState } from '../../src/store/sync/resource-state.ts'

/** The bytes of a database with all tables and views of this version, its dictionary and its questions, and no other row. */
let bytes: Buffer | undefined

/**
 * Puts such a database at the path of a test's warehouse. All migrations of a new file take as long as everything else
 * that `openStore` does, so they run once in each process; `test/migrations` is about them.
 */
export function writeMigratedFile(path: string): void {
  bytes ??= migratedBytes()
  writeFileSync(path, bytes, { mode: 0o600 })
}

function migratedBytes(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'parley-migrated-'))
  const path = join(folder, 'parley.db')
  const db = openWarehouse({ path })
  const prepare = statementCache(db)
  const state = createState(prepare)
  db.transaction(() => {
    fillDictionary(prepare, state)
    fillQuestions(prepare, state)
  })()
  db.close()
  const migrated = readFileSync(path)
  rmSync(folder, { recursive: true })
  return migrated
}
