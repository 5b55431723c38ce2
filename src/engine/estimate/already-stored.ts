import { resourceNamed } from '../../catalog/catalog.ts'
import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { TimelineFeed } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { StoredProgress } from '../../store/stored-progress.ts'
import { interruptedSince, isContinued } from '../due/by-rounds.ts'
import { isDueInRound, isNewEnough } from '../due/segment-conditions.ts'
import type { Span } from './row-counts.ts'

interface DuePart {
  /** The number of stored rows that are listed again. */
  again: number
  /** The span that was never listed; for the newest segment, the time since its last listing. */
  unread: Span | undefined
}

const NEVER_READ = { round: 0, roundOpen: false, roundStartedAt: null, firstCompleteAt: null }

/** What the warehouse already holds, and which part the next backfill reads again. Without a warehouse: nothing. */
export type Stored = ReturnType<typeof createStored>

/** @param now RFC 3339, UTC */
export function createStored(
  warehouse: StoredProgress | undefined,
  { since, now, chosen }: { since: string | null; now: string; chosen: readonly ResourceName[] },
) {
  const stateOf = (resource: ResourceName) => warehouse?.state.get(resource) ?? NEVER_READ
  const interrupted = interruptedSince(chosen.map(stateOf))
  const continues = (resource: ResourceName) => isContinued(stateOf(resource), interrupted)
  /** The resource's round in the next backfill, which continues an interrupted round or begins a new one. */
  const nextRound = (resource: ResourceName) => {
    const { round } = stateOf(resource)
    return continues(resource) && round > 0 ? round : round + 1
  }
  const isComplete = (resource: ResourceName) => stateOf(resource).firstCompleteAt !== null
  /** The segments of a list that the next run may read, newest first. */
  const segments = (list: DeclaredFeed<ListFeed>) =>
    (warehouse?.segments.of(list.id) ?? [])
      .filter(segment => isNewEnough(list, segment, { since }))
      .map(segment => ({ ...segment, isDue: isDueInRound(segment, nextRound(list.resource)) }))

  return {
    segments,
    /** True when an interrupted backfill has read the resource completely, so that the next run leaves it out. */
    isFinished: (resource: ResourceName) =>
      continues(resource) && isComplete(resource) && !stateOf(resource).roundOpen,
    /** The lane in which the lists of a resource are read. */
    listLane: (resource: ResourceName) => (isComplete(resource) ? ('audit' as const) : ('history' as const)),
    /** The parts of a timeline that the next run reads, newest first. */
    timeline(list: DeclaredFeed<TimelineFeed>): DuePart[] {
      const all = segments(list)
      if (!warehouse || all.length === 0) return [{ again: 0, unread: spanOf(since, null) }]
      return all
        .filter(({ isDue }) => isDue)
        .map(({ from, to, edgeAt, listedAt }) => {
          const [begin, end] = [laterOf(from, since), edgeAt ?? to]
          if (listedAt === null) return { again: 0, unread: spanOf(begin, end) }
          // `rows` of the segment also counts the rows before `since` and those that an interrupted pass has read.
          const again = warehouse.rowTimes.count(list.feed, { from: begin, to: end ?? listedAt })
          return { again, unread: end === null ? spanOf(laterOf(listedAt, since), null) : undefined }
        })
    },
    /** The number of known single reads of a resource, and of those that the next run sends. */
    items(name: ResourceName): { known: number; due: number } {
      const question = {
        resource: resourceNamed(name),
        round: nextRound(name),
        now,
        since,
        readBefore: false,
      }
      const { total = 0, done = 0 } = warehouse?.workload(question).items ?? {}
      return { known: total, due: total - done }
    },
    liveValues: (table: string, column: string) => warehouse?.stored.liveValues(table, column) ?? [],
  }
}

function laterOf(one: string | null, other: string | null): string | null {
  return (one ?? '') > (other ?? '') ? one : other
}

function spanOf(from: string | null, to: string | null): Span {
  const ms = (instant: string | null) => (instant === null ? undefined : Date.parse(instant))
  return { from: ms(from), to: ms(to) }
}
