import type { Derivation, SourceRow } from '../resource.ts'
import { createPartsMerge } from './parts-merge.ts'
import { quote } from './sql.ts'
import type { Prepare } from './statements.ts'

/**
 * One row per e-mail out of its live copies, and the choice of the copy whose text is read next (WAREHOUSE, Messages).
 * The result depends on the copies alone, not on the order in which they came.
 */
export interface MessageMerge {
  /** Makes the merged rows of these groups again, and what is merged of their parts. */
  refresh(groups: readonly Group[], now: string): void
  /** Stores what reading a copy's text gave. Returns whether anything changed. */
  applyText(copyId: string, result: TextResult, now: string): boolean
  /** What the last read of a copy's text gave. */
  textState(copyId: string): string | undefined
  /** Copies whose text is to be read again because they came back or changed. */
  resetText(copyId: string): void
}

/** The copies of one e-mail. */
export interface Group {
  /** Key of the merged row. */
  key: string
  /**
   * True when a value of a copy was replaced, or a copy was taken away. A copy that only arrives completes the e-mail,
   * which is no change of it, whatever the merge then shows.
   */
  isReplaced: boolean
}

export type TextResult = { state: 'present'; text: string } | { state: 'empty' | 'gone' }

interface Copy extends SourceRow {
  _id: number
  id: string
  text_state: string
  _text_due: number | null
}

interface Merged {
  [column: string]: string | number | null
}

export interface TextPlan {
  /** The copy that gives the text, when its text is at hand. */
  from: number | null
  /** The copy to read next. */
  due: number | null
  /** A copy that once gave a text which was not kept. */
  reset: number | null
}

/** Reads copies in canonical order until one gives a text. Pure. */
export function planText(copies: readonly Pick<Copy, '_id' | 'text_state'>[], from: number | null): TextPlan {
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
  const copiesOf = prepare(
    `SELECT * FROM ${source} WHERE ${derivation.groupBy} = ? AND _deleted_at IS NULL
     ORDER BY ${derivation.time} IS NULL, ${derivation.time}, ${derivation.key}`,
  )
  const find = prepare(
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
  const findCopy = prepare(
    `SELECT _id, text_state, ${derivation.groupBy} AS "group" FROM ${source} WHERE ${derivation.key} = ?`,
  )
  // Another copy's text in the place of one that is there completes the merge; only the same copy's is a change.
  const setText = prepare(
    `UPDATE ${target} SET text = @text, _text_from = @copy, _synced_at = @now,
       _changed_at = iif(_text_from = @copy AND text IS NOT NULL, @now, _changed_at)
     WHERE header_message_id = @key AND text IS NOT @text`,
  )
  const setTextFrom = prepare(`UPDATE ${target} SET _text_from = ? WHERE header_message_id = ?`)
  const resetState = prepare(
    `UPDATE ${source} SET text_state = 'pending', _text_due = 1 WHERE ${derivation.key} = ? AND text_state <> 'pending'`,
  )

  const copies = (key: string) => copiesOf.all(key) as Copy[]
  const copyWith = (id: string) =>
    findCopy.get(id) as (Pick<Copy, '_id' | 'text_state'> & { group: string }) | undefined

  /** Stores on the copies which of them is read next. */
  const storePlan = (live: readonly Copy[], from: number | null): TextPlan => {
    const plan = planText(live, from)
    for (const copy of live) {
      const due = copy._id === plan.due ? 1 : null
      if (copy._id === plan.reset) setPending.run(copy._id)
      else if (copy._text_due !== due) setDue.run(due, copy._id)
    }
    return plan
  }

  /** @param withParts false where only the text may have changed */
  function refreshOne({ key, isReplaced }: Group, now: string, withParts: boolean): boolean {
    const live = copies(key)
    if (live.length === 0) {
      parts.remove(key)
      return tombstone.run(now, key).changes > 0
    }
    const stored = find.get(key) as Merged | undefined
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
        replaced.some(column => !derivation.aboutMerge.includes(column) && stored[column] !== null))
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
      if (result.state === 'present' && givesText(copies(copy.group), copy._id)) {
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

/** The first copy in canonical order with a text is the one that counts. */
function givesText(copies: readonly Copy[], id: number): boolean {
  return copies.find(copy => copy.text_state === 'present')?._id === id
}
