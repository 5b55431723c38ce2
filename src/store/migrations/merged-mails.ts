import { CATALOG } from '../../catalog/catalog.ts'
import type { Derivation } from '../../declare/resource.ts'
import { quote } from '../database/sql.ts'
import type { Prepare } from '../database/sqlite-types.ts'
import { createPurgeQueue } from '../deletions/purge-queue.ts'
import { createMerges } from '../rows/write-items.ts'

/** What migrations do with e-mails whose copies get another key. */
export interface MergedMails {
  derivation: Derivation
  /** The merged row gets another key, with its text. Where that key has a row, its text fills a missing one. */
  move(from: string, to: string): void
  /** Removes a merged row that has no copies. */
  remove(key: string): void
  /** Merges these e-mails again. */
  refresh(keys: ReadonlySet<string>, now: string): void
}

export function createMergedMails(prepare: Prepare): MergedMails {
  const [derivation] = CATALOG.flatMap(resource => resource.derivation ?? [])
  if (!derivation) throw new TypeError('No resource declares a merge')
  const { merge } = createMerges(prepare)
  const purgeQueue = createPurgeQueue(prepare)
  const target = quote(derivation.into)
  const find = prepare(`SELECT 1 FROM ${target} WHERE header_message_id = ?`)
  const rename = prepare(`UPDATE ${target} SET header_message_id = @to WHERE header_message_id = @from`)
  const fill = prepare(
    `UPDATE ${target} AS t SET _first_seen_at = min(t._first_seen_at, f._first_seen_at),
       text = iif(t._text_from IS NULL, f.text, t.text), _text_from = coalesce(t._text_from, f._text_from)
     FROM ${target} f WHERE t.header_message_id = @to AND f.header_message_id = @from`,
  )
  const remove = prepare(`DELETE FROM ${target} WHERE header_message_id = ?`)
  const forget = (key: string) => {
    remove.run(key)
    removeParts.run(key)
    purgeQueue.forget(derivation.into, [key])
  }
  const removeParts = prepare(`DELETE FROM ${quote(derivation.parts.into)} WHERE header_message_id = ?`)
  return {
    derivation,
    move(from, to) {
      if (find.get(to) === undefined) rename.run({ from, to })
      else fill.run({ from, to })
      forget(from)
    },
    remove: forget,
    refresh(keys, now) {
      merge.refresh(
        [...keys].map(key => ({ key, isReplaced: false })),
        now,
      )
      purgeQueue.updateMerged(derivation, keys)
    },
  }
}
