import { resourceNamed } from '../catalog/catalog.ts'
import { listsOf } from '../catalog/feeds.ts'
import type { TrafficSpan } from '../store/status/overview.ts'
import type { ResourceFacts } from '../store/status/report.ts'
import { durationText } from '../terminal/wording.ts'

/** How far the first read of everything is. Pure. */
export interface LoadingProgress {
  complete: number
  offered: number
  /**
   * Share of the single reads that are done, 0 to 1. Undefined while a list is being read, since lists state no total,
   * and when nothing was counted.
   */
  share: number | undefined
  /**
   * Time left. Undefined while the rate is not known or little has been read: the first requests say little about the
   * others.
   */
  leftMs: number | undefined
  /** Whether anything has been read. */
  hasBegun: boolean
  /** Whether the newest end of every list is stored. */
  isNewestHere: boolean
}

/**
 * @param minutes the traffic of the last minutes, oldest first; the last one has not ended
 * @returns undefined when everything that the workspace offers is complete
 */
export function loadingProgress(
  resources: readonly ResourceFacts[],
  minutes: readonly TrafficSpan[],
): LoadingProgress | undefined {
  const offered = resources.filter(({ state }) => state !== 'unavailable')
  const loading = offered.filter(isLoading)
  if (loading.length === 0) return undefined
  const left = loading.some(hasListsLeft) ? undefined : countsOf(loading, row => row.pending_tasks)
  const rate = recentRate(minutes)
  const share =
    left === undefined ? undefined : shareOf(countsOf(loading, row => row.backfill_done) ?? 0, left)
  const isForeseen = left !== undefined && rate !== undefined && share !== undefined && share >= LEAST_SHARE
  return {
    complete: offered.length - loading.length,
    offered: offered.length,
    share,
    leftMs: isForeseen ? (left / rate) * 1000 : undefined,
    hasBegun: offered.some(row => (row.rows_live ?? 0) > 0 || row.fresh_as_of !== null),
    isNewestHere: offered.filter(hasLists).every(({ fresh_as_of: at }) => at !== null),
  }
}

/** How much of a progress bar is filled, 0 to 1. */
export function loadedShare({ share, complete, offered }: LoadingProgress): number {
  return share ?? complete / offered
}

/** @returns a text such as `Loading history: 62 %, about 3 h left; the newest is already here` */
export function loadingText({
  complete,
  offered,
  share,
  leftMs,
  isNewestHere,
  hasBegun,
}: LoadingProgress): string {
  if (!hasBegun) return 'Loading history: the first answers are still to come'
  const done =
    share === undefined
      ? `${complete} of ${offered} resources are complete`
      : `${Math.floor(share * 100)} %${leftMs === undefined ? '' : `, about ${durationText(leftMs)} left`}`
  return `Loading history: ${done}${isNewestHere ? '; the newest is already here' : ''}`
}

/**
 * Whether the first read of a resource goes on. A resource that was complete before a pause may have unread spans, but
 * its first read is over.
 */
const isLoading = ({ state, complete_as_of: at }: ResourceFacts) =>
  at === null && state !== 'ok' && state !== 'waiting'

const hasLists = ({ resource }: ResourceFacts) => listsOf(resourceNamed(resource)).length > 0

/** Whether lists may be left to read. A single object is read with one request, but loading until the run ends. */
const hasListsLeft = ({ resource, fresh_as_of: at }: ResourceFacts) =>
  listsOf(resourceNamed(resource)).some(({ feed }) => feed.mode !== 'singleton' || at === null)

/** With nothing done and nothing left, the share is 0: the first answers are still to come. */
const shareOf = (done: number, left: number) => (done + left === 0 ? 0 : done / (done + left))

/** From this share on, the time that is left is stated. */
const LEAST_SHARE = 0.1

/** The rate is measured over this many ended minutes. */
const MEASURED_MINUTES = 5

/** Answered requests per second; undefined when parley sent none. */
function recentRate(minutes: readonly TrafficSpan[]): number | undefined {
  const measured = minutes.slice(-1 - MEASURED_MINUTES, -1).filter(({ minutes: rows }) => rows > 0)
  const answered = sum(measured.map(({ requests, throttled, errors }) => requests - throttled - errors))
  return answered > 0 ? answered / (measured.length * 60) : undefined
}

/** @returns the sum of the counts; undefined when rows were not counted */
function countsOf(
  rows: readonly ResourceFacts[],
  count: (row: ResourceFacts) => number | undefined,
): number | undefined {
  const counts = rows.map(count)
  const known = counts.filter(value => value !== undefined)
  return known.length === counts.length ? sum(known) : undefined
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
