import { errorCode } from '../../base/errors.ts'
import { isLocked } from '../file/lock.ts'
import { META, readNote } from '../sync/meta.ts'
import type { Writer } from '../sync/writer-note.ts'
import type { Status } from './status.ts'

/** The process that writes a warehouse, or the last one that did. */
export interface WriterState extends Writer {
  /** True while the process holds the lock. */
  running: boolean
  /** True when the process is gone and left open runs: it was killed, or the machine went down. */
  died: boolean
}

/**
 * The writer recorded in `sync_meta`, checked against the lock. When the lock cannot be checked, the writer counts as
 * running while a process with its PID exists.
 */
export function writerOf({
  database,
  meta,
  openRuns,
}: Pick<Status, 'database' | 'meta' | 'openRuns'>): WriterState | undefined {
  const writer = readNote<Writer>(key => meta.get(key), META.writer)
  if (writer === undefined) return undefined
  const running = isLocked(database.path) ?? isAlive(writer.pid)
  return { ...writer, running, died: !running && openRuns > 0 }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}
