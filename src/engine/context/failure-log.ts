import type { ParleyError } from '../../base/errors.ts'
import type { Log, LogFields } from '../../base/log.ts'
import type { ResourceName } from '../../declare/resource-names.ts'

/** Logs a lasting failure ever more rarely, since a line for each failed request would bury all others. */
export interface FailureLog {
  failed(where: { resource: ResourceName; feed: string }, error: ParleyError, lines?: FailureLines): void
  /** A run of the resource ended without a failure. */
  recovered(resource: ResourceName): void
}

/** The log lines of one kind of failure. */
export interface FailureLines {
  begins: string
  /** Absent when the end is logged elsewhere. */
  ends?: string
  /** Logged instead of the error's message and hint. */
  fields?: LogFields
}

/** `noteHealthy` logs the end: the resource may be read again in another session. */
const READING: FailureLines = { begins: 'Failed to read resource' }

export function createFailureLog(log: Pick<Log, 'error' | 'info'>): FailureLog {
  /** Failures in a row, by feed and code. */
  const streaks = new Map<ResourceName, Map<string, Streak>>()
  return {
    failed({ resource, feed }, { code, message, hint }, { begins, ends, fields } = READING) {
      const ofResource = streaks.get(resource) ?? new Map<string, Streak>()
      streaks.set(resource, ofResource)
      const kind = `${feed} ${code}`
      const failures = (ofResource.get(kind)?.failures ?? 0) + 1
      ofResource.set(kind, { failures, ends })
      if (!isPowerOfTen(failures)) return
      log.error(begins, { resource, code, ...(fields ?? { reason: `${feed}: ${message}`, hint }), failures })
    },
    recovered(resource) {
      const ended = [...(streaks.get(resource)?.values() ?? [])]
      for (const ends of new Set(ended.map(streak => streak.ends))) {
        if (ends === undefined) continue
        const failures = ended.reduce((sum, streak) => sum + (streak.ends === ends ? streak.failures : 0), 0)
        log.info(ends, { resource, failures })
      }
      streaks.delete(resource)
    },
  }
}

interface Streak {
  failures: number
  ends: string | undefined
}

/** The first, tenth, hundredth and so on: a long failure is logged again, ever more rarely. */
const isPowerOfTen = (count: number): boolean => Number.isInteger(Math.log10(count))
