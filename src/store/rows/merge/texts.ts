import type { Derivation, SourceRow } from '../../../declare/resource.ts'
import { quote } from '../../database/sql.ts'
import type { Prepare } from '../../database/sqlite-types.ts'

/** The text of an e-mail. Its copies are read in canonical order until one has a text. */
export interface MessageTexts {
  find(copyId: string): StoredCopy | undefined
  /** Stores the result of reading a copy. Returns whether anything changed. */
  store(copy: StoredCopy, result: TextResult, now: string): boolean
  /** Plans the next copy to read, and sets `_text_due` for it alone. Returns source and state of the merged text. */
  plan(live: readonly MessageCopy[], from: number | null): Pick<TextPlan, 'from'> & { state: string | null }
  /** Makes the text of a copy due again. */
  reset(copyId: string): void
}

export interface MessageCopy extends SourceRow {
  _id: number
  id: string
  text_state: string
  _text_due: number | null
}

type StoredCopy = Pick<MessageCopy, '_id' | 'text_state'> & { group: string }

export type TextResult = { state: 'present'; text: string } | { state: 'empty' | 'gone' }

interface TextPlan {
  /** `_id` of the copy whose text is stored; null when none is. */
  from: number | null
  /** `_id` of the copy to read next. */
  due: number | null
  /** `_id` of a copy in state `present` whose text was not kept: it becomes `pending` again. */
  reset: number | null
}

/** Plans which copy is read next. Pure. */
function planText(copies: readonly Pick<MessageCopy, '_id' | 'text_state'>[], from: number | null): TextPlan {
  const at = copies.findIndex(copy => copy._id === from && copy.text_state === 'present')
  const kept = at < 0 ? null : from
  for (const copy of at < 0 ? copies : copies.slice(0, at)) {
    if (copy.text_state === 'pending') return { from: kept, due: copy._id, reset: null }
    if (copy.text_state === 'present') return { from: kept, due: copy._id, reset: copy._id }
  }
  return { from: kept, due: null, reset: null }
}

export function createMessageTexts(
  prepare: Prepare,
  derivation: Derivation,
  liveCopies: (key: string) => MessageCopy[],
): MessageTexts {
  const source = quote(derivation.from)
  const target = quote(derivation.into)
  const find = prepare<StoredCopy>(
    `SELECT _id, text_state, ${derivation.groupBy} AS "group" FROM ${source} WHERE ${derivation.key} = ?`,
  )
  const setDue = prepare(`UPDATE ${source} SET _text_due = ? WHERE _id = ?`)
  const setPending = prepare(`UPDATE ${source} SET text_state = 'pending', _text_due = 1 WHERE _id = ?`)
  const setState = prepare(`UPDATE ${source} SET text_state = ? WHERE _id = ? AND text_state <> ?`)
  // A different text of the same copy is a change. A text of another copy completes the merge and is no change.
  const setText = prepare(
    `UPDATE ${target} SET text = @text, _text_from = @copy, _synced_at = @now,
       _changed_at = iif(_text_from = @copy AND text IS NOT NULL, @now, _changed_at)
     WHERE header_message_id = @key AND text IS NOT @text`,
  )
  const setTextFrom = prepare(`UPDATE ${target} SET _text_from = ? WHERE header_message_id = ?`)
  const reset = prepare(
    `UPDATE ${source} SET text_state = 'pending', _text_due = 1 WHERE ${derivation.key} = ? AND text_state <> 'pending'`,
  )

  return {
    find: copyId => find.get(copyId),
    store(copy, result, now) {
      const isNewState = setState.run(result.state, copy._id, result.state).changes > 0
      if (result.state !== 'present' || !isTextSource(liveCopies(copy.group), copy._id)) return isNewState
      const text = { text: result.text, copy: copy._id, key: copy.group, now }
      const isNewText = setText.run(text).changes > 0
      setTextFrom.run(copy._id, copy.group)
      return isNewState || isNewText
    },
    plan(live, from) {
      const plan = planText(live, from)
      for (const copy of live) {
        const due = copy._id === plan.due ? 1 : null
        if (copy._id === plan.reset) setPending.run(copy._id)
        else if (copy._text_due !== due) setDue.run(due, copy._id)
      }
      const first = live[0]
      const firstState = first?._id === plan.reset ? 'pending' : first?.text_state
      return { from: plan.from, state: plan.from === null ? (firstState ?? null) : 'present' }
    },
    reset: copyId => void reset.run(copyId),
  }
}

/** Whether this copy is the first in canonical order that has a text. */
function isTextSource(copies: readonly MessageCopy[], id: number): boolean {
  return copies.find(copy => copy.text_state === 'present')?._id === id
}
