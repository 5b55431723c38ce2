import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Delay of timers past their due time, in seconds. */
export interface LoopDelay {
  p50: number
  p99: number
  max: number
}

export interface LoopDelayMonitor {
  /** The delays since the last call, including the current turn of the event loop. */
  take(): Promise<LoopDelay>
  stop(): void
}

/** Each run of the timer wakes the process. Runs every 20 ms took three quarters of an idle daemon's processor time. */
const RESOLUTION_MS = 100

export function startLoopDelayMonitor(): LoopDelayMonitor {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  // The histogram records the time between two runs of its timer, which includes the resolution.
  const delay = (ns: number) => (histogram.count === 0 ? 0 : Math.max(0, ns / 1e6 - RESOLUTION_MS) / 1000)
  return {
    async take() {
      await letTimersRun()
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

/** The histogram records a delay only when the overdue timer runs. A reset before that would lose the delay. */
async function letTimersRun(): Promise<void> {
  await new Promise(setImmediate)
  await new Promise(setImmediate)
}
