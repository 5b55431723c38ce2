import type { Derivation, SourceRow } from '../../catalog/resource.ts'
import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { createPartsMerge } from './parts-merge.ts'

/**
 * Merges the live copies of an e-mail into one row, and chooses the copy whose text is read next. The result depends on
 * the copies alone, not on the order in which they arrived.
 */
export interface MessageMerge {
  /** Merges these e-mails and their participants again. */
  refresh(groups: readonly Group[], now: string): void
  /** Stores the result of reading the text of a copy. Returns whether anything changed. */
  applyText(copyId: string, result: TextResult, now: string): boolean
  /** `text_state` of a copy; undefined when the copy is not stored. */
  textState(copyId: string): string | undefined
  /** Makes the text of a copy due again, because the copy was stored again after its deletion. */
  resetText(copyId: string): void
}

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

export type TextResult = { state: 'present'; text: string } | { state: 'empty' | 'gone' }

interface MessageCopy extends SourceRow {
  _id: number
  id: string
  text_state: string
  _text_due: number | null
}

interface MergedRow {
  [column: string]: string | number | null
}

interface TextPlan {
  /** `_id` of the copy whose text is stored; null when none is. */
  from: number | null
  /** `_id` of the copy to read next. */
  due: number | null
  /** `_id` of a copy in state `present` whose text was not kept: it becomes `pending` again. */
  reset: number | null
}

/** Plans which copy is read next: copies are read in canonical order until one has a text. Pure. */
function planText(copies: readonly Pick<MessageCopy, '_id' | 'text_state'>[], from: number | null): TextPlan {
  const at = copies.findIndex(copy => copy._id === from && copy.text_state === 'present')
  const kept = at < 0 ? null : from
  for (const copy of at < 0 ? copies : copies.slice(0, at)) {
    if (copy.text_state === 'pending') return { from: kept, due: copy._id, reset: null }
    if (copy.text_state === 'present') return { from: kept, due: copy._id, reset: copy._id }
  }
  return { from: kept, due: null, reset: null }
}

