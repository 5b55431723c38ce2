/**
 * Loaded into a process before its program, and tells at its end what that took, as JSON on descriptor 3.
 * `VmHWM` is of this program alone; the figure that the system keeps for a parent may be an earlier program's.
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
