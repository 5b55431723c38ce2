import Database from 'better-sqlite3'
import { META, readMeta } from '../sync/meta.ts'
import type { Owner } from './copy-owners.ts'

/** Reads the owner of a copy. Empty when the copy is damaged, may not be read, or is of a version without the keys. */
export function ownerOf(path: string): Owner {
  try {
    const db = new Database(path, { readonly: true, fileMustExist: true })
    try {
      const [identity, maintainedAt] = [readMeta(db, META.identity), readMeta(db, META.maintainedAt)]
      return {
        ...(identity === undefined ? {} : { identity }),
        ...(maintainedAt === undefined ? {} : { maintainedAt }),
      }
    } finally {
      db.close()
    }
  } catch {
    return {}
  }
}
