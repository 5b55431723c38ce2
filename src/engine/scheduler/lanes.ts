import { type ChosenJob, type Job, LANES, type Lane, type Source } from '../context/job.ts'

/** Weights of the lanes while every lane has requests. */
const SHARES: Readonly<Record<Lane, number>> = { head: 8, items: 3, history: 3, audit: 2 }

export interface LanesDeps {
  commits: () => number
  elapsed: () => number
  /** Time until a request on this route may be sent, in ms; infinite while other requests have to end first. */
  untilMs: (route: string) => number
}

/** How long to wait before asking an empty source again, while other sources have work and while none has. */
const ASK_AGAIN_MS = { busy: 500, idle: 25 }

export type Lanes = ReturnType<typeof createLanes>

/**
 * Weighted shares: the lane with the fewest requests for its weight goes first, and other lanes take what it cannot
 * use. An empty source is asked again when one of its jobs is over, or when there was a commit and `ASK_AGAIN_MS` have
 * passed since it was last asked. Asking all sources at every step would cost more than the work itself and delay the
 * chosen request.
 */
export function createLanes(sources: readonly Source[], { commits, elapsed, untilMs }: LanesDeps) {
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

  const fromSources = (lane: Lane, againMs: number): ChosenJob | undefined => {
    const turn = turns.get(lane) ?? 0
    for (let step = 0; step < sources.length; step += 1) {
      const source = sources[(turn + step) % sources.length]
      const job = source?.lane === lane && untilMs(source.route) <= 0 ? ask(source, againMs) : undefined
      if (!job) continue
      turns.set(lane, (turn + step + 1) % sources.length)
      return { job, lane }
    }
    return undefined
  }

  const charge = (lane: Lane) => {
    allAsked = false
    const share = (used.get(lane) ?? 0) + 1 / SHARES[lane]
    used.set(lane, share)
    // An idle lane must not catch up later at the expense of the others.
    for (const [other, others] of used) used.set(other, Math.max(others, share - 1))
  }

  return {
    /** The most urgent job that can be sent now. */
    choose(): ChosenJob | undefined {
      const order = [...LANES].sort((one, other) => (used.get(one) ?? 0) - (used.get(other) ?? 0))
      for (const againMs of [ASK_AGAIN_MS.busy, ASK_AGAIN_MS.idle]) {
        for (const lane of order) {
          const chosen = fromSources(lane, againMs)
          if (!chosen) continue
          charge(lane)
          return chosen
        }
      }
      return undefined
    },
    /** Makes the lanes ask the sources of this feed again. */
    askAgain(feed: string): void {
      for (const source of sources) if (source.feed === feed) idle.delete(source)
    },
    /** Time in ms until an empty source may be asked again after a commit. */
    waitMs(): number {
      const stale = [...idle].filter(
        ([{ route }, before]) => before.commits !== commits() && untilMs(route) <= 0,
      )
      return Math.min(...stale.map(([, { askedAt }]) => askedAt + ASK_AGAIN_MS.idle - elapsed()))
    },
    /** Makes the lanes ask every source again. */
    askAll(): void {
      idle.clear()
      allAsked = false
    },
    /**
     * Makes the lanes ask all sources once more before the end, since a source may wait for another. False when repeated
     * without a job in between.
     */
    askAllAgain(): boolean {
      if (allAsked) return false
      idle.clear()
      allAsked = true
      return true
    },
  }
}
