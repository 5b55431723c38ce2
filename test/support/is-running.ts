import { existsSync, readFileSync } from 'node:fs'

/** Whether there is a process with this id that has not ended. An ended one may wait for its parent as a zombie. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !existsSync('/proc/self/stat') || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
