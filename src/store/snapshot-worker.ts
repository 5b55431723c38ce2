import { rmSync, statSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import Database from 'better-sqlite3'
import type { SnapshotAnswer, SnapshotOrder } from './snapshot-process.ts'
import { writeWholeCopy } from './whole-copy.ts'

/**
 * What the process of snapshot.ts runs: it makes one copy, checks it, answers and ends. It imports next to nothing,
 * since all that it loads is in memory once more.
 */

// What a terminal sends to all of its processes is for the one that asked, which ends this one.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined)

process.once('message', (order: SnapshotOrder) => {
  yieldToOthers()
  const answer = make(order)
  process.send?.(answer, undefined, undefined, lost => {
    // Whoever asked is gone: nobody will give the copy its name.
    if (lost) rmSync(order.part, { force: true })
    if (process.connected) process.disconnect()
  })
})

/** Another process that is just closing the database is waited for. */
const PATIENCE_MS = 5000

function make(order: SnapshotOrder): SnapshotAnswer {
  let about: 'database' | 'snapshot' = 'database'
  try {
    const db = new Database(order.database, { readonly: true, fileMustExist: true, timeout: PATIENCE_MS })
    try {
      db.pragma('cache_size = -8000')
      db.prepare('SELECT count(*) FROM sqlite_master').get()
      about = 'snapshot'
      if (isOfAnother(db, order.earlier)) return { failed: { about, code: 'other' } }
      writeWholeCopy(db, order.part)
      return checked(order, numbers(db))
    } finally {
      db.close()
    }
  } catch (error) {
    rmSync(order.part, { force: true })
    rmSync(`${order.part}-journal`, { force: true })
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    return { failed: { about: /^SQLITE_(CORRUPT|NOTADB)/.test(code) ? 'database' : about, code } }
  }
}

/** Read back from the copy itself, all of one moment. */
function checked({ part, statusSql }: SnapshotOrder, expected: readonly unknown[]): SnapshotAnswer {
  const copy = new Database(part, { readonly: true, fileMustExist: true })
  try {
    copy.exec('BEGIN')
    const isSame = numbers(copy).every((number, at) => number === expected[at])
    const isRollback = copy.pragma('journal_mode', { simple: true }) === 'delete'
    const found = copy.prepare('PRAGMA quick_check(1)').pluck().get()
    if (!isSame || !isRollback || found !== 'ok') return { failed: { about: 'snapshot', code: 'unsound' } }
    return { bytes: statSync(part).size, status: copy.prepare(statusSql).all() }
  } finally {
    copy.close()
  }
}

/** What tells that a file is parley's, and of which kind. */
function numbers(db: Database.Database): unknown[] {
  return ['application_id', 'user_version'].map(name => db.pragma(name, { simple: true }))
}

/** Those that cannot be told apart, since one of them is too old or no database at all, are taken for the same. */
function isOfAnother(db: Database.Database, earlier: string | undefined): boolean {
  if (earlier === undefined) return false
  try {
    const other = new Database(earlier, { readonly: true, fileMustExist: true })
    try {
      const [own, its] = [identityOf(db), identityOf(other)]
      return own !== undefined && its !== undefined && own !== its
    } finally {
      other.close()
    }
  } catch {
    return false
  }
}

function identityOf(db: Database.Database): unknown {
  return db.prepare("SELECT value FROM sync_meta WHERE key = 'identity'").pluck().get()
}

/** Nobody waits for it as for the reading of the API. */
function yieldToOthers(): void {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // A service may be forbidden to; it is a courtesy.
  }
}
