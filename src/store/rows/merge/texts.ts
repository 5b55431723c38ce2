import { ITEM_FEEDS } from '../../../catalog/feeds.ts'
import type { SourceRow } from '../../../declare/resource.ts'
import type { Prepare } from '../../database/sqlite-types.ts'

export interface MessageCopy extends SourceRow {
  _id: number
  id: string
  text_state: string
  /** 1 when the copy's own row holds a text. */
  has_text: number
  _text_due: number | null
}

type StoredCopy = Pick<MessageCopy, '_id' | 'text_state'> & { group: string }

export type TextResult = { state: 'present'; text: string } | { state: 'empty' | 'gone' }

/** The feed that reads the texts. */
const FEED = ITEM_FEEDS.find(({ feed }) => feed.stores === 'body')?.id

interface MergedText {
  /** `_id` of the copy that has the text; null while no text is known. */
  from: number | null
  state: string | null
  /** The text to write; undefined when the merged row has it already. */
  text?: string
}

export interface CopyText extends Pick<MessageCopy, '_id' | 'id' | 'text_state' | 'has_text'> {
  /** Undefined when the API names no sender. */
  sender: string | undefined
  /** Whether a read of this copy has ended, failed or given an answer without a usable text. */
  isTried: boolean
}

interface TextPlan {
  /** `_id` of the copy whose text is that of the e-mail; null while no text is known. */
  from: number | null
  /** `_id` of the copies to read next. */
  due: ReadonlySet<number>
  /** `_id` of copies in state `present` whose text was not kept: they become `pending` again. */
  reset: ReadonlySet<number>
  /** `_id` of the copies of another sender, whose texts stay in their own rows. */
  apart: ReadonlySet<number>
}

/**
 * Plans which copies are read next: the first one that is unread, and with one that was tried in vain also the copy
 * after it. Pure. @param copies the live copies of an e-mail, in canonical order
 */
export function planTexts(copies: readonly CopyText[], from: number | null): TextPlan {
  const isApart = apartTest(copies)
  const [apart, read] = [copies.filter(isApart), copies.filter(copy => !isApart(copy))]
  const isKept = (copy: CopyText) =>
    copy.text_state === 'present' && (copy._id === from || copy.has_text === 1)
  const source = read.findIndex(isKept)
  const before = (source < 0 ? read : read.slice(0, source)).filter(isUnread)
  const untried = before.findIndex(({ isTried }) => !isTried)
  const next = untried < 0 ? before : before.slice(0, untried + 1)
  const unread = [...next, ...apart.filter(copy => isUnread(copy) && !isKept(copy))]
  return {
    from: read[source]?._id ?? null,
    due: idsOf(unread),
    reset: idsOf(unread.filter(copy => copy.text_state === 'present')),
    apart: idsOf(apart),
  }
}

const isUnread = ({ text_state: state }: CopyText) => state === 'pending' || state === 'present'

const idsOf = (copies: readonly CopyText[]): ReadonlySet<number> => new Set(copies.map(({ _id }) => _id))

/** Returns a predicate: whether a copy names another sender than that of the e-mail. */
function apartTest(copies: readonly CopyText[]): (copy: CopyText) => boolean {
  const first = copies.find(({ sender }) => sender !== undefined)
  return ({ sender }) => sender !== undefined && sender !== first?.sender
}

/**
 * The texts of an e-mail. The first copy that names a sender gives the sender of the e-mail. The copies that name no
 * other sender are read in canonical order until one has a text, which becomes the text of the e-mail. A copy whose read
 * fails is read again until it is answered, and does not hold up the next copy. Every copy that names another sender is
 * read too, and its text stays in its own row: different senders may use the same Message-ID.
 */
