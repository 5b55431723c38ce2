import type { Status } from '../status/status.ts'
import { META } from '../sync/meta.ts'
import { isLocked, type Writer } from './lock.ts'

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
export function writerOf({ database, meta, openRuns }: Status): WriterState | undefined {
  const text = meta.get(META.writer)
  if (text === undefined) return undefined
  const writer = JSON.parse(text) as Writer
  const running = isLocked(database.path) ?? isAlive(writer.pid)
  return { ...writer, running, died: !running && openRuns > 0 }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
