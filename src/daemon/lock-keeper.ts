import type { Clock } from '../base/clock.ts'
import type { ApiSettings } from '../config/loaded-settings.ts'
import { resolvedPath } from '../store/disk/location.ts'
import { type HeldLock, lockDatabase } from '../store/file/lock.ts'

export type LockKeeper = ReturnType<typeof createLockKeeper>

/** Holds the lock of one database, also between sessions. */
export function createLockKeeper(clock: Clock) {
  let held: { path: string; lock: HeldLock } | undefined
  const release = () => {
    held?.lock.release()
    held = undefined
  }
  return {
    /**
     * Takes this database's lock unless this process holds it.
     * @throws StopError (exit status 75) when another process holds it
     */
    on(database: ApiSettings['database']): HeldLock {
      const path = resolvedPath(database.path)
      if (held?.path !== path || !held.lock.isCurrent()) {
        release()
        held = { path, lock: lockDatabase(path, clock, database.mode) }
      }
      return held.lock
    },
    release,
  }
}
