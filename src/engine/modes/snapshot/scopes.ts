import type { SnapshotFeed } from '../../../declare/resource.ts'
import type { EngineContext } from '../../context/context.ts'

/** The scopes of a list, such as the objects of the record lists. A list without scopes has the scope ''. */
export interface Scopes {
  asked: readonly string[]
  /** The scopes that were backing off when the scopes were collected. */
  waiting: readonly string[]
}

/** Adds a segment for each new scope, and removes the segments of scopes that no longer exist. */
export function updateScopes(
  { store, backoffs }: EngineContext,
  id: string,
  { scope }: SnapshotFeed,
): Scopes {
  const wanted = scope
    ? [...new Set([...(scope.always ?? []), ...store.stored.liveValues(scope.table, scope.column)])]
    : ['']
  const passes = store.segments.of(id)
  for (const pass of passes) if (!wanted.includes(pass.scope)) store.segments.remove(pass)
  const waiting = wanted.filter(one => backoffs.isWaiting(id, one))
  const asked = wanted.filter(one => !waiting.includes(one))
  for (const one of asked) {
    if (passes.some(pass => pass.scope === one)) continue
    store.segments.add({ feed: id, scope: one, from: null, to: null })
  }
  return { asked, waiting }
}
