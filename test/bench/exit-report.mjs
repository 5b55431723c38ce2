/**
 * Loaded into a process before its program. At exit it reports the time and memory used, as JSON on descriptor 3.
 * `VmHWM` is for this program only; the system's figure for child processes may come from an earlier one.
 */
import { readFileSync, writeSync } from 'node:fs'

process.on('exit', () => {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage()
  const report = {
    peakKiB: highWater() ?? maxRSS,
    userMs: userCPUTime / 1000,
    systemMs: systemCPUTime / 1000,
  }
  writeSync(3, JSON.stringify(report))
})

function highWater() {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1])
  } catch {
    return undefined
  }
}
