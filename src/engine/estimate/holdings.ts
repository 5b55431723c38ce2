import { CATALOG } from '../../catalog/catalog.ts'
import type { ItemFeed, Resource, ResourceName, TimelineFeed } from '../../catalog/resource.ts'
import type { Sqlite } from '../../store/database/connection.ts'
import { quote } from '../../store/database/sql.ts'
import { statementCache } from '../../store/database/statements.ts'
import { createSegments } from '../../store/sync/segments.ts'
import { createState, type ResourceState } from '../../store/sync/state.ts'
import { isDueInRound } from '../schedule/due-segments.ts'

/** The contents of a warehouse that save the next run requests. Only reads. */
export interface Holdings {
  resources: ReadonlyMap<ResourceName, HeldResource>
  /** By `resource.feed`. */
  timelines: ReadonlyMap<string, HeldTimeline>
  items: ReadonlyMap<string, HeldItems>
  /** Snapshots: by feed and scope. */
  lists: ReadonlyMap<string, HeldList>
  /** Live records by object. */
  records: ReadonlyMap<string, number>
  objects: readonly string[]
}

export interface HeldResource {
  /** It has been complete before. */
  complete: boolean
  /** The interrupted round has read it completely, so the next run does not read it. */
  finished: boolean
  unavailable: string | null
}

export interface HeldTimeline {
  /** Stored rows in spans that the next run lists again. */
  known: number
  /** Spans that were never listed, and the span since the newest stored row. */
  unread: readonly { from: string | null; to: string | null }[]
  neverListed: boolean
}

export interface HeldItems {
  /** Keys that the next run reads. */
  due: number
  /** All known keys. */
  known: number
}

export interface HeldList {
  rows: number
  due: boolean
  everListed: boolean
}

export interface HoldingsQuery {
  chosen: readonly ResourceName[]
  since: string | null
  /** ISO. */
  now: string
}

export function readHoldings(db: Sqlite, query: HoldingsQuery): Holdings {
  const prepare = statementCache(db)
  const state = createState(prepare)
  const resources = CATALOG.filter(({ name }) => query.chosen.includes(name))
  const states = new Map(resources.map(({ name }) => [name, state.get(name)]))
  const goesOn = [...states.values()].some(({ roundOpen }) => roundOpen)
  const round = (name: ResourceName) => {
    const known = states.get(name)
    return known === undefined ? 1 : nextRound(known, goesOn)
  }
  const segments = createSegments(prepare)
  const count = (sql: string, ...values: unknown[]) =>
    prepare(sql)
      .pluck()
      .get(...values) as number
  const since = query.since ?? ''

  const timeline = (id: string, { name }: Resource, feed: TimelineFeed): HeldTimeline => {
    const all = segments.of(id, '').filter(({ to }) => to === null || to > since)
    const due = all.filter(segment => isDueInRound(segment, round(name)))
    const time = quote(feed.time)
    let known = 0
    const unread: { from: string | null; to: string | null }[] = []
    for (const segment of due) {
      const from = segment.from === null || segment.from < since ? query.since : segment.from
      const to = segment.edgeAt ?? segment.to
      if (segment.listedAt === null) unread.push({ from, to })
      else {
        const inSpan = `_deleted_at IS NULL AND ${time} >= ? AND ${time} < ?`
        const bounds = [from ?? '', to ?? '~']
        known += count(`SELECT count(*) FROM ${quote(feed.table)} WHERE ${inSpan}`, ...bounds)
        if (to === null) unread.push({ from: newestStored(feed), to: null })
      }
    }
    const untouched = all.length === 0
    return {
      known,
      unread: untouched ? [{ from: query.since, to: null }] : unread,
      neverListed: untouched || due.some(({ listedAt }) => listedAt === null),
    }
  }

  const newestStored = (feed: TimelineFeed): string | null => {
    const newest = `SELECT max(${quote(feed.time)}) FROM ${quote(feed.table)} WHERE _deleted_at IS NULL`
    return prepare(newest).pluck().get() as string | null
  }

  const items = (id: string, { name }: Resource, feed: ItemFeed): HeldItems => {
    const tasks = 'FROM sync_tasks WHERE feed = ? AND (sort_at IS NULL OR sort_at >= ?)'
    const due = count(
      `SELECT count(*) ${tasks} AND round < ? AND (? OR waiting OR due_at <= ?)`,
      ...[id, since, round(name), feed.everyRound ? 1 : 0, query.now],
    )
    const known = count(`SELECT count(*) ${tasks}`, id, since)
    const pending = feed.pending === undefined ? 0 : count(pendingSql(feed.pending), since, id)
    return { due: due + pending, known: known + pending }
  }

  const entries = resources.flatMap(resource =>
    Object.entries(resource.feeds).map(([name, feed]) => ({
      id: `${resource.name}.${name}`,
      resource,
      feed,
    })),
  )
  return {
    resources: new Map(
      resources.map(({ name }) => {
        const { firstCompleteAt, unavailableSince, reason, roundOpen } = states.get(name) ?? state.get(name)
        const finished = goesOn && !roundOpen && firstCompleteAt !== null
        const unavailable = unavailableSince === null ? null : reason
        return [name, { complete: firstCompleteAt !== null, finished, unavailable }]
      }),
    ),
    timelines: new Map(
      entries.flatMap(({ id, resource, feed }) =>
        feed.mode === 'timeline' ? [[id, timeline(id, resource, feed)] as const] : [],
      ),
    ),
    items: new Map(
      entries.flatMap(({ id, resource, feed }) =>
        feed.mode === 'item' ? [[id, items(id, resource, feed)] as const] : [],
      ),
    ),
    lists: new Map(
      entries.flatMap(({ id, resource, feed }) =>
        feed.mode === 'timeline' || feed.mode === 'item'
          ? []
          : segments.of(id).map(segment => {
              const held = {
                rows: segment.rows,
                due: isDueInRound(segment, round(resource.name)),
                everListed: segment.listedAt !== null,
              }
              return [feed.mode === 'periodic' ? `${id} ${segment.from}` : `${id} ${segment.scope}`, held]
            }),
      ),
    ),
    records: new Map(
      prepare('SELECT object, count(*) FROM crm_records WHERE _deleted_at IS NULL GROUP BY 1')
        .raw()
        .all() as [string, number][],
    ),
    objects: prepare('SELECT name FROM crm_objects WHERE _deleted_at IS NULL').pluck().all() as string[],
  }
}

/** The round of the next backfill: it continues an interrupted one, or begins a new one for all resources. */
function nextRound({ round }: ResourceState, goesOn: boolean): number {
  return goesOn && round > 0 ? round : round + 1
}

function pendingSql({ table, key, where, time }: NonNullable<ItemFeed['pending']>): string {
  return `SELECT count(*) FROM ${quote(table)} t WHERE ${where} AND (t.${quote(time)} IS NULL OR t.${quote(time)} >= ?)
    AND NOT EXISTS (SELECT 1 FROM sync_tasks s WHERE s.feed = ? AND s.scope = '' AND s.key = t.${quote(key)})`
}
