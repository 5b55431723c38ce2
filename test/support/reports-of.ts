import type { Clock } from '../../src/base/clock.ts'
import type { Prepare, Sqlite } from '../../src/store/database/sqlite-types.ts'
import { createReports, type Reports } from '../../src/store/reporting/reports.ts'

interface OfWarehouse {
  db: Sqlite
  prepare: Prepare
  /** An instant, or a clock; its elapsed time stands still where it has none. */
  now: string | (() => number)
  elapsed?: Clock['elapsed']
  /** Runs one of the transactions; undefined where another program has the lock. */
  attempt: <T>(work: () => T) => { value: T } | undefined
}

/** The tables for reports of a warehouse that a test writes through `db`. */
export function reportsOf({ db, prepare, now, elapsed = () => 0, attempt }: OfWarehouse): Reports {
  const written = prepare<number>('SELECT total_changes()').pluck()
  return createReports({
    db,
    prepare,
    clock: { now: typeof now === 'string' ? () => Date.parse(now) : now, elapsed },
    changes: { wholeTable: () => undefined },
    commits: () => written.get() ?? 0,
    transaction: async work => {
      const done = attempt(work)
      if (!done) throw new Error('another program writes the warehouse of a test')
      return done.value
    },
  })
}
