import { MAX_LIMITS, type Page } from '../../../api/paging.ts'
import { MINUTE_MS } from '../../../base/clock.ts'
import { canonicalInstant } from '../../../base/instant.ts'
import { keyAt, TABLES, tableNamed } from '../../../catalog/catalog.ts'
import { type DeclaredFeed, feedNamed, ITEM_FEEDS } from '../../../catalog/feeds.ts'
import type { ParsedItem } from '../../../declare/parsed-item.ts'
import type { SnapshotFeed } from '../../../declare/resource.ts'
import type { ResourceName } from '../../../declare/resource-names.ts'
import { NO_PASS, type Segment, SIZE_CHANGED } from '../../../store/sync/segments.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Batches } from '../../context/job.ts'
import { endAbsences, endSuspicions } from '../../deletions/denial.ts'
import { endProbes } from '../../deletions/probe-later.ts'
import { forgetUnlisted } from '../../deletions/unlisted.ts'
import { demandUnknownFields } from '../../follow-ups/relations.ts'
import { writeRows } from '../../follow-ups/write.ts'
import { keyOf } from '../../parse/key.ts'
import { continuePass, type ListPage, requireParsed, segmentAfterPage } from '../apply-page.ts'
import type { PageGuard } from '../page-guard.ts'
import { restartPass, segmentToRestart } from '../pass.ts'
import { dayAgo, endPass } from './pass-end.ts'

/** What all requests of a list share. */
export interface SnapshotReads extends DeclaredFeed<SnapshotFeed> {
  /**
   * Scopes that are read without `limit`, because the API refused it. For lists whose parameters the spec does not
   * show.
   */
  unlimited: Set<string>
  /** By scope: the reading time of passes that this process began. */
  durations: Map<string, PassDuration>
}

export interface PassDuration {
  /** How long the pass has read so far. */
  ms: number
  /** `clock.elapsed()` when the latest page was stored, or the first page was requested. */
  at: number
}

/** The keys that a page shows, and its rows. `rows` is empty unless each item is the payload of a row. */
interface Listed {
  rows: readonly ParsedItem[]
  keys: readonly ListedKey[]
}

interface ListedKey {
  key: string
  sortAt: string | null
}

/**
 * Stores a page (`apply-page.ts` says why in this order). The end of the pass finds the missing rows; a page only notes
 * the keys that it shows. Returns the batches of `endPass` after the first, which runs in the transaction of the final
 * page.
 */
export function applySnapshotPage(
  context: EngineContext,
  reads: SnapshotReads,
  read: ListPage,
  guard: PageGuard,
): Batches | undefined {
  const { resource, id, feed } = reads
  const { scope } = read.segment
  const keys = storeListed(context, reads, read)
  if (isOfRows(feed)) endProbes(context, { resource, probe: `${id}.probe`, scope }, keys)
  const added = keys.filter(key => context.store.seen.note(id, scope, key))
  if (keys.length < read.page.items.length) context.store.seen.noteUnnamed(id, scope)
  return advance(context, reads, read, { guard, hasNew: added.length > 0 })
}

/** Stores what a page lists, with its follow-ups. Returns the keys. */
export function storeListed(
  context: EngineContext,
  list: DeclaredFeed<SnapshotFeed>,
  read: ListPage,
): string[] {
  const { resource, feed } = list
  const { page, reply, segment } = read
  const { rows, keys } = parse(context, list, read)
  requireParsed(page, keys)
  if (isOfRows(feed)) {
    const options = { ticket: reply.ticket, now: context.now() }
    const stored = writeRows(context, resource, feed.table, rows, options, feed.followUps)
    demandUnknownFields(context, list, segment.scope, stored)
  } else if (feed.lists === 'rows') addMembers(context, list, segment, keys)
  if (feed.lists === 'keys') readListed(context, resource, feed, keys)
  return keys.map(({ key }) => key)
}

/** Whether each item is the payload of a row, and not only a key or a membership. */
function isOfRows({ lists, table }: SnapshotFeed): boolean {
  return lists === 'rows' && tableNamed(table).kind === 'entity'
}

