import { systemClock } from '../../src/base/clock.ts'
import { lockDatabase } from '../../src/store/file/lock.ts'
import { openStore } from '../../src/store/store.ts'

/**
 * Holds the lock of a warehouse until it is killed, or prints why it cannot. It holds the warehouse open for writing as
 * well, unless there is a second argument.
 */
const [path = '', closed] = process.argv.slice(2)
const clock = systemClock()
try {
  const held = lockDatabase(path, clock, 0o600)
  const store = openStore({ path, mode: 0o600, command: 'holder', pid: process.pid, clock, held })
  if (closed) store.close()
  process.stdout.write('held\n')
  // Keeps references to the store and to the lock, which would end with garbage collection.
  setInterval(() => (closed ? held.isCurrent() : store.state.meta('writer')), 1000)
} catch (error) {
  process.stdout.write(`${error instanceof Error ? error.message : error}\n`)
}
