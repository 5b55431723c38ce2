import { writeFileSync } from 'node:fs'
import { constants, setPriority } from 'node:os'

/** Called by child processes with long work, so that the process that reads the API gets the processor first. */
export function lowerPriority(): void {
  const priority = constants.priority.PRIORITY_BELOW_NORMAL
  try {
    setPriority(priority)
    // Linux may compare priorities only within a session, and sessions by this number. A child has a separate session.
    writeFileSync('/proc/self/autogroup', String(priority))
  } catch {
    // A service may not be allowed to lower its priority. The work then runs with normal priority. Other systems have no
    // such file.
  }
}
