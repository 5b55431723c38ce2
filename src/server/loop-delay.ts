import { monitorEventLoopDelay } from 'node:perf_hooks'

/** How much later than due the process got to its timers, in seconds. */
export interface LoopDelay {
  p50: number
  p99: number
  max: number
}

export interface LoopDelayMonitor {
  /** Since the last time this was asked, what has held up the process in this very turn included. */
  take(): Promise<LoopDelay>
  stop(): void
}

const RESOLUTION_MS = 20

export function startLoopDelayMonitor(): LoopDelayMonitor {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  // What is measured is the time from one timer to the next, the time that is meant to be between them included.
  const delay = (ns: number) => (histogram.count === 0 ? 0 : Math.max(0, ns / 1e6 - RESOLUTION_MS) / 1000)
  return {
    async take() {
      await timersPassed()
      const taken = {
        p50: delay(histogram.percentile(50)),
        p99: delay(histogram.percentile(99)),
        max: delay(histogram.max),
      }
      histogram.reset()
      return taken
    },
    stop: () => void histogram.disable(),
  }
}

/** A timer that is overdue is only noted when it has its turn, and what is not noted yet a reset forgets. */
async function timersPassed(): Promise<void> {
  await new Promise(setImmediate)
  await new Promise(setImmediate)
}
