import type { ParleyError } from '../errors.ts'
import type { Log } from '../log.ts'
import type { ResourceName } from '../resource.ts'

/** Says the same failure once for as long as it lasts: a line for each would bury all others. */
export interface FailureLog {
  failed(where: { resource: ResourceName; feed: string }, error: ParleyError): void
  /** A run of the resource met no failure. */
  recovered(resource: ResourceName): void
}

export function createFailureLog(log: Pick<Log, 'error' | 'info'>): FailureLog {
  /** Failures in a row, by feed and code. */
  const streaks = new Map<ResourceName, Map<string, number>>()
  return {
    failed({ resource, feed }, { code, message }) {
      const counts = streaks.get(resource) ?? new Map<string, number>()
      streaks.set(resource, counts)
      const kind = `${feed} ${code}`
      const failures = (counts.get(kind) ?? 0) + 1
      counts.set(kind, failures)
      if (!isPowerOfTen(failures)) return
      log.error('Failed to read a resource', { resource, code, reason: `${feed}: ${message}`, failures })
    },
    recovered(resource) {
      const counts = streaks.get(resource)
      if (!counts) return
      const failures = [...counts.values()].reduce((sum, count) => sum + count, 0)
      log.info('A resource is read again', { resource, failures })
      streaks.delete(resource)
    },
  }
}

/** The first, the tenth, the hundredth: what goes on for long is said again, ever more rarely. */
const isPowerOfTen = (count: number): boolean => Number.isInteger(Math.log10(count))
