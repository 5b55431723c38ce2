import Database from 'better-sqlite3'
import type { Owner } from './copy-owners.ts'

/** Reads the owner of a copy. Empty when the copy is damaged, may not be read, or is of a version that stored neither. */
export function ownerOf(path: string): Owner {
  try {
    const db = new Database(path, { readonly: true, fileMustExist: true })
    try {
      const values = db
        .prepare("SELECT key, value FROM sync_meta WHERE key IN ('identity', 'maintained_at')")
        .all() as { key: string; value: string }[]
      const meta = new Map(values.map(({ key, value }) => [key, value]))
      const [identity, maintainedAt] = [meta.get('identity'), meta.get('maintained_at')]
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