export function createMessageTexts(prepare: Prepare, liveCopies: (key: string) => MessageCopy[]) {
  const find = prepare<StoredCopy>(
    'SELECT _id, text_state, mail_id AS "group" FROM message_copies WHERE id = ?',
  )
  const setDue = prepare(`UPDATE message_copies SET _text_due = ? WHERE _id = ?`)
  const setPending = prepare(`UPDATE message_copies SET text_state = 'pending', _text_due = 1 WHERE _id = ?`)
  const setState = prepare(`UPDATE message_copies SET text_state = ? WHERE _id = ? AND text_state <> ?`)
  // A new text of the same copy sets `_changed_at`. A text of another copy completes the merge and does not set it.
  const setText = prepare(
    `UPDATE messages SET text = @text, _text_from = @copy, _synced_at = @now,
       _changed_at = iif(_text_from = @copy AND text IS NOT NULL, @now, _changed_at)
     WHERE header_message_id = @key AND text IS NOT @text`,
  )
  const setTextFrom = prepare(`UPDATE messages SET _text_from = ? WHERE header_message_id = ?`)
  const setOwnText = prepare(
    `UPDATE message_copies SET text = @text, _synced_at = @now, _changed_at = iif(text IS NULL, _changed_at, @now)
     WHERE _id = @copy AND text IS NOT @text`,
  )
  const takeText = prepare(
    `UPDATE message_copies SET text = (SELECT text FROM messages WHERE header_message_id = ?)
     WHERE _id = ? AND text_state = 'present' AND (_deleted_at IS NOT NULL) = ?`,
  )
  const ownText = prepare<string>(`SELECT text FROM message_copies WHERE _id = ?`).pluck()
  const dropText = prepare(`UPDATE message_copies SET text = NULL WHERE _id = ?`)
  const reset = prepare(
    `UPDATE message_copies SET text_state = 'pending', _text_due = 1 WHERE id = ? AND text_state <> 'pending'`,
  )
  const sendersOf = createSenders(prepare)
  const triedOf = prepare<string>(
    `SELECT c.id FROM message_copies c CROSS JOIN sync_tasks s ON s.feed = @feed AND s.scope = '' AND s.key = c.id
     WHERE c.mail_id = @group AND s.round > 0`,
  ).pluck()
  const endFailed = prepare(
    `DELETE FROM sync_tasks WHERE feed = @feed AND scope = '' AND key = @key AND failures > 0 AND NOT EXISTS (
       SELECT 1 FROM sync_rejects r WHERE r._feed = @feed AND r._scope = @key AND r.resolved_at IS NULL)`,
  )
  const withSenders = (group: string, copies: readonly MessageCopy[]): CopyText[] => {
    const senders = copies.length > 1 ? sendersOf(group) : undefined
    const tried = new Set(copies.length > 1 ? triedOf.all({ feed: FEED, group }) : [])
    return copies.map(({ _id, id, text_state, has_text }) => ({
      _id,
      id,
      text_state,
      has_text,
      sender: senders?.get(id),
      isTried: tried.has(id),
    }))
  }

  return {
    find: (copyId: string) => find.get(copyId),
    /** Stores the result of reading a copy. Returns whether anything changed. */
    store(copy: StoredCopy, result: TextResult, now: string) {
      const isNewState = setState.run(result.state, copy._id, result.state).changes > 0
      const copies = withSenders(copy.group, liveCopies(copy.group))
      const isApart = apartTest(copies)
      if (copies.some(each => each._id === copy._id && isApart(each))) {
        const text = result.state === 'present' ? result.text : null
        return setOwnText.run({ text, copy: copy._id, now }).changes > 0 || isNewState
      }
      const first = copies.find(each => each.text_state === 'present' && !isApart(each))
      if (result.state !== 'present' || first?._id !== copy._id) return isNewState
      const text = { text: result.text, copy: copy._id, key: copy.group, now }
      const isNewText = setText.run(text).changes > 0
      setTextFrom.run(copy._id, copy.group)
      return isNewState || isNewText
    },
    /**
     * Plans which copies are read next, and sets `_text_due` of those copies only. Failed reads of other copies end, since
     * their texts are not needed. Returns the source and the state of the merged text, and the text itself when a copy's
     * row has held it so far. Call it before the merged row is written.
     */
    plan(key: string, live: readonly MessageCopy[], from: number | null): MergedText {
      const copies = withSenders(key, live)
      const plan = planTexts(copies, from)
      const needless = copies.filter(
        ({ _id, isTried, text_state }) => isTried && text_state === 'pending' && !plan.due.has(_id),
      )
      for (const { id } of needless) endFailed.run({ feed: FEED, key: id })
      let text: string | undefined
      // The copy that the text came from is deleted: its row gets the text back, and keeps it until the row is purged.
      if (from !== null && !live.some(({ _id }) => _id === from)) takeText.run(key, from, 1)
      for (const copy of live) {
        const due = plan.due.has(copy._id) ? 1 : null
        if (plan.reset.has(copy._id)) setPending.run(copy._id)
        else if (copy._text_due !== due) setDue.run(due, copy._id)
        const isApart = plan.apart.has(copy._id)
        if (isApart && copy._id === from) takeText.run(key, copy._id, 0)
        if (isApart || copy.has_text === 0) continue
        if (copy._id === plan.from) text = ownText.get(copy._id)
        dropText.run(copy._id)
      }
      const first = live[0]
      const firstState = first && plan.reset.has(first._id) ? 'pending' : first?.text_state
      const state = plan.from === null ? (firstState ?? null) : 'present'
      return { from: plan.from, state, ...(text === undefined ? {} : { text }) }
    },
    /** Makes the text of a copy due again. */
    reset: (copyId: string) => void reset.run(copyId),
  }
}

/**
 * Returns a function that maps the ids of an e-mail's copies to senders: one address each, or several in sorted order.
 */
function createSenders(prepare: Prepare) {
  const handles = prepare<[copyId: string, handle: string]>(
    `SELECT c.id, p.handle FROM message_copies c CROSS JOIN message_copy_participants p ON p.message_id = c.id
     WHERE c.mail_id = ? AND p.role = 'FROM' AND trim(p.handle) <> ''`,
  ).raw()
  return (group: string): ReadonlyMap<string, string> => {
    const senders = new Map<string, Set<string>>()
    for (const [copyId, handle] of handles.all(group)) {
      const known = senders.get(copyId) ?? new Set()
      senders.set(copyId, known.add(handle.trim().toLowerCase()))
    }
    return new Map([...senders].map(([copyId, all]) => [copyId, [...all].sort().join('\n')]))
  }
}
