import { mix } from '../../base/random.ts'
import { SALT, type Scene } from '../../base/scene.ts'

/** Which meetings have an overview and a transcript. */
export interface Readiness {
  isOverviewReady(index: number): boolean
  hasTranscript(index: number): boolean
  completeOverview(index: number): void
  completeTranscript(index: number): void
}

export interface MeetingsOptions {
  /** Pending overviews become COMPLETED this many milliseconds after the service's clock started. */
  overviewsCompleteAfterMs?: number | undefined
}

/** `set` records whether a new meeting has its overview and its transcript. */
export function createReadiness(
  { seed, end, now }: Scene,
  { overviewsCompleteAfterMs: delayMs }: MeetingsOptions,
): Readiness & { set(index: number, isReady: boolean): void } {
  const overviews = new Map<number, boolean>()
  const transcripts = new Map<number, boolean>()
  return {
    isOverviewReady: index =>
      (overviews.get(index) ?? mix(seed, SALT.meeting + 8, index) % 100 >= 6) ||
      (delayMs !== undefined && now() >= end + delayMs * 1_000),
    hasTranscript: index => transcripts.get(index) ?? mix(seed, SALT.meeting + 9, index) % 100 >= 5,
    completeOverview: index => overviews.set(index, true),
    completeTranscript: index => transcripts.set(index, true),
    set: (index, isReady) => {
      overviews.set(index, isReady)
      transcripts.set(index, isReady)
    },
  }
}
