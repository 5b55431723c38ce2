import { readdirSync, readFileSync } from 'node:fs'

/** Measures how long processes have waited for a processor that other programs were using. */
export interface ProcessorWaits {
  /**
   * Milliseconds since the last call, summed over the threads of this process and its descendants. 0 when the system
   * does not report it.
   */
  sinceLast(): number
}

export function processorWaits(): ProcessorWaits {
  let before = readWaits()
  return {
    sinceLast() {
      const now = readWaits()
      let grown = 0
      // A thread that started after the last call counts with its whole wait.
      for (const [thread, ns] of now) grown += Math.max(0, ns - (before.get(thread) ?? 0))
      before = now
      return grown / 1e6
    },
  }
}

/** In nanoseconds, by thread. */
function readWaits(): Map<string, number> {
  const waits = new Map<string, number>()
  const processes = [String(process.pid)]
  for (let pid = processes.pop(); pid !== undefined; pid = processes.pop()) {
    for (const thread of threadsOf(pid)) {
      const folder = `/proc/${pid}/task/${thread}`
      // Three numbers: time on a processor, time waiting for one, turns.
      const [, waited = 0] = wordsOf(`${folder}/schedstat`).map(Number)
      waits.set(thread, waited)
      processes.push(...wordsOf(`${folder}/children`))
    }
  }
  return waits
}

function threadsOf(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

/** Empty when the thread has ended meanwhile. */
function wordsOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split(/\s+/).filter(Boolean)
  } catch {
    return []
  }
}