function parse(
  context: EngineContext,
  list: DeclaredFeed<SnapshotFeed>,
  { page, segment }: ListPage,
): Listed {
  const { resource, feed } = list
  const report = context.parsing.report(list, segment.scope)
  if (isOfRows(feed)) {
    const parseItem = context.parsing.parser(feed.table)
    const rows = page.items.flatMap(item => parseItem(item, report, segment.scope) ?? [])
    const keyIndex = keyAt(feed.table)
    return { rows, keys: rows.map(({ cells }) => ({ key: String(cells[keyIndex]), sortAt: null })) }
  }
  const keys = page.items.flatMap(item => {
    const key = keyOf(item, feed.keyFields)
    if (key === undefined)
      report.reject(feed.table, item, `no identity: ${feed.keyFields.join(' or ')} is missing or not text`)
    return key === undefined ? [] : [{ key, sortAt: timeOf(item, feed.timeField) }]
  })
  context.runs.counts(resource).rowsRead += keys.length
  return { rows: [], keys }
}

function addMembers(
  context: EngineContext,
  { resource, feed: { table } }: DeclaredFeed<SnapshotFeed>,
  { scope }: Segment,
  listed: readonly ListedKey[],
): void {
  const keys = listed.map(({ key }) => key)
  endSuspicions(context, table, scope, keys)
  const named = MEMBER_READS.get(table)
  if (named) demandDeleted(context, named, listed)
  const added = context.store.links.addMembers(table, scope, keys)
  const counts = context.runs.counts(resource)
  counts.rowsChanged += added
  counts.rowsNew += added
}

/** Adds a first read for each new key that the list names. A row that was denied or unlisted is read again at once. */
function readListed(
  context: EngineContext,
  resource: ResourceName,
  { table }: SnapshotFeed,
  listed: readonly ListedKey[],
): void {
  const { tasks, dueClock } = context.store
  const feed = `${resource}.detail`
  const dueAt = dueClock.after(0)
  const unlessSince = dayAgo(context)
  const keys = listed.map(({ key }) => key)
  const deniedKeys = new Set([
    ...endAbsences(context, table, keys),
    ...forgetUnlisted(context, resource, keys),
  ])
  for (const { key, sortAt } of listed) {
    if (deniedKeys.has(key)) tasks.demand({ feed, key, sortAt, dueAt })
    else tasks.name({ feed, key, sortAt, dueAt, unlessSince })
  }
  demandDeleted(context, feedNamed(feed), listed)
}

/** Makes the single reads of deleted rows that an answer names due: at once, and then once a day. */
function demandDeleted(
  context: EngineContext,
  { id: feed, feed: { table } }: DeclaredFeed,
  listed: readonly ListedKey[],
): void {
  const { tasks, dueClock, stored } = context.store
  const namedAt = dueClock.after(0)
  const deleted = new Set(
    stored.deletedAmong(
      table,
      listed.map(({ key }) => key),
    ),
  )
  for (const { key, sortAt } of listed) {
    if (!deleted.has(key)) continue
    const before = tasks.find({ feed, key })?.namedAt ?? ''
    if (before < dayAgo(context)) tasks.demand({ feed, key, sortAt, dueAt: namedAt, namedAt })
  }
}

/** By link table: the feed that reads the rows of its members one by one. */
const MEMBER_READS: ReadonlyMap<string, DeclaredFeed> = new Map(
  [...TABLES.values()].flatMap(({ table: { name, kind, key, columns } }) => {
    const { refersTo = [] } = (kind === 'link' && columns[key.at(-1) ?? '']) || {}
    return ITEM_FEEDS.filter(
      ({ feed }) =>
        feed.stores === 'row' && refersTo.includes(`${feed.table}.${tableNamed(feed.table).key[0]}`),
    ).map(read => [name, read] as const)
  }),
)

/** At most how often a pass over a page-numbered list restarts because the size of the list changed. */
const MOST_RESIZES = 3

