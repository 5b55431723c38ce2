import { type Clock, isoInstant } from '../../base/clock.ts'
import { EXIT_STATUS, StopError } from '../../base/errors.ts'
import { REQUEST_TABLE } from '../../catalog/bookkeeping/tables.ts'
import { RESOURCE_NAMES, type ResourceName } from '../../declare/resource-names.ts'
import { REPORTS, type Resyncable } from '../../declare/resyncable.ts'
import { openBriefWriter } from '../database/connections.ts'
import { hasTable } from '../database/existing-tables.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { whileBusy } from '../database/transaction.ts'
import { resolvedPath } from '../disk/location.ts'
import { writeError } from '../migrations/foreign-objects.ts'
import { readWriter, type Writer } from '../sync/writer-note.ts'
import { openDatabase } from './open.ts'

/** `resync`: read a resource again. `accept-deletions`: apply what the mass-deletion guard holds back. */
const REQUEST_KINDS = REQUEST_TABLE.columns.kind.values

/**
 * A request of another process to the process that writes the warehouse: a row of `sync_requests`.
 * engine/run/handed-over.ts executes it.
 */
export type Request = NewRequest & { id: number; askedAt: string }

export type NewRequest =
  | { kind: 'resync'; resource: Resyncable }
  | { kind: 'accept-deletions'; resource: ResourceName }

export function createRequests(prepare: Prepare) {
  const done = prepare('UPDATE sync_requests SET done_at = ? WHERE id = ?')
  const dataVersion = prepare('PRAGMA data_version').pluck()
  let seen: unknown
  return {
    /** The open requests, oldest first. */
    open: () => openRequests(prepare),
    done: (id: number, now: string) => {
      done.run(now, id)
    },
    /** Whether another connection has written since the last call; true at the first call. A call takes microseconds. */
    changedByOthers() {
      const before = seen
      seen = dataVersion.get()
      return seen !== before
    },
  }
}

/** @returns the open requests, read through a read-only connection; none from a database of an older version */
export function readRequests(db: Sqlite): Request[] {
  return hasTable(db, 'sync_requests') ? openRequests(sql => db.prepare(sql)) : []
}

/**
 * Reads the open requests, without those of a kind or resource that only a newer version of parley knows. The latter
 * stay open.
 */
function openRequests(prepare: Prepare): Request[] {
  const rows = prepare<Request>(
    `SELECT id, kind, resource, asked_at AS askedAt FROM sync_requests
     WHERE done_at IS NULL ORDER BY id`,
  ).all()
  return rows.filter(
    ({ kind, resource }) =>
      REQUEST_KINDS.includes(kind) &&
      (resource === REPORTS ? kind === 'resync' : RESOURCE_NAMES.includes(resource)),
  )
}

/**
 * Stores a request for the process that writes the warehouse, unless the same request is open.
 * @returns the process that writes the warehouse, if it is known
 * @throws StopError, exit status 73 when the database may not be written, 75 when it is busy or its writer supports no
 * requests
 */
export async function askWriter(
  path: string,
  request: NewRequest,
  clock: Clock,
): Promise<Writer | undefined> {
  const file = resolvedPath(path)
  // This read-only connection is closed last, so that SQLite keeps the -wal and -shm files if the writer has ended.
  const reader = openDatabase({ path: file, readonly: true })
  try {
    if (!hasTable(reader, 'sync_requests')) throw requestsUnsupported(file)
    // A restore takes the database out of WAL mode before it replaces the file. The request would be lost with the
    // file.
    if (reader.pragma('journal_mode', { simple: true }) !== 'wal') throw beingReplaced(file)
    await insert(file, request, clock)
    return readWriter(reader)
  } catch (error) {
    throw writeError(error, file)
  } finally {
    reader.close()
  }
}

async function insert(file: string, { kind, resource }: NewRequest, clock: Clock): Promise<void> {
  const db = openBriefWriter(file)
  try {
    const ask = db.prepare(
      `INSERT INTO sync_requests (kind, resource, asked_at) SELECT @kind, @resource, @now
       WHERE NOT EXISTS (SELECT 1 FROM sync_requests
         WHERE kind = @kind AND resource = @resource AND done_at IS NULL)`,
    )
    await whileBusy(clock, () => ask.run({ kind, resource, now: isoInstant(clock.now()) }))
  } finally {
    db.close()
  }
}

function beingReplaced(file: string): StopError {
  return new StopError(
    `Cannot store this command in ${file}: another process holds its lock, and is restoring or creating the file, or does not use it since it was replaced`,
    {
      code: 'database-locked',
      hint: 'parley status says more. Run this command again when that process has ended.',
      exitStatus: EXIT_STATUS.unfinished,
    },
  )
}

function requestsUnsupported(file: string): StopError {
  return new StopError(
    `Cannot pass this command to the process that has ${file} open: the table sync_requests is missing`,
    {
      code: 'database-locked',
      hint: 'That process is an older version of parley, or still creates or upgrades the file. Wait for it or stop it, then run this command again.',
      exitStatus: EXIT_STATUS.unfinished,
    },
  )
}
