import { resourceNamed } from '../../catalog/catalog.ts'
import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { TimelineFeed } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import type { Store } from '../../store/store.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { ReadWorkload } from '../../store/sync/workload.ts'
import { interruptedSince, isContinued } from '../due/continued-rounds.ts'
import { isDueInRound, isNewEnough } from '../due/segment-conditions.ts'
import type { Span } from './sample.ts'

/** What the warehouse already holds, and which part the next backfill reads again. Without a warehouse: nothing. */
export interface Stored {
  /** True when an interrupted backfill has read the resource completely, so that the next run leaves it out. */
  isFinished(resource: ResourceName): boolean
  /** The lane in which the lists of a resource are read. */
  listLane(resource: ResourceName): 'history' | 'audit'
  /** The segments of a list that the next run may read, newest first. */
  segments(list: DeclaredFeed<ListFeed>): StoredSegment[]
  /** The parts of a timeline that the next run reads, newest first. */
  timeline(list: DeclaredFeed<TimelineFeed>): DuePart[]
  /** The number of known single reads of a resource, and of those that the next run sends. */
  items(resource: ResourceName): { known: number; due: number }
  liveValues(table: string, column: string): string[]
}

export type StoredSegment = Segment & { isDue: boolean }

export interface DuePart {
  /** The number of stored rows that are listed again. */
  again: number
  /** The span that was never listed; for the newest segment, the time since it was listed. */
  unread: Span | undefined
}

/** The parts of a warehouse that an estimate reads. */
export interface Warehouse {
  state: Pick<Store['state'], 'get'>
  segments: Pick<Store['segments'], 'of'>
  rowTimes: Pick<Store['rowTimes'], 'count'>
  stored: Pick<Store['stored'], 'liveValues'>
  workload: ReadWorkload
}

export interface StoredOptions {
  since: string | null
  /** RFC 3339, UTC. */
  now: string
  chosen: readonly ResourceName[]
}

export function createStored(warehouse: Warehouse | undefined, options: StoredOptions): Stored {
  if (!warehouse) return nothingStored(options.since)
  const { state, rowTimes, workload } = warehouse
  const { since, now, chosen } = options
  const interrupted = interruptedSince(chosen.map(state.get))
  const continues = (resource: ResourceName) => isContinued(state.get(resource), interrupted)
  /** The resource's round in the next backfill, which continues an interrupted round or begins a new one. */
  const nextRound = (resource: ResourceName) => {
    const { round } = state.get(resource)
    return continues(resource) && round > 0 ? round : round + 1
  }
  const isComplete = (resource: ResourceName) => state.get(resource).firstCompleteAt !== null
  const segments: Stored['segments'] = list =>
    warehouse.segments
      .of(list.id)
      .filter(segment => isNewEnough(list, segment, { since }))
      .map(segment => ({ ...segment, isDue: isDueInRound(segment, nextRound(list.resource)) }))

  return {
    isFinished: resource => continues(resource) && isComplete(resource) && !state.get(resource).roundOpen,
    listLane: resource => (isComplete(resource) ? 'audit' : 'history'),
    segments,
    timeline(list) {
      const all = segments(list)
      if (all.length === 0) return [{ again: 0, unread: spanOf(since, null) }]
      return all
        .filter(({ isDue }) => isDue)
        .map(({ from, to, edgeAt, listedAt }) => {
          const [begin, end] = [laterOf(from, since), edgeAt ?? to]
          if (listedAt === null) return { again: 0, unread: spanOf(begin, end) }
          // `rows` of the segment also counts the rows before `since` and those that an interrupted pass has read.
          const again = rowTimes.count(list.feed, { from: begin, to: end ?? listedAt })
          return { again, unread: end === null ? spanOf(laterOf(listedAt, since), null) : undefined }
        })
    },
    items(name) {
      const question = { resource: resourceNamed(name), round: nextRound(name), now, since }
      const { total = 0, done = 0 } = workload({ ...question, readBefore: false }).items ?? {}
      return { known: total, due: total - done }
    },
    liveValues: warehouse.stored.liveValues,
  }
}

const nothingStored = (since: string | null): Stored => ({
  isFinished: () => false,
  listLane: () => 'history',
  segments: () => [],
  timeline: () => [{ again: 0, unread: spanOf(since, null) }],
  items: () => ({ known: 0, due: 0 }),
  liveValues: () => [],
})

function laterOf(one: string | null, other: string | null): string | null {
  return (one ?? '') > (other ?? '') ? one : other
}

export function spanOf(from: string | null, to: string | null): Span {
  const ms = (instant: string | null) => (instant === null ? undefined : Date.parse(instant))
  return { from: ms(from), to: ms(to) }
}
