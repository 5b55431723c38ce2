import type { Derivation, SourceRow } from '../resource.ts'
import { quote } from './sql.ts'
import type { Prepare } from './statements.ts'

/**
 * One row per e-mail out of its live copies, and the choice of the copy whose text is read next (WAREHOUSE, Messages).
 * The result depends on the copies alone, not on the order in which they came.
 */
export interface MessageMerge {
  /** Makes the merged rows of these groups again. */
  refresh(groups: readonly Group[], now: string): void
  /** Stores what reading a copy's text gave. Returns whether anything changed. */
  applyText(copyId: string, result: TextResult, now: string): boolean
  /** Copies whose text is to be read again because they came back or changed. */
  resetText(copyId: string): void
}

/** A copy's header id and own id; an empty header id makes a group of its own. */
export interface Group {
  header: string | null
  id: string
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
  const order = `ORDER BY ${derivation.time} IS NULL, ${derivation.time}, ${derivation.key}`
  const copiesOf = (where: string) =>
    prepare(`SELECT * FROM ${source} WHERE ${where} AND _deleted_at IS NULL ${order}`)
  const byHeader = copiesOf(`${derivation.groupBy} = ?`)
  const byId = copiesOf(`${derivation.key} = ? AND coalesce(${derivation.groupBy}, '') = ''`)
  const find = prepare(
    `SELECT ${columns.join(', ')}, text_state, _text_from, _deleted_at FROM ${target} WHERE header_message_id = ?`,
  )
  const insert = prepare(
    `INSERT INTO ${target} (header_message_id, ${columns.join(', ')}, text_state, _first_seen_at, _synced_at)
     VALUES (?, ${columns.map(() => '?').join(', ')}, ?, ?, ?)`,
  )
  const update = prepare(
    `UPDATE ${target} SET ${columns.map(column => `${column} = ?`).join(', ')}, text_state = ?, _text_from = ?,
       text = iif(? IS NULL, NULL, text), _synced_at = ?, _deleted_at = NULL WHERE header_message_id = ?`,
  )
  const tombstone = prepare(
    `UPDATE ${target} SET _deleted_at = ? WHERE header_message_id = ? AND _deleted_at IS NULL`,
  )
  const setDue = prepare(`UPDATE ${source} SET _text_due = ? WHERE _id = ?`)
  const setPending = prepare(`UPDATE ${source} SET text_state = 'pending', _text_due = 1 WHERE _id = ?`)
  const setState = prepare(`UPDATE ${source} SET text_state = ? WHERE _id = ? AND text_state <> ?`)
  const findCopy = prepare(
    `SELECT _id, ${derivation.key} AS id, ${derivation.groupBy} AS header, text_state FROM ${source} WHERE ${derivation.key} = ?`,
  )
  const setText = prepare(
    `UPDATE ${target} SET text = ?, _text_from = ?, _synced_at = ? WHERE header_message_id = ? AND text IS NOT ?`,
  )
  const setTextFrom = prepare(`UPDATE ${target} SET _text_from = ? WHERE header_message_id = ?`)
  const resetState = prepare(
    `UPDATE ${source} SET text_state = 'pending', _text_due = 1 WHERE ${derivation.key} = ? AND text_state <> 'pending'`,
  )

  const copies = ({ header, id }: Group) => (header ? byHeader.all(header) : byId.all(id)) as Copy[]

  function refreshOne(group: Group, now: string): boolean {
    const key = groupKey(group)
    const live = copies(group)
    if (live.length === 0) return tombstone.run(now, key).changes > 0
    const stored = find.get(key) as Merged | undefined
    const plan = planText(live, (stored?.['_text_from'] ?? null) as number | null)
    for (const copy of live) {
      const due = copy._id === plan.due ? 1 : null
      if (copy._id === plan.reset) setPending.run(copy._id)
      else if (copy._text_due !== due) setDue.run(due, copy._id)
    }
    const merged = derivation.merge(live)
    const values = columns.map(column => merged[column] ?? null)
    const first = live[0]
    const firstState = first?._id === plan.reset ? 'pending' : first?.text_state
    const state = plan.from === null ? (firstState ?? null) : 'present'
    if (!stored) return insert.run(key, ...values, state, now, now).changes > 0
    const same =
      stored['_deleted_at'] === null &&
      stored['text_state'] === state &&
      stored['_text_from'] === plan.from &&
      columns.every((column, index) => stored[column] === values[index])
    if (!same) update.run(...values, state, plan.from, plan.from, now, key)
    return !same
  }

  return {
    refresh(groups, now) {
      const distinct = new Map(groups.map(group => [groupKey(group), group]))
      for (const group of distinct.values()) refreshOne(group, now)
    },
    applyText(copyId, result, now) {
      const copy = findCopy.get(copyId) as { _id: number; id: string; header: string | null } | undefined
      if (!copy) return false
      const changed = setState.run(result.state, copy._id, result.state).changes > 0
      let textChanged = false
      if (result.state === 'present' && givesText(copies(copy), copy._id)) {
        textChanged = setText.run(result.text, copy._id, now, groupKey(copy), result.text).changes > 0
        setTextFrom.run(copy._id, groupKey(copy))
      }
      return refreshOne(copy, now) || changed || textChanged
    },
    resetText(copyId) {
      resetState.run(copyId)
    },
  }
}

/** The first copy in canonical order with a text is the one that counts. */
function givesText(copies: readonly Copy[], id: number): boolean {
  return copies.find(copy => copy.text_state === 'present')?._id === id
}

/** The merged row's key. An empty or missing header id never merges two messages. */
export function groupKey({ header, id }: Group): string {
  return header ? header : `id:${id}`
}
