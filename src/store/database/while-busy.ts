import type { Clock } from '../../base/clock.ts'
import { isBusy } from './sqlite-errors.ts'

/** How long to try again while another program holds the lock. Transactions are short, but there may be many. */
const PATIENCE_MS = 10_000
const PAUSE_MS = 50

/** Repeats the work while it fails because another program has locked the database. @throws its last error */
export async function whileBusy<T>(clock: Pick<Clock, 'elapsed' | 'sleep'>, work: () => T): Promise<T> {
  const begun = clock.elapsed()
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error) || clock.elapsed() - begun > PATIENCE_MS) throw error
    }
    await clock.sleep(PAUSE_MS)
  }
}
