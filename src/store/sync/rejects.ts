import { createHash } from 'node:crypto'
import { encodeJson } from '../../base/json.ts'
import type { Prepare } from '../database/sqlite-types.ts'

interface Reject {
  resource: string
  feed: string
  /** The list or record that contained the item. */
  scope: string
  item: unknown
  reason: string
}

/** Items that could not be stored, and spans of event time that the API fails to list. */
export function createRejects(prepare: Prepare) {
  const note = prepare(
    `INSERT INTO sync_rejects (resource, item, reason, first_seen_at, last_seen_at, _feed, _scope, _digest)
     VALUES (@resource, @item, @reason, @now, @now, @feed, @scope, @digest)
     ON CONFLICT DO UPDATE SET last_seen_at = excluded.last_seen_at, reason = excluded.reason, resolved_at = NULL,
       first_seen_at = iif(resolved_at IS NULL, first_seen_at, excluded.first_seen_at)`,
  )
  const resolve = prepare(
    `UPDATE sync_rejects SET resolved_at = ? WHERE _feed = ? AND _scope = coalesce(?, _scope)
       AND resolved_at IS NULL AND last_seen_at < ?`,
  )
  const scopes = prepare<string>(
    'SELECT DISTINCT _scope FROM sync_rejects WHERE _feed = ? AND resolved_at IS NULL',
  ).pluck()
  const any = prepare(
    'SELECT 1 FROM sync_rejects WHERE _feed = ? AND _scope = ? AND resolved_at IS NULL LIMIT 1',
  )
  return {
    /** Whether the scope has an unresolved item. */
    has: (feed: string, scope: string) => any.get(feed, scope) !== undefined,
    /** The scopes of the feed's unresolved items. */
    scopesOf: (feed: string) => scopes.all(feed),
    /**
     * Adds an item. One that already has a row gets a new `last_seen_at` and `reason`; one that was resolved begins again.
     */
    note({ resource, feed, scope, item, reason }: Reject, now: string) {
      const text = encodeJson(item)
      const digest = createHash('sha256').update(`${feed}\u0000${scope}\u0000${text}`).digest('base64')
      note.run({ resource, feed, scope, item: text, reason, now, digest })
    },
    /**
     * Resolves the items of a feed and scope that were last seen before `before`: a complete pass or a later answer has
     * not rejected them again. A null scope means all scopes.
     */
    resolve(feed: string, scope: string | null, before: string, now: string) {
      resolve.run(now, feed, scope, before)
    },
  }
}
