import { DAY_MS, HOUR_MS } from '../../../base/clock.ts'
import { ITEM_FEEDS } from '../../../catalog/feeds.ts'
import type { ResourceName } from '../../../declare/resource-names.ts'
import { META, readNote } from '../../../store/sync/meta.ts'
import type { EngineContext } from '../../context/context.ts'
import { WEEK_MS } from '../../context/intervals.ts'
import { ACCEPTED } from '../lagging-answers.ts'

/**
 * A text that was read may be edited or hidden later, and no list shows that. So all texts are read again in the order
 * of their rows, evenly over 90 days, or longer if that would take more than a fiftieth of the requests. The sweep has
 * one position, not a due time for each text.
 */
export interface TextSweep {
  /** `_id` of the last row of which the text was wanted again. A part of a row counts as well. */
  row: number
  /** When the sweep reached that row, in ms by the due clock. */
  at: number
}

const SWEEP_MS = 90 * DAY_MS
const SHARE = 0.02

/** A longer pause counts as this long. */
const LONGEST_STEP_MS = WEEK_MS
const SHORTEST_STEP_MS = HOUR_MS

export interface SweepFacts {
  now: number
  /** The highest `_id` of the table. */
  rows: number
  /** Requests that the API allows. */
  perSecond: number
  requestsPerDay?: number | undefined
  intervalScale: number
}

/**
 * The position of the sweep now. It does not change until a step is long enough. Beyond the last row, the sweep begins
 * again. Pure.
 */
export function sweepAfter(
  before: TextSweep,
  { now, rows, perSecond, requestsPerDay = Number.POSITIVE_INFINITY, intervalScale }: SweepFacts,
): TextSweep {
  const stepMs = now - before.at
  if (stepMs < SHORTEST_STEP_MS * intervalScale || rows === 0) return before
  const perMs = SHARE * Math.min(perSecond / 1000, requestsPerDay / DAY_MS)
  const wholeMs = Math.max(SWEEP_MS * intervalScale, rows / perMs)
  const row = before.row + (rows * Math.min(stepMs, LONGEST_STEP_MS * intervalScale)) / wholeMs
  return { row: row < rows ? row : row - rows, at: now }
}

/** The rows between two positions, as ranges of `_id`. */
function rangesOf({ row: from }: TextSweep, { row: to }: TextSweep, rows: number) {
  const ranges =
    to < from
      ? [
          [from, rows],
          [0, to],
        ]
      : [[from, to]]
  return ranges.map(([after = 0, upTo = 0]) => ({ after: Math.floor(after), upTo: Math.floor(upTo) }))
}

/**
 * Makes the texts due that the sweep has reached. Returns whether there are any. Call it in a transaction.
 * @param resources the resources that are read. Tasks of other resources would only accumulate.
 * @param perSecond requests that the API allows
 */
export function sweepTexts(
  { store, options }: EngineContext,
  resources: readonly ResourceName[],
  perSecond: number,
): boolean {
  const dueAt = store.dueClock.after(0)
  const now = Date.parse(dueAt)
  let isAny = false
  for (const { resource, id: feed, pending } of SWEPT) {
    if (!resources.includes(resource)) continue
    const rows = store.stored.newestId(pending.table)
    const noted = readNote<TextSweep>(store.state.meta, META.textSweep)
    const before = noted ?? { row: 0, at: now }
    const next = sweepAfter(before, { now, rows, perSecond, ...options })
    if (next.at === noted?.at) continue
    store.state.setMeta(META.textSweep, JSON.stringify(next))
    for (const range of rangesOf(before, next, rows)) {
      for (const { key, at } of store.pending.read(pending, range)) {
        if (options.since !== null && at !== null && at < options.since) continue
        store.tasks.add({ feed, key, sortAt: at, dueAt, attempts: ACCEPTED })
        isAny = true
      }
    }
  }
  return isAny
}

const SWEPT = ITEM_FEEDS.flatMap(({ resource, id, feed: { pending } }) =>
  pending?.mayChange === undefined ? [] : [{ resource, id, pending }],
)
