import { type DeclaredFeed, itemsOf, type ListFeed, listsOf } from '../../catalog/feeds.ts'
import type { ItemFeed, Resource } from '../../declare/resource.ts'
import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { onlyRow } from '../database/statements.ts'
import { SIZE_CHANGED } from './segments.ts'

/** How much of a resource's round is done, to show progress. */
export interface Workload {
  /** Rows of the lists in this round. */
  lists?: Share & {
    /** True when every list was read completely. */
    ended: boolean
  }
  /** Single reads. */
  items?: Share
}

export interface Share {
  done: number
  total: number | undefined
  /** True when the total is the number of rows stored before, or is unknown. */
  isGuess: boolean
}

export interface WorkloadQuestion {
  resource: Resource
  round: number
  now: string
  /** Leaves out single reads of rows with an earlier event time, where `sync.since` bounds them. */
  since: string | null
  /** False in the first round, when the stored rows say nothing about the total. */
  readBefore: boolean
}

/** Some counts scan an index of all rows. Call this every few seconds at most, and less often when counting is slow. */
export type ReadWorkload = (question: WorkloadQuestion) => Workload

export function createWorkload(prepare: Prepare): ReadWorkload {
  const lists = prepare<ListsRow>(
    `SELECT coalesce(sum(iif(listed_round >= @round OR pages > 0, rows, 0)), 0) AS done,
       count(*) AS segments, coalesce(sum(listed_round < @round AND NOT closed), 0) AS open,
       iif(count(nullif(total_size, ${SIZE_CHANGED})) = count(*), sum(total_size), NULL) AS size
     FROM sync_segments WHERE feed = @feed AND unavailable_since IS NULL`,
  )
  /** By table: the number of rows at the first call. Later calls do not count the rows again. */
  const known = new Map<string, number>()

  const rowsBefore = (table: string) => {
    const rows = known.get(table) ?? onlyRow(prepare<number>(`SELECT count(*) FROM ${quote(table)}`).pluck())
    known.set(table, rows)
    return rows
  }

  const listShare = (
    { id, feed }: DeclaredFeed<ListFeed>,
    { round, readBefore }: WorkloadQuestion,
  ): ListShare => {
    const { done, segments, open, size } = onlyRow(lists, { feed: id, round })
    const ended = segments > 0 && open === 0
    // A log is not read again completely, so its stored rows say nothing about the total.
    const guess = readBefore && feed.mode !== 'periodic' ? Math.max(done, rowsBefore(feed.table)) : undefined
    return { done, ended, total: ended ? done : (size ?? guess), isGuess: !ended && size === null }
  }

  const itemShare = ({ id, feed }: DeclaredFeed<ItemFeed>, question: WorkloadQuestion): Share => {
    const { round, now } = question
    const since = feed.boundBySince ? question.since : null
    const read = { feed: id, round, now, since }
    // Without `since`, an index alone answers the first query.
    const isWanted = (time: string) => (since === null ? 'true' : `(${time} IS NULL OR ${time} >= @since)`)
    const { table, pending, newest } = question.resource.status
    if (feed.everyRound || pending === undefined || newest === undefined) {
      const tasks = prepare<{ done: number; total: number }>(
        `SELECT count(*) AS total, coalesce(sum(round >= @round), 0) AS done FROM sync_tasks
         WHERE feed = @feed AND ${isWanted('sort_at')}`,
      )
      return { ...onlyRow(tasks, read), isGuess: false }
    }
    const due = prepare<number>(
      `SELECT count(*) FROM sync_tasks WHERE feed = @feed AND round < @round
         AND (round = 0 OR waiting OR due_at <= @now) AND ${isWanted('sort_at')}`,
    )
    const rows = prepare<{ total: number; pending: number }>(
      `SELECT count(*) AS total, coalesce(sum(${pending}), 0) AS pending FROM ${quote(table)}
       WHERE _deleted_at IS NULL AND ${isWanted(quote(newest))}`,
    )
    const stored = onlyRow(rows, read)
    const left = stored.pending + onlyRow(due.pluck(), read)
    return { done: Math.max(0, stored.total - left), total: stored.total, isGuess: false }
  }

  return question => {
    const lists = listsOf(question.resource).map(list => listShare(list, question))
    const items = itemsOf(question.resource).map(item => itemShare(item, question))
    return {
      ...(lists.length > 0 && { lists: { ...sum(lists), ended: lists.every(({ ended }) => ended) } }),
      ...(items.length > 0 && { items: sum(items) }),
    }
  }
}

type ListShare = Share & { ended: boolean }

interface ListsRow {
  done: number
  segments: number
  open: number
  size: number | null
}

function sum(shares: readonly Share[]): Share {
  const totals = shares.map(({ total }) => total)
  return {
    done: shares.reduce((all, { done }) => all + done, 0),
    total: totals.reduce<number | undefined>(
      (all, total) => (all === undefined || total === undefined ? undefined : all + total),
      0,
    ),
    isGuess: shares.some(({ isGuess }) => isGuess),
  }
}
