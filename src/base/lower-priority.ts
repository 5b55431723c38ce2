import { constants, setPriority } from 'node:os'

/** Called by child processes with long work, so that the process that reads the API gets the processor first. */
export function lowerPriority(): void {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // A service may not be allowed to lower its priority. The work then runs with normal priority.
  }
}
