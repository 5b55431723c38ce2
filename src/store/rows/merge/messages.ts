import { tableNamed } from '../../../catalog/catalog.ts'
import type { SourceRow } from '../../../declare/resource.ts'
import { placeholders, quote } from '../../database/sql.ts'
import type { Prepare } from '../../database/sqlite-types.ts'
import type { PurgeQueue } from '../../deletions/purge-queue.ts'
import { createPartsMerge } from './parts.ts'
import { createMessageTexts, type MessageCopy, type TextResult } from './texts.ts'

export type MessageMerge = ReturnType<typeof createMessageMerge>

/** The copies of one e-mail. */
export interface Group {
  /** `header_message_id` of the merged row. */
  key: string
  /**
   * True when a value of a copy was replaced or a copy was removed. A copy that is only added completes the e-mail, and
   * does not set `_changed_at`, even if values of the merged row differ afterwards.
   */
  isReplaced: boolean
}

interface MergedRow {
  [column: string]: string | number | null
}

/**
 * Merges the live copies of an e-mail into one row, and chooses the copies whose texts are read next. The result
 * depends on the copies alone, not on the order in which they arrived.
 */
export function createMessageMerge(prepare: Prepare, purgeQueue: Pick<PurgeQueue, 'updateMerged'>) {
  const columns = Object.keys(mergedMail([]))
  const parts = createPartsMerge(prepare)
  // Without the texts: a sender may give all e-mails one Message-ID, so the texts of one group may fill the memory.
  const copyColumns = Object.keys(tableNamed('message_copies').columns).filter(name => name !== 'text')
  const copiesOf = prepare<MessageCopy>(
    `SELECT _id, ${copyColumns.map(quote).join(', ')}, text IS NOT NULL AS has_text
     FROM message_copies WHERE mail_id = ? AND _deleted_at IS NULL ORDER BY received_at IS NULL, received_at, id`,
  )
  const find = prepare<MergedRow>(
    `SELECT ${columns.join(', ')}, text_state, _text_from, _deleted_at FROM messages WHERE header_message_id = ?`,
  )
  const insert = prepare(
    `INSERT INTO messages (header_message_id, ${columns.join(', ')}, text_state, _text_from, text, _first_seen_at,
       _synced_at)
     VALUES (${placeholders(columns.length + 6)})`,
  )
  const update = prepare(
    `UPDATE messages SET ${columns.map(column => `${column} = ?`).join(', ')}, text_state = ?, _text_from = ?,
       text = iif(_text_from IS ?, text, ?), _synced_at = ?, _changed_at = coalesce(?, _changed_at), _deleted_at = NULL
     WHERE header_message_id = ?`,
  )
  const tombstone = prepare(
    `UPDATE messages SET _deleted_at = ? WHERE header_message_id = ? AND _deleted_at IS NULL`,
  )
  const liveCopies = (key: string) => copiesOf.all(key)
  const texts = createMessageTexts(prepare, liveCopies)

  /** Returns whether anything changed. @param withParts false when only the text can have changed */
  function refreshOne({ key, isReplaced }: Group, now: string, withParts: boolean): boolean {
    const live = liveCopies(key)
    if (live.length === 0) {
      parts.remove(key)
      return tombstone.run(now, key).changes > 0
    }
    const stored = find.get(key)
    const textFrom = (stored?.['_text_from'] ?? null) as number | null
    const text = texts.plan(key, live, textFrom)
    const merged = mergedMail(live)
    const values = columns.map(column => merged[column] ?? null)
    const ids = live.map(({ id }) => id)
    if (!stored) {
      insert.run(key, ...values, text.state, text.from, text.text ?? null, now, now)
      parts.insert(key, ids)
      return true
    }
    const change = withParts ? parts.refresh(key, ids) : 'none'
    const replaced = columns.filter((column, index) => stored[column] !== values[index])
    const same =
      stored['_deleted_at'] === null &&
      stored['text_state'] === text.state &&
      textFrom === text.from &&
      change === 'none' &&
      replaced.length === 0
    if (same) return false
    const isChange =
      isReplaced &&
      (change === 'replaced' ||
        (textFrom !== null && text.from === null) ||
        replaced.some(column => !ABOUT_MERGE.includes(column) && stored[column] !== null))
    const changedAt = isChange ? now : null
    update.run(...values, text.state, text.from, text.from, text.text ?? null, now, changedAt, key)
    return true
  }

  return {
    /** Merges these e-mails and the participants of their copies again, and updates the purge queue. */
    refresh(groups: readonly Group[], now: string) {
      const distinct = new Map<string, boolean>()
      for (const { key, isReplaced } of groups) distinct.set(key, isReplaced || distinct.get(key) === true)
      for (const [key, isReplaced] of distinct) refreshOne({ key, isReplaced }, now, true)
      purgeQueue.updateMerged(distinct.keys())
    },
    /** Stores the result of reading the text of a copy. Returns whether anything changed. */
    applyText(copyId: string, result: TextResult, now: string) {
      const copy = texts.find(copyId)
      if (!copy) return false
      const isChanged = texts.store(copy, result, now)
      const isReplaced = result.state !== 'present'
      return refreshOne({ key: copy.group, isReplaced }, now, false) || isChanged
    },
    /** Plans again which copies of an e-mail are read, after the read of this copy has ended without a usable text. */
    textFailed(copyId: string, now: string) {
      const copy = texts.find(copyId)
      if (copy) refreshOne({ key: copy.group, isReplaced: false }, now, false)
    },
    /** `text_state` of a copy; undefined when the copy is not stored. */
    textState: (copyId: string) => texts.find(copyId)?.text_state,
    /** Makes the text of a copy due again, because the copy was stored again after its deletion. */
    resetText: texts.reset,
  }
}

const MERGED = ['thread_id', 'subject', 'received_at', 'is_internal', 'is_group_email'] as const

/** Columns about the merge itself. A new value in one of them does not move `_changed_at`. */
const ABOUT_MERGE: readonly string[] = ['id', 'copy_count']

/**
 * Each field comes from the first copy in which it is not null. Pure.
 * @param copies in canonical order, so that the result does not depend on the order of arrival: earliest `received_at`
 * first, then smallest id
 */
function mergedMail(copies: readonly SourceRow[]): SourceRow {
  const firstKnown = (column: string) => copies.find(copy => copy[column] != null)?.[column] ?? null
  return {
    id: copies[0]?.['id'] ?? null,
    copy_count: copies.length,
    ...Object.fromEntries(MERGED.map(column => [column, firstKnown(column)])),
  }
}
