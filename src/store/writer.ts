import { isLocked, type Writer } from './lock.ts'
import { META } from './state.ts'
import type { Status } from './status.ts'

/** Who writes a warehouse, or was the last to do so. */
export interface WriterState extends Writer {
  /** True while it holds the lock. */
  running: boolean
  /** True when it is gone without having ended its runs: it was killed, or the machine went down. */
  died: boolean
}

/**
 * What the last writer said of itself, checked against the lock. Where the lock may not be asked, a process of that
 * number counts as it.
 */
export function writerOf({ database, meta, openRuns }: Status): WriterState | undefined {
  const said = meta.get(META.writer)
  if (said === undefined) return undefined
  const writer = JSON.parse(said) as Writer
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
