import type { Feed, ItemFeed, ResourceName } from '../../catalog/resource.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { Task, TaskOrder } from '../../store/sync/tasks.ts'
import type { Lane } from '../scheduler/job.ts'

/** What falls due and when: once in each round of a backfill, by time in the daemon. */
export interface Schedule {
  isListDue(list: ListOf, segment: Segment): boolean
  /** When a list falls due, by this machine's clock; undefined when it never does. Meaningful where it is timed. */
  dueAt(list: ListOf, segment: Segment): string | undefined
  /** How long after one pass the next begins, in ms. Meaningful where it is timed. */
  intervalMs(list: ListOf, segment: Segment): number
  /** For how many of its intervals a segment that was listed before is overdue; 0 where it is not timed. */
  overdue(list: ListOf, segment: Segment): number
  /** A document that was never read has no segment. */
  laneOf(list: ListOf, segment: Segment | undefined): Exclude<Lane, 'retry'>
  dueTasks(query: TaskQuery): Task[]
  /** True while a pass from the newest end has taken so long that the rest must not make the head stale. */
  isLong(segment: Segment): boolean
  /** True when somebody waits for what the segment will bring, which is new then. */
  isAwaited(segment: Segment): boolean
  /** True in the daemon: what was read falls due again by time, whatever the round. */
  isTimed: boolean
  /** How many keys are taken from the database at a time, so that a million pending rows cost no memory. */
  batchSize: number
}

export interface ListOf {
  resource: ResourceName
  /** `resource.feed` */
  id: string
  feed: Exclude<Feed, ItemFeed>
}

export interface TaskQuery {
  resource: ResourceName
  feed: string
  /** In a backfill: all of them again in each round; else only what waits for the API or is due. */
  everyRound: boolean
  since: string | null
  limit: number
  /** Which are taken where more than that are due. A round takes each of them once, always the newest first. */
  first: TaskOrder
  /** Scopes that cannot be asked for now. */
  exceptScopes?: readonly string[]
  /** Pattern of SQLite's GLOB that the keys have to match. */
  keys?: string
}
