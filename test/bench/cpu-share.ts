import { cpus } from 'node:os'

/** The processor load of the whole machine, over all cores and processes. */
export interface CpuShare {
  mean: number
  /** The highest load in 5 s. */
  highest: number
}

const STRETCH_MS = 5000

/** Measures until the returned function is called. */
export function watchCpu(): () => CpuShare {
  const began = cpuTimes()
  let last = began
  let highest = 0
  const timer = setInterval(() => {
    const now = cpuTimes()
    highest = Math.max(highest, busyShare(last, now))
    last = now
  }, STRETCH_MS)
  return () => {
    clearInterval(timer)
    const mean = busyShare(began, cpuTimes())
    return { mean, highest: Math.max(mean, highest) }
  }
}

interface CpuTimes {
  idle: number
  all: number
}

function cpuTimes(): CpuTimes {
  const times = cpus().map(cpu => cpu.times)
  return {
    idle: times.reduce((sum, { idle }) => sum + idle, 0),
    all: times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0),
  }
}

function busyShare(before: CpuTimes, after: CpuTimes): number {
  return 1 - (after.idle - before.idle) / Math.max(1, after.all - before.all)
}
