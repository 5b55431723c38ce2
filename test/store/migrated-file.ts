import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openWarehouse } from '../../src/store/open-warehouse.ts'

/** The bytes of a database with all tables and views of this version, and no row. */
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
  openWarehouse({ path }).close()
  const migrated = readFileSync(path)
  rmSync(folder, { recursive: true })
  return migrated
}
