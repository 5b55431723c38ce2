import { tableNamed } from '../../catalog/catalog.ts'
import type { Cell, ReadCell } from '../../declare/parsed-item.ts'
import type { Prepare, Sqlite } from '../database/sqlite-types.ts'
import { statementCache } from '../database/statements.ts'
import { createPurgeQueue } from '../deletions/purge-queue.ts'
import { createMessageMerge } from '../rows/merge/messages.ts'

/** How many e-mails, or copies of one, are handled at a time. */
const BATCH = 500

/** The characters that `trim` removes in JavaScript. */
const BLANKS =
  '\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'

/**
 * Corrects two kinds of copies. A copy whose Message-ID is blank, or has blanks at its ends, gets the key that this
 * version would give it. The text of a copy with other senders than its e-mail becomes due.
 */
export function regroupMails(db: Sqlite, now: string): void {
  const prepare = statementCache(db)
  const mails = createMergedMails(prepare)
  regroupUntrimmed(prepare, mails, now)
  readOtherSenders(prepare, mails, now)
}

function regroupUntrimmed(prepare: Prepare, mails: MergedMails, now: string): void {
  // Only the index of this column is read.
  const untrimmed = prepare<string>(
    `SELECT mail_id FROM message_copies WHERE mail_id > ? AND mail_id <> trim(mail_id, ?) ORDER BY mail_id LIMIT 1`,
  ).pluck()
  /** The copy that keeps the merged row: the one with the text, else the first. */
  const heirOf = prepare<CopyRow>(
    `SELECT c.* FROM messages m JOIN message_copies c
       ON c._id = coalesce(m._text_from, (SELECT _id FROM message_copies WHERE id = m.id))
     WHERE m.header_message_id = ?`,
  )
  const someCopies = prepare<CopyRow>(`SELECT * FROM message_copies WHERE mail_id = ? LIMIT ${BATCH}`)
  const setGroup = prepare('UPDATE message_copies SET mail_id = ? WHERE _id = ?')
  for (let key = untrimmed.get('', BLANKS); key !== undefined; key = untrimmed.get(key, BLANKS)) {
    const heir = heirOf.get(key)
    if (heir) mails.move(key, mailOf(heir))
    else mails.remove(key)
    for (let rows = someCopies.all(key); rows.length > 0; rows = someCopies.all(key)) {
      const keys = new Set(rows.map(row => mailOf(row)))
      for (const row of rows) setGroup.run(mailOf(row), row._id)
      mails.refresh(keys, now)
    }
  }
}

interface CopyRow {
  _id: number
  [column: string]: Cell
}

/** The key of the e-mail that a copy with these values belongs to. */
export function mailOf(row: Readonly<Record<string, Cell>>): string {
  const source = tableNamed('message_copies').columns['mail_id']?.source
  if (source?.from !== 'row') throw new TypeError('mail_id is not computed from other columns of its row')
  const cell: ReadCell = name => row[name] ?? null
  return String(source.value(cell))
}

/** Merges e-mails with several senders again: only such an e-mail can have copies with different senders. */
function readOtherSenders(prepare: Prepare, mails: MergedMails, now: string): void {
  const several = prepare<string>(
    `SELECT header_message_id FROM message_participants WHERE header_message_id > ? AND role = 'FROM'
     GROUP BY header_message_id HAVING count(*) > 1 ORDER BY header_message_id LIMIT ${BATCH}`,
  ).pluck()
  for (let keys = several.all(''); keys.length > 0; keys = several.all(keys.at(-1)))
    mails.refresh(new Set(keys), now)
}

export type MergedMails = ReturnType<typeof createMergedMails>

/** Changes e-mails whose copies get another key. */
export function createMergedMails(prepare: Prepare) {
  const purgeQueue = createPurgeQueue(prepare)
  const merge = createMessageMerge(prepare, purgeQueue)
  const find = prepare(`SELECT 1 FROM messages WHERE header_message_id = ?`)
  const rename = prepare(`UPDATE messages SET header_message_id = @to WHERE header_message_id = @from`)
  const fill = prepare(
    `UPDATE messages AS t SET _first_seen_at = min(t._first_seen_at, f._first_seen_at),
       text = iif(t._text_from IS NULL, f.text, t.text), _text_from = coalesce(t._text_from, f._text_from)
     FROM messages f WHERE t.header_message_id = @to AND f.header_message_id = @from`,
  )
  const remove = prepare(`DELETE FROM messages WHERE header_message_id = ?`)
  const forget = (key: string) => {
    remove.run(key)
    removeParts.run(key)
    purgeQueue.forget('messages', [key])
  }
  const removeParts = prepare('DELETE FROM message_participants WHERE header_message_id = ?')
  return {
    /**
     * Gives a merged row and its text the key `to`. If `to` has a row already, that row stays, and a missing text is
     * filled.
     */
    move(from: string, to: string) {
      if (find.get(to) === undefined) rename.run({ from, to })
      else fill.run({ from, to })
      forget(from)
    },
    /** Removes a merged row that has no copies. */
    remove: forget,
    /** Merges these e-mails again. */
    refresh(keys: ReadonlySet<string>, now: string) {
      merge.refresh(
        [...keys].map(key => ({ key, isReplaced: false })),
        now,
      )
    },
  }
}