export function createMessageMerge(prepare: Prepare, derivation: Derivation): MessageMerge {
  const columns = Object.keys(derivation.merge([]))
  const source = quote(derivation.from)
  const target = quote(derivation.into)
  const parts = createPartsMerge(prepare, derivation.parts)
  const copiesOf = prepare<MessageCopy>(
    `SELECT * FROM ${source} WHERE ${derivation.groupBy} = ? AND _deleted_at IS NULL
     ORDER BY ${derivation.time} IS NULL, ${derivation.time}, ${derivation.key}`,
  )
  const find = prepare<MergedRow>(
    `SELECT ${columns.join(', ')}, text_state, _text_from, _deleted_at FROM ${target} WHERE header_message_id = ?`,
  )
  const insert = prepare(
    `INSERT INTO ${target} (header_message_id, ${columns.join(', ')}, text_state, _first_seen_at, _synced_at)
     VALUES (?, ${columns.map(() => '?').join(', ')}, ?, ?, ?)`,
  )
  const update = prepare(
    `UPDATE ${target} SET ${columns.map(column => `${column} = ?`).join(', ')}, text_state = ?, _text_from = ?,
       text = iif(? IS NULL, NULL, text), _synced_at = ?, _changed_at = coalesce(?, _changed_at), _deleted_at = NULL
     WHERE header_message_id = ?`,
  )
  const tombstone = prepare(
    `UPDATE ${target} SET _deleted_at = ? WHERE header_message_id = ? AND _deleted_at IS NULL`,
  )
  const setDue = prepare(`UPDATE ${source} SET _text_due = ? WHERE _id = ?`)
  const setPending = prepare(`UPDATE ${source} SET text_state = 'pending', _text_due = 1 WHERE _id = ?`)
  const setState = prepare(`UPDATE ${source} SET text_state = ? WHERE _id = ? AND text_state <> ?`)
  const findCopy = prepare<Pick<MessageCopy, '_id' | 'text_state'> & { group: string }>(
    `SELECT _id, text_state, ${derivation.groupBy} AS "group" FROM ${source} WHERE ${derivation.key} = ?`,
  )
  // A different text of the same copy is a change. A text of another copy completes the merge and is no change.
  const setText = prepare(
    `UPDATE ${target} SET text = @text, _text_from = @copy, _synced_at = @now,
       _changed_at = iif(_text_from = @copy AND text IS NOT NULL, @now, _changed_at)
     WHERE header_message_id = @key AND text IS NOT @text`,
  )
  const setTextFrom = prepare(`UPDATE ${target} SET _text_from = ? WHERE header_message_id = ?`)
  const resetState = prepare(
    `UPDATE ${source} SET text_state = 'pending', _text_due = 1 WHERE ${derivation.key} = ? AND text_state <> 'pending'`,
  )

  const copies = (key: string) => copiesOf.all(key)
  const copyWith = (id: string) => findCopy.get(id)

  /** Plans which copy is read next and stores the plan: `_text_due` is set for this copy, and NULL for the others. */
  const storePlan = (live: readonly MessageCopy[], from: number | null): TextPlan => {
    const plan = planText(live, from)
    for (const copy of live) {
      const due = copy._id === plan.due ? 1 : null
      if (copy._id === plan.reset) setPending.run(copy._id)
      else if (copy._text_due !== due) setDue.run(due, copy._id)
    }
    return plan
  }

  /** Returns whether anything changed. @param withParts false when only the text can have changed */
  function refreshOne({ key, isReplaced }: Group, now: string, withParts: boolean): boolean {
    const live = copies(key)
    if (live.length === 0) {
      parts.remove(key)
      return tombstone.run(now, key).changes > 0
    }
    const stored = find.get(key)
    const textFrom = (stored?.['_text_from'] ?? null) as number | null
    const plan = storePlan(live, textFrom)
    const merged = derivation.merge(live)
    const values = columns.map(column => merged[column] ?? null)
    const first = live[0]
    const firstState = first?._id === plan.reset ? 'pending' : first?.text_state
    const state = plan.from === null ? (firstState ?? null) : 'present'
    const ids = live.map(({ id }) => id)
    if (!stored) {
      insert.run(key, ...values, state, now, now)
      parts.insert(key, ids)
      return true
    }
    const change = withParts ? parts.refresh(key, ids) : 'none'
    const replaced = columns.filter((column, index) => stored[column] !== values[index])
    const same =
      stored['_deleted_at'] === null &&
      stored['text_state'] === state &&
      textFrom === plan.from &&
      change === 'none' &&
      replaced.length === 0
    if (same) return false
    const isChange =
      isReplaced &&
      (change === 'replaced' ||
        (textFrom !== null && plan.from === null) ||
        replaced.some(column => !derivation.mergeMetadata.includes(column) && stored[column] !== null))
    update.run(...values, state, plan.from, plan.from, now, isChange ? now : null, key)
    return true
  }

  return {
    refresh(groups, now) {
      const distinct = new Map<string, boolean>()
      for (const { key, isReplaced } of groups) distinct.set(key, isReplaced || distinct.get(key) === true)
      for (const [key, isReplaced] of distinct) refreshOne({ key, isReplaced }, now, true)
    },
    applyText(copyId, result, now) {
      const copy = copyWith(copyId)
      if (!copy) return false
      const changed = setState.run(result.state, copy._id, result.state).changes > 0
      let textChanged = false
      if (result.state === 'present' && isTextSource(copies(copy.group), copy._id)) {
        const text = { text: result.text, copy: copy._id, key: copy.group, now }
        textChanged = setText.run(text).changes > 0
        setTextFrom.run(copy._id, copy.group)
      }
      const isReplaced = result.state !== 'present'
      return refreshOne({ key: copy.group, isReplaced }, now, false) || changed || textChanged
    },
    textState: copyId => copyWith(copyId)?.text_state,
    resetText(copyId) {
      resetState.run(copyId)
    },
  }
}

/** Whether this copy is the first in canonical order that has a text. */
function isTextSource(copies: readonly MessageCopy[], id: number): boolean {
  return copies.find(copy => copy.text_state === 'present')?._id === id
}
