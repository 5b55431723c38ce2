import { spawnSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { createLog } from '../../src/base/log.ts'
import { createServiceManager } from '../../src/daemon/service-manager.ts'
import type { Order } from './notifier-process.ts'

/**
 * Sends to a service manager what the lines of standard input say, one order a line, and ends at the end of the input.
 * With `--manual` a sleep ends on an order. The length of each sleep, and the log, go to standard output.
 */
const sleeping: (() => void)[] = []
const say = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`)

const manualClock: Clock = {
  ...systemClock(),
  sleep: (ms, signal) =>
    new Promise(resolve => {
      say({ sleeping: ms })
      sleeping.push(resolve)
      signal?.addEventListener('abort', () => resolve())
    }),
}

let alive = true
const manager = createServiceManager({
  env: process.env,
  clock: process.argv.includes('--manual') ? manualClock : systemClock(),
  log: await createLog({ level: 'info', stream: process.stdout }),
})

const ORDERS: { [Name in Order[0]]: (argument: string) => unknown } = {
  ready: manager.ready,
  reloading: manager.reloading,
  stopping: reason => manager.stopping(reason || undefined),
  watchdog: () => manager.watchdog(() => alive),
  alive: argument => {
    alive = argument === 'true'
  },
  wake: () => sleeping.shift()?.(),
  /** Keeps the event loop from turning; the messages before and after go out past the service manager. */
  block: ms => {
    spawnSync('systemd-notify', ['STATUS=blocked'])
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(ms))
    spawnSync('systemd-notify', ['STATUS=unblocked'])
  },
}

for await (const line of createInterface({ input: process.stdin })) {
  const [name, argument = '']: Order = JSON.parse(line)
  await ORDERS[name](argument)
}
await manager.close()
// Ends as the program does: unsent messages are lost.
process.stdout.write('', () => process.exit(0))
