import { rmSync, statSync } from 'node:fs'
import { errorCode } from '../../base/errors.ts'
import { lowerPriority } from '../../base/lower-priority.ts'
import { answerParent } from '../database/child-program.ts'
import { openReader } from '../database/connections.ts'
import { openSqlite } from '../database/sqlite.ts'
import type { Sqlite } from '../database/sqlite-types.ts'
import { writeWholeCopy } from '../database/whole-copy.ts'
import type { StatusRow } from '../status/status.ts'
import { type CopyOrder, ownerOfCopy, type SnapshotAnswer, type SnapshotInput } from './copy-process.ts'

/**
 * The program of the child process in copy-process.ts. It either writes and verifies one copy, or reads the owners of
 * copies. Then it answers and exits. It imports as little as possible, because a child process loads a second copy of
 * each module into memory.
 */

/** How long to wait for another process that is closing the database. */
const BUSY_TIMEOUT_MS = 5000

function makeCopy(input: SnapshotInput): SnapshotAnswer {
  let about: 'database' | 'snapshot' = 'database'
  try {
    const db = openReader(input.database, BUSY_TIMEOUT_MS)
    try {
      db.pragma('cache_size = -8000')
      about = 'snapshot'
      if (isOfOtherWarehouse(input)) return { failed: { about, code: 'other' } }
      writeWholeCopy(db, input.part)
      return verify(input, headerNumbers(db))
    } finally {
      db.close()
    }
  } catch (error) {
    rmSync(input.part, { force: true })
    rmSync(`${input.part}-journal`, { force: true })
    const code = errorCode(error) ?? 'unknown'
    return { failed: { about: /^SQLITE_(CORRUPT|NOTADB)/.test(code) ? 'database' : about, code } }
  }
}

/**
 * Verifies the copy and reads its status, in one read transaction. `quick_check` takes two thirds of the time and would
 * not see an index that differs from its table: the copy of a damaged index is as damaged.
 */
function verify({ part, statusSql }: SnapshotInput, expected: readonly unknown[]): SnapshotAnswer {
  const copy = openSqlite(part, { readonly: true, fileMustExist: true })
  try {
    copy.exec('BEGIN')
    const isSame = headerNumbers(copy).every((number, at) => number === expected[at])
    const isRollback = copy.pragma('journal_mode', { simple: true }) === 'delete'
    const found = copy.prepare('PRAGMA integrity_check(1)').pluck().get()
    if (!isSame || !isRollback || found !== 'ok') return { failed: { about: 'snapshot', code: 'unsound' } }
    return { bytes: statSync(part).size, status: copy.prepare<unknown[], StatusRow>(statusSql).all() }
  } finally {
    copy.close()
  }
}

/** The numbers in the database header that an application sets. A correct copy has the same numbers. */
function headerNumbers(db: Sqlite): unknown[] {
  return ['application_id', 'user_version'].map(name => db.pragma(name, { simple: true }))
}

/**
 * Whether the earlier snapshot is of another warehouse. False also when one of the two files cannot be read, or has no
 * identity because an older version wrote it.
 */
function isOfOtherWarehouse({ database, earlier }: SnapshotInput): boolean {
  if (earlier === undefined) return false
  const [own, its] = [ownerOfCopy(database).identity, ownerOfCopy(earlier).identity]
  return own !== undefined && its !== undefined && own !== its
}

answerParent<CopyOrder>(
  input => {
    if ('paths' in input) return input.paths.map(ownerOfCopy)
    lowerPriority()
    return makeCopy(input)
  },
  input => {
    // The parent has ended, so no process would rename the copy into place.
    if ('part' in input) rmSync(input.part, { force: true })
  },
)
