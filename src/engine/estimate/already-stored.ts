import type { TimelineFeed } from '../../catalog/resource.ts'
import type { ResourceName } from '../../catalog/resource-names.ts'
import type { Inventory } from '../../store/inventory.ts'
import type { Segment } from '../../store/sync/segments.ts'
import { interruptedSince, isContinued } from '../due/rounds.ts'
import type { ListOf } from '../due/schedule.ts'
import { isDueInRound, isNewEnough } from '../due/segment-conditions.ts'
import type { Span } from './sample.ts'
import type { DeclaredItems } from './single-reads.ts'

/** What the warehouse already holds, and which part the next backfill reads again. Without a warehouse: nothing. */
export interface Stored {
  /** True when an interrupted backfill has read the resource completely, so that the next run leaves it out. */
  isFinished(resource: ResourceName): boolean
  /** The lane in which the lists of a resource are read. */
  listLane(resource: ResourceName): 'history' | 'audit'
  /** The segments of a list that the next run may read, newest first. */
  segments(list: ListOf): StoredSegment[]
  timeline(list: ListOf & { feed: TimelineFeed }): StoredTimeline
  /** The number of known keys of an item feed, and of those that the next run reads. */
  items(items: DeclaredItems): { known: number; due: number }
  liveValues(table: string, column: string): string[]
}

export type StoredSegment = Segment & { isDue: boolean }

export interface StoredTimeline {
  /** The number of stored rows in spans that are listed again. */
  again: number
  /** Spans that were never listed, and the span since the newest stored row. */
  unread: readonly Span[]
}

export interface StoredOptions {
  since: string | null
  /** RFC 3339, UTC. */
  now: string
  chosen: readonly ResourceName[]
}

export function createStored(inventory: Inventory | undefined, options: StoredOptions): Stored {
  const { since, now, chosen } = options
  const interrupted = interruptedSince(chosen.flatMap(name => inventory?.state(name) ?? []))
  const continues = (resource: ResourceName) =>
    inventory !== undefined && isContinued(inventory.state(resource), interrupted)
  /** The resource's round in the next backfill, which continues an interrupted round or begins a new one. */
  const nextRound = (resource: ResourceName) => {
    const round = inventory?.state(resource).round ?? 0
    return continues(resource) && round > 0 ? round : round + 1
  }
  const isComplete = (resource: ResourceName) => (inventory?.state(resource).firstCompleteAt ?? null) !== null
  const segments: Stored['segments'] = list =>
    (inventory?.segments(list.id) ?? [])
      .filter(segment => isNewEnough(list, segment, { since }))
      .map(segment => ({ ...segment, isDue: isDueInRound(segment, nextRound(list.resource)) }))

  return {
    isFinished: resource =>
      continues(resource) && isComplete(resource) && !inventory?.state(resource).roundOpen,
    listLane: resource => (isComplete(resource) ? 'audit' : 'history'),
    segments,
    timeline(list) {
      const { feed } = list
      const all = segments(list)
      if (all.length === 0) return { again: 0, unread: [spanOf(since, null)] }
      const due = all.filter(({ isDue }) => isDue)
      let again = 0
      const unread: Span[] = []
      for (const { from, to, edgeAt, listedAt } of due) {
        const span = { from: laterOf(from, since), to: edgeAt ?? to }
        if (listedAt === null) unread.push(spanOf(span.from, span.to))
        else {
          again += inventory?.countRows(feed, span) ?? 0
          const newest = inventory?.newestTime(feed) ?? null
          if (span.to === null) unread.push(spanOf(laterOf(newest, span.from), null))
        }
      }
      return { again, unread }
    },
    items({ resource, id, feed: { everyRound, pending, boundBySince } }) {
      const query = { feed: id, everyRound, now, since: boundBySince ? since : null }
      const tasks = inventory?.countTasks({ ...query, round: nextRound(resource) }) ?? { all: 0, due: 0 }
      const firstReads = pending ? (inventory?.countFirstReads(id, pending, query.since) ?? 0) : 0
      return { known: tasks.all + firstReads, due: tasks.due + firstReads }
    },
    liveValues: (table, column) => inventory?.liveValues(table, column) ?? [],
  }
}

function laterOf(one: string | null, other: string | null): string | null {
  return one === null || (other !== null && one < other) ? other : one
}

export function spanOf(from: string | null, to: string | null): Span {
  const ms = (instant: string | null) => (instant === null ? undefined : Date.parse(instant))
  return { from: ms(from), to: ms(to) }
}
