import { type Job, LANES, type Lane, type Source } from './job.ts'

/** A job on its way, for the n-th time. */
export interface Attempt {
  job: Job
  lane: Lane
  attempt: number
}

/** Of requests, while every lane has some to make. */
const SHARES: Readonly<Record<Lane, number>> = { head: 8, retry: 4, items: 3, history: 3, audit: 2 }

export interface LanesDeps {
  commits: () => number
  elapsed: () => number
  /** Whether requests of a feed wait for their route, so that no more of them are wanted. */
  isParked: (feed: string) => boolean
}

/** How long a source that had nothing is let be while others have work, and while none has. */
const ASK_AGAIN_MS = { busy: 500, idle: 25 }

/**
 * Weighted shares: the lane with the least requests for its share goes first, and what it cannot use others take.
 * A source that had nothing is asked again some time after something was committed, or when a job of its own is over:
 * asking all of them at every step would cost more than the work itself, and hold up the request that is chosen.
 */
export function createLanes(sources: readonly Source[], { commits, elapsed, isParked }: LanesDeps) {
  const used = new Map<Lane, number>(LANES.map(lane => [lane, 0]))
  const idle = new Map<Source, { commits: number; askedAt: number }>()
  const turns = new Map<Lane, number>()
  let allAsked = false

  const ask = (source: Source, againMs: number): Job | undefined => {
    const before = idle.get(source)
    if (before && (before.commits === commits() || elapsed() - before.askedAt < againMs)) return undefined
    const job = source.next()
    if (job) idle.delete(source)
    else idle.set(source, { commits: commits(), askedAt: elapsed() })
    return job
  }

  const fromSources = (lane: Lane, againMs: number): Attempt | undefined => {
    const turn = turns.get(lane) ?? 0
    for (let step = 0; step < sources.length; step += 1) {
      const source = sources[(turn + step) % sources.length]
      const job = source?.lane === lane && !isParked(source.feed) ? ask(source, againMs) : undefined
      if (!job) continue
      turns.set(lane, (turn + step + 1) % sources.length)
      return { job, lane, attempt: 1 }
    }
    return undefined
  }

  const charge = (lane: Lane) => {
    allAsked = false
    const share = (used.get(lane) ?? 0) + 1 / SHARES[lane]
    used.set(lane, share)
    // A lane that was idle must not make up for it later at the others' cost.
    for (const [other, others] of used) used.set(other, Math.max(others, share - 1))
  }

  return {
    choose(retries: (lane: Lane) => Attempt | undefined): Attempt | undefined {
      const order = [...LANES].sort((one, other) => (used.get(one) ?? 0) - (used.get(other) ?? 0))
      for (const againMs of [ASK_AGAIN_MS.busy, ASK_AGAIN_MS.idle]) {
        for (const lane of order) {
          const chosen = retries(lane) ?? fromSources(lane, againMs)
          if (!chosen) continue
          charge(lane)
          return chosen
        }
      }
      return undefined
    },
    askAgain(feed: string) {
      for (const source of sources) if (source.feed === feed) idle.delete(source)
    },
    /** How long until one that had nothing may be asked again, since something was committed meanwhile. */
    waitMs(): number {
      const stale = [...idle.values()].filter(before => before.commits !== commits())
      return Math.min(...stale.map(({ askedAt }) => askedAt + ASK_AGAIN_MS.idle - elapsed()))
    },
    /** What had nothing before may have something by now. */
    askAll() {
      idle.clear()
      allAsked = false
    },
    /** Before the end all are asked once more, since one may have waited for another to end. False at the end. */
    askAllAgain(): boolean {
      if (allAsked) return false
      idle.clear()
      allAsked = true
      return true
    },
  }
}
