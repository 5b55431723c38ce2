import { resourceNamed, tableNamed } from '../../catalog/catalog.ts'
import {
  type DeclaredFeed,
  feedNamed,
  ITEM_FEEDS,
  isItem,
  LISTS,
  type ListFeed,
} from '../../catalog/feeds.ts'
import type { FollowUp, ItemFeed, SourceRow } from '../../declare/resource.ts'

/** Derives from the declarations which rows are read one by one. Pure. */

/** The list whose rows an item feed reads. If the answers of another item feed name its keys: the list of that feed. */
export function listBehind({ id, feed }: DeclaredFeed<ItemFeed>): DeclaredFeed<ListFeed> | undefined {
  const table = feed.pending?.table ?? feed.table
  const cause = ITEM_FEEDS.find(each => each.feed.followUps?.some(followUp => followUp.feed === id))
  return LISTS.find(each => each.feed.table === table) ?? (cause && listBehind(cause))
}

/** The kinds of associations between the rows of a list. */
export function associationsOf({ id }: { id: string }): readonly (readonly [string, string])[] {
  return ITEM_FEEDS.flatMap(({ feed }) => (feed.associations?.of === id ? feed.associations.kinds : []))
}

/** What the answer of another item feed must contain for a key to be read; undefined when every row is read. */
export function conditionOf({ id, feed }: DeclaredFeed<ItemFeed>): FollowUp['when'] {
  if (feed.pending) return undefined
  return ITEM_FEEDS.flatMap(each => each.feed.followUps ?? []).find(followUp => followUp.feed === id)?.when
}

/** Whether each row of a list costs a further request. */
export function isReadSingly({ feed }: DeclaredFeed): boolean {
  return ITEM_FEEDS.some(each => each.feed.pending?.table === feed.table)
}

/** The follow-up by which the rows of a timeline name keys that another list may lack. */
export function additionOf({ feed }: DeclaredFeed): (FollowUp & { list: string }) | undefined {
  for (const followUp of feed.mode === 'timeline' ? (feed.followUps ?? []) : []) {
    if (!('how' in followUp) || followUp.how !== 'add') continue
    const target = feedNamed(followUp.feed)
    const list = isItem(target) ? listBehind(target) : undefined
    if (list) return { ...followUp, list: list.id }
  }
  return undefined
}

/** The single reads that the rows of a page cause. The rows are newest first, as a timeline lists them. */
export function singleReads(list: DeclaredFeed, rows: readonly SourceRow[]): number {
  if (isReadSingly(list)) return readsOfRows(list, rows)
  const when = Object.entries(additionOf(list)?.when ?? {})
  return rows.filter(row => when.every(([column, values]) => values.includes(String(row[column])))).length
}

/**
 * The number of single reads for rows that are read one by one. Copies that are merged into one row are read in
 * canonical order until one has content. A copy without content in the list has none in its single read either, since
 * the share settings hide both.
 */
function readsOfRows({ resource, feed }: DeclaredFeed, rows: readonly SourceRow[]): number {
  const { derivation } = resourceNamed(resource)
  if (derivation?.from !== feed.table) return rows.length
  const columns = Object.entries(tableNamed(feed.table).columns)
  const content = columns.flatMap(([name, column]) => (column.content ? [name] : []))
  const groups = new Map<string, boolean[]>()
  for (const row of rows.toReversed()) {
    const group = String(row[derivation.groupBy])
    const copies = groups.get(group) ?? []
    groups.set(group, copies)
    // After a copy with content, the other copies of its group are not read.
    if (!copies.at(-1)) copies.push(content.some(column => row[column] != null))
  }
  return [...groups.values()].reduce((reads, copies) => reads + copies.length, 0)
}
