import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newFolder } from '../support/parley-process.ts'

const SHIFTED_CLOCK = new URL('shifted-clock.mjs', import.meta.url).href

/** A wall clock for the processes of a test. The test can set it before a process starts and while it runs. */
export interface ShiftedClock {
  /** The environment of the process. */
  env: Readonly<Record<string, string>>
  /** Sets its difference from this machine's clock, in ms: for the running process and for later ones. */
  set(ms: number, pid?: number): void
}

export function shiftedClock(shiftMs = 0): ShiftedClock {
  const file = join(newFolder(), 'session')
  const write = (ms: number): void => writeFileSync(file, String(Math.round(ms)))
  write(shiftMs)
  return {
    env: { NODE_OPTIONS: `--import=${SHIFTED_CLOCK}`, SHIFTED_CLOCK: file },
    set(ms, pid) {
      write(ms)
      if (pid !== undefined) process.kill(pid, 'SIGUSR2')
    },
  }
}
