import { closeSync, fsyncSync, openSync, readFileSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'

/** Lines of text about the machine and the versions that the figures depend on. */
export function describeMachine(folder: string): string[] {
  const { bavail, bsize } = statfsSync(folder)
  return [
    `CPU: ${cpus()[0]?.model ?? 'unknown'}, ${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}`,
    `Memory: ${(totalmem() / 2 ** 30).toFixed(1)} GiB`,
    `Node: ${process.version}`,
    `Disk: ${fileSystemOf(folder)}, ${(Number(bavail) * (Number(bsize) / 2 ** 30)).toFixed(0)} GiB free, fsync of a page ${medianSyncMs(folder).toFixed(1)} ms`,
  ]
}

function fileSystemOf(folder: string): string {
  try {
    const mounts = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map(line => line.split(' '))
      .filter(([, at = '']) => at === '/' || folder === at || folder.startsWith(`${at}/`))
      .sort(([, one = ''], [, other = '']) => other.length - one.length)
    return mounts[0]?.[2] ?? 'unknown'
  } catch {
    return 'unknown'
  }
}

function medianSyncMs(folder: string): number {
  const path = join(folder, 'sync-trial')
  const file = openSync(path, 'w')
  try {
    const page = Buffer.alloc(4096, 1)
    const times = Array.from({ length: 21 }, () => {
      const began = performance.now()
      writeSync(file, page)
      fsyncSync(file)
      return performance.now() - began
    })
    return times.sort((a, b) => a - b)[10] ?? 0
  } finally {
    closeSync(file)
    rmSync(path)
  }
}
