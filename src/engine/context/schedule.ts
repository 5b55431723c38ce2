import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { Segment } from '../../store/sync/segments.ts'
import type { Task } from '../../store/sync/tasks/task.ts'
import type { Lane, TaskQuery } from './job.ts'

/** Decides when lists and single reads are due: once in each round of a backfill, by time in the daemon. */
export interface Schedule {
  /**
   * How long until a segment is read, in ms, backoffs included: 0 when it is due, infinite when it does not fall due.
   * In a backfill: infinite when it does not fall due in this run.
   */
  waitMs(list: DeclaredFeed<ListFeed>, segment: Segment): number
  /** How long after one pass the next begins, in ms. Only meaningful in the daemon. */
  intervalMs(list: DeclaredFeed<ListFeed>, segment: Segment): number
  /** By how many of its intervals a segment that was listed before is overdue; 0 in a backfill. */
  overdue(list: DeclaredFeed<ListFeed>, segment: Segment): number
  /** The lane of a list's requests. Only timelines need the segment. */
  laneOf(list: DeclaredFeed<ListFeed>, segment: Segment | undefined): Lane
  dueTasks(query: TaskQuery): Task[]
  /** How long until a task is read, in ms: 0 when one is due, infinite when none falls due. */
  tasksWaitMs(query: Omit<TaskQuery, 'limit' | 'first'>): number
  /** True when a pass from the newest end takes so long that the head would become stale before it ends. */
  isLong(segment: Segment): boolean
  /** True when the segment may bring rows that are new to the warehouse. */
  isAwaited(segment: Segment): boolean
  /** True in the daemon: lists and keys fall due again by time, regardless of the round. */
  isTimed: boolean
  /** How many keys are loaded from the database at a time, so that a million pending rows do not fill the memory. */
  batchSize: number
}