function advance(
  context: EngineContext,
  reads: SnapshotReads,
  { page: read, segment }: ListPage,
  { guard, hasNew }: { guard: PageGuard; hasNew: boolean },
): Batches | undefined {
  const { segments } = context.store
  const { beyond } = read
  const isBeyond = beyond && hasNew && showsMore(context, reads, { ...read, scope: segment.scope })
  const page = isBeyond ? { ...read, next: beyond } : read
  const limit = largerLimit(page, segment, reads.unlimited)
  const totalSize = sizeAfterPage(segment, page)
  const ms = readingMs(context, reads, segment)
  const reached: Segment = {
    ...segmentAfterPage(segment, page, { rows: page.items.length, hasNew }),
    totalSize,
    passMs: page.next === null && ms !== undefined ? Math.round(ms) : segment.passMs,
  }
  if (limit !== undefined) {
    // `attempts` stays. Otherwise it would start from 0 after each restart, even if all pages of this size fail.
    segments.save({ ...reached, ...NO_PASS, attempts: segment.attempts, query: { limit } })
  } else if (totalSize === SIZE_CHANGED && segment.restarts < MOST_RESIZES) {
    segments.save({ ...segmentToRestart(reached), query: segment.query })
  } else if (page.next === null) {
    return endList(context, reads, reached)
  } else {
    continuePass(context, reads, { reached, guard, hasNew }, () =>
      restartPass(segments, reached, 'repeated', { query: segment.query }),
    )
  }
  return undefined
}

/** Whether the pass has shown more rows than the list states to have. */
const showsMore = (
  { store }: EngineContext,
  { id }: DeclaredFeed<SnapshotFeed>,
  { scope, totalSize }: Pick<Segment, 'scope'> & { totalSize?: number | null },
): boolean => totalSize != null && store.seen.hasAtLeast(id, scope, totalSize + 1)

/** Ends a pass that has reached the end of the list. Returns the batches of `endPass` after the first. */
function endList(
  context: EngineContext,
  { resource, id, feed }: DeclaredFeed<SnapshotFeed>,
  pass: Segment,
): Batches | undefined {
  const isPartial = pass.totalSize === SIZE_CHANGED || !isAsStated(context, { resource, id, feed }, pass)
  const batches = endPass(context, { resource, id, feed, pass, isPartial })
  return batches.next().done ? undefined : batches
}

/**
 * Whether the pass has shown as many rows as the list states to have. If it has shown fewer, the others may still be
 * there. If it has shown more, the list does not know its own rows.
 */
function isAsStated(
  context: EngineContext,
  list: DeclaredFeed<SnapshotFeed>,
  { scope, totalSize }: Segment,
): boolean {
  const { resource, id } = list
  const isFewer = totalSize !== null && !context.store.seen.hasAtLeast(id, scope, totalSize)
  if (!isFewer && !showsMore(context, list, { scope, totalSize })) return true
  const found = isFewer ? 'fewer' : 'more'
  context.log.warn(`List shows ${found} rows than it states to have, so none of its rows counts as missing`, {
    resource,
    total: totalSize,
  })
  return false
}

/** Once two pages have stated different sizes, the result is `SIZE_CHANGED`, even if later pages agree again. */
function sizeAfterPage({ totalSize: before }: Segment, { totalSize }: Page): number | null {
  if (totalSize === undefined) return before
  return before === null || before === totalSize ? totalSize : SIZE_CHANGED
}

/** A gap between two pages counts as at most this long, so that a list is not read less often after an outage. */
const LONGEST_GAP_MS = MINUTE_MS

/** How long the pass has read, in ms. Undefined if an earlier process began it. */
function readingMs(
  { clock }: EngineContext,
  { durations }: SnapshotReads,
  { scope }: Segment,
): number | undefined {
  const before = durations.get(scope)
  if (before === undefined) return undefined
  const at = clock.elapsed()
  const ms = before.ms + Math.min(at - before.at, LONGEST_GAP_MS)
  durations.set(scope, { ms, at })
  return ms
}

/**
 * The limit with which a list of unknown shape restarts when it has more than one page: the largest that its paging
 * style allows. A restart is needed because a cursor is valid only with the query that returned it. Undefined when no
 * restart is needed.
 */
function largerLimit(page: Page, pass: Segment, refused: ReadonlySet<string>): string | undefined {
  const { next, recognised } = page
  if (
    !next ||
    !recognised ||
    recognised === 'bare' ||
    pass.pages > 0 ||
    pass.query?.['limit'] !== undefined
  ) {
    return undefined
  }
  if (refused.has(pass.scope)) return undefined
  return String(MAX_LIMITS[recognised])
}

export function timeOf(item: unknown, field: string | undefined): string | null {
  if (field === undefined || typeof item !== 'object' || item === null) return null
  const time = new Map(Object.entries(item)).get(field)
  return typeof time === 'string' ? (canonicalInstant(time) ?? null) : null
}
