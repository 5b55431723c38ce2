import { readFileSync, statSync } from 'node:fs'
import type { Sqlite } from '../store/database/sqlite-types.ts'
import { isAlive } from '../store/file/writer.ts'
import { readWriter, type Writer } from '../store/sync/writer-note.ts'
import type { Finder, Finding } from './finding.ts'

/** Finds the process that writes the database, without taking the database's lock. */

interface WriterContext {
  database: string
  db: Sqlite | undefined
}

export interface RunningWriter {
  pid: number
  /** Undefined when the process did not record itself, or that record cannot be read. */
  recorded: Writer | undefined
}

/** Where the system does not show locks, the recorded writer counts as running while a process with its PID exists. */
export function runningWriter({ database, db }: WriterContext): RunningWriter | undefined {
  const recorded = recordedWriter(db)
  const holder = lockHolder(`${database}-lock`)
  if (holder === 'unknown')
    return recorded && isAlive(recorded.pid) ? { pid: recorded.pid, recorded } : undefined
  return holder === undefined
    ? undefined
    : { pid: holder, recorded: recorded?.pid === holder ? recorded : undefined }
}

export function writerFinding({ database, db }: WriterContext, line: Finder): Finding {
  const holder = lockHolder(`${database}-lock`)
  if (holder === 'unknown') {
    const last = db && readWriter(db)
    const who = last
      ? `the last writer was process ${last.pid} (parley ${last.command}), started ${last.since}`
      : 'no earlier writer is recorded'
    return line.note(`this system does not show whether a process holds the lock; ${who}`)
  }
  if (holder === undefined) return line.ok('no process holds the lock')
  const recorded = recordedWriter(db)
  const who =
    recorded?.pid === holder ? `parley ${recorded.command} since ${recorded.since}` : 'command unknown'
  return line.note(
    `process ${holder} holds the lock (${who})`,
    'A backfill or daemon cannot start until it ends.',
  )
}

function recordedWriter(db: Sqlite | undefined): Writer | undefined {
  try {
    return db && readWriter(db)
  } catch {
    // Other checks report a damaged database. The process that holds the lock is known without its record.
    return undefined
  }
}

/**
 * The process that holds the lock, from /proc/locks; `unknown` where the system has no such file. This check does not
 * try to take the lock: a process that starts at that moment would fail. Only the inode is compared, not the device:
 * btrfs and overlayfs show the device differently in /proc/locks.
 */
function lockHolder(file: string): number | undefined | 'unknown' {
  const stats = statSync(file, { throwIfNoEntry: false })
  if (!stats) return undefined
  let locks: string
  try {
    locks = readFileSync('/proc/locks', 'utf8')
  } catch {
    return 'unknown'
  }
  const holders = locks.split('\n').flatMap(text => {
    const [, pid, , inode] = / WRITE +(-?\d+) +(\S+?):(\d+) /.exec(text) ?? []
    return inode === String(stats.ino) && pid !== undefined ? [Number(pid)] : []
  })
  return holders[0]
}
