import type { RequestKind } from '../store/sync/requests.ts'
import { markForResync, resourceWithParts } from '../store/sync/resync.ts'
import type { EngineContext } from './context.ts'
import { acceptDeletions } from './deletions/apply.ts'

/** Does what other processes have asked for, and says so in the log. To be called inside a transaction. */
export function takeUpRequests(context: EngineContext): void {
  const { store, log, now } = context
  for (const { id, kind, resource } of store.requests.open()) {
    store.requests.done(id, now())
    log.info(TAKEN_UP[kind], { resource, ...TAKE_UP[kind](context, resource) })
  }
}

const TAKEN_UP: Readonly<Record<RequestKind, string>> = {
  resync: 'Resource is read again from the start, as requested',
  'accept-deletions': 'Held-back deletions are applied, as requested',
}

type TakeUp = (
  context: EngineContext,
  resource: Parameters<typeof acceptDeletions>[1],
) => Readonly<Record<string, number>>

const TAKE_UP: Readonly<Record<RequestKind, TakeUp>> = {
  resync({ store, now }, resource) {
    markForResync(store, resourceWithParts(resource), now())
    return {}
  },
  'accept-deletions': (context, resource) => ({ rows: acceptDeletions(context, resource)?.rows ?? 0 }),
}
