import { systemClock } from '../../src/base/clock.ts'
import { openStore } from '../../src/store/store.ts'

/** Holds a warehouse open for writing until it is killed, or prints why it cannot. */
const [path = ''] = process.argv.slice(2)
try {
  const store = openStore({ path, mode: 0o600, command: 'holder', pid: process.pid, clock: systemClock() })
  process.stdout.write('held\n')
  // Keeps a reference to the store: its lock would end with garbage collection.
  setInterval(() => store.state.meta('writer'), 1000)
} catch (error) {
  process.stdout.write(`${error instanceof Error ? error.message : error}\n`)
}
