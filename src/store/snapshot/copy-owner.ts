import { openSqlite } from '../database/sqlite.ts'
import { META, readMeta } from '../sync/meta.ts'
import type { Owner } from './copy-owners.ts'

/** Reads the owner of a copy. Empty when the copy is damaged, may not be read, or is of a version without the keys. */
export function ownerOf(path: string): Owner {
  try {
    const db = openSqlite(path, { readonly: true, fileMustExist: true })
    try {
      const owner: Owner = {}
      for (const key of ['identity', 'maintainedAt', 'purgedAt'] as const) {
        const value = readMeta(db, META[key])
        if (value !== undefined) owner[key] = value
      }
      return owner
    } finally {
      db.close()
    }
  } catch {
    return {}
  }
}
