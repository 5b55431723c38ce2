import { createHash } from 'node:crypto'
import { HOUR_MS } from '../../../base/clock.ts'
import { columnAt } from '../../../catalog/catalog.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { ParsedItem } from '../../../declare/parsed-item.ts'
import type { PeriodicFeed } from '../../../declare/resource.ts'
import type { Segment } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import { scaled } from '../../context/intervals.ts'
import { storeRows } from '../../follow-ups/write.ts'
import { continuePass, type ListPage, requireParsed, segmentAfterPage } from '../apply-page.ts'
import type { PageGuard } from '../page-guard.ts'
import { endPassOf, NOT_FAILED, restartPass } from '../pass.ts'
import { continuePeriods } from './periods.ts'
import type { UndatedEntries } from './undated-entries.ts'

/** What the requests of a log share. */
export interface PeriodReads {
  list: DeclaredFeed<PeriodicFeed>
  undated: UndatedEntries
  /**
   * `clock.elapsed()` when the API last ignored or refused the parameter for the end of a period; undefined while it is
   * sent. Without it, pages contain later entries too.
   */
  endIgnoredAt: number | undefined
  /** True after a request with an end was refused, until one without it shows whether the end was the reason. */
  isEndDoubted: boolean
  /** True once a request for a period has succeeded in this process. */
  isAnswered: boolean
}

/**
 * Stores a page (`apply-page.ts` says why in this order). A log only grows, so no entry is ever missing. Returns false,
 * and stores nothing, if the page reveals that the API ignores the end of the period.
 */
export function applyPeriodPage(
  context: EngineContext,
  { list, undated }: PeriodReads,
  read: ListPage,
  { guard, isEndIgnored }: { guard: PageGuard; isEndIgnored: boolean },
): boolean {
  const { feed, resource } = list
  const { page, reply, segment } = read
  const { segments } = context.store
  const timeOf = timeColumn(feed)
  const parse = context.parsing.parser(feed.table)
  const report = context.parsing.report(list, '')
  const listed = page.items.flatMap(item => parse(item, report) ?? [])
  if (!isEndIgnored && listed.some(entry => isBeyond(timeOf(entry), segment))) return false
  requireParsed(page, listed)
  const digests = listed.map(digestOfEntry)
  const isSame = guard.isSamePage(segment.cursor, digests)
  // Equal entries may be different ones, but a whole page of different entries is not there twice.
  const isRepeated = isSame && new Set(digests).size > 1
  const inside = listed.filter(entry => !isRepeated && isInside(timeOf(entry), segment))
  const { items, edgeAt, edgeKeys } = identify(inside, timeOf, segment)
  undated.correct(segment, items)
  const options = { ticket: reply.ticket, now: context.now(), filled: ['id'] }
  undated.stored(segment, storeRows(context, resource, feed.table, items, options))
  const hasNew = listed.length > 0 && !isSame
  // Undated entries appear in every period. If they counted, no period would be empty, and older periods would be added
  // without end.
  const dated = inside.filter(entry => timeOf(entry) !== null).length
  const reached = { ...segmentAfterPage(segment, page, { rows: dated, hasNew }), edgeAt, edgeKeys }
  const isBefore = (entry: ParsedItem) => (timeOf(entry) ?? '') < (segment.from ?? '')
  const isPast = isEndIgnored && listed.length > 0 && listed.every(isBefore)
  if (page.next === null || isPast) endPeriod(context, { list, undated }, reached)
  else
    continuePass(context, list, { reached, guard, hasNew }, () =>
      restartPass(segments, segment, 'repeated', NOT_FAILED),
    )
  return true
}

/** Returns a function that reads the time of an entry; null for an entry without a time. */
export function timeColumn({ table, time }: PeriodicFeed): (entry: ParsedItem) => string | null {
  const timeIndex = columnAt(table, time)
  return ({ cells }) => (typeof cells[timeIndex] === 'string' ? cells[timeIndex] : null)
}

/** True for an entry at or after the exclusive end of the period. */
function isBeyond(time: string | null, { to }: Segment): boolean {
  return time !== null && to !== null && time >= to
}

/** An entry without a time cannot be assigned to a period, so it belongs to every period that lists it. */
function isInside(time: string | null, { from, to }: Segment): boolean {
  if (time === null) return true
  return (from === null || time >= from) && (to === null || time < to)
}

interface Numbered {
  items: ParsedItem[]
  edgeAt: string | null
  edgeKeys: string[]
}

/**
 * The API gives entries no id. Their id is a digest of all their fields and of a number that tells equal entries apart.
 * Equal entries have the same time and follow each other, perhaps across two pages. So the checkpoint keeps the digests
 * of the entries that have no time, or the same time as the last entry of the page.
 */
function identify(
  entries: readonly ParsedItem[],
  timeOf: ReturnType<typeof timeColumn>,
  period: Segment,
): Numbered {
  const counted = new Map<string, number>()
  for (const digest of period.edgeKeys) counted.set(digest, (counted.get(digest) ?? 0) + 1)
  const digests = entries.map(digestOfEntry)
  const items = entries.map((entry, index) => {
    const digest = digests[index] ?? ''
    const number = counted.get(digest) ?? 0
    counted.set(digest, number + 1)
    return { ...entry, cells: [digestOf(`${digest} ${number}`), ...entry.cells.slice(1)] }
  })
  const last = entries.at(-1)
  const edgeAt = (last && timeOf(last)) ?? period.edgeAt
  const atEdge = digests.filter((_, index) => {
    const time = entries[index] ? timeOf(entries[index]) : null
    return time === edgeAt || time === null
  })
  const carried = edgeAt === period.edgeAt ? period.edgeKeys : []
  return { items, edgeAt, edgeKeys: [...carried, ...atEdge] }
}

const digestOfEntry = ({ cells, extra }: ParsedItem): string =>
  digestOf(JSON.stringify([...cells.slice(1), extra]))

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
}

/**
 * A period is closed, and not read again, when two conditions hold. The pass began at least this long after the
 * period's end. An earlier pass, at least this much before, had as many entries. So one answer that lacks some or all
 * entries closes no period.
 */
const SETTLED_AFTER_MS = HOUR_MS

function endPeriod(
  context: EngineContext,
  { list: { resource, id }, undated }: Pick<PeriodReads, 'list' | 'undated'>,
  period: Segment,
): void {
  const { store } = context
  const { listedAt, listedRows, rows } = period
  const settledMs = scaled(SETTLED_AFTER_MS, context.options)
  const isAfter = (at: string | null) =>
    Date.parse(period.passStartedAt ?? '') >= Date.parse(at ?? '') + settledMs
  const isSettled = isAfter(period.to) && listedRows === rows && isAfter(listedAt)
  const closed = undated.ended(period) && isSettled
  const ended = endPassOf(store.segments, period, { closed, listedRows: rows })
  const [newest] = store.segments.of(id, '')
  if (newest?.id === period.id && ended.listedAt) store.state.fresh(resource, ended.listedAt)
  continuePeriods(context, id)
}
