import type { RequestKind } from '../../store/file/handed-over.ts'
import { resourceWithParts } from '../../store/sync/resync.ts'
import type { EngineContext } from '../context/context.ts'
import { acceptDeletions } from '../deletions/apply.ts'

/** Executes and logs what commands in other processes request, such as a resync. Call it inside a transaction. */
export function processRequests(context: EngineContext): void {
  const { store, log, now } = context
  for (const { id, kind, resource } of store.requests.open()) {
    store.requests.done(id, now())
    log.info(LOG_LINES[kind], { resource, ...HANDLERS[kind](context, resource) })
  }
}

const LOG_LINES: Readonly<Record<RequestKind, string>> = {
  resync: 'Resource is marked to be read again from the start, as requested',
  'accept-deletions': 'Held-back deletions are applied, as requested',
}

type RequestHandler = (
  context: EngineContext,
  resource: Parameters<typeof acceptDeletions>[1],
) => Readonly<Record<string, number>>

const HANDLERS: Readonly<Record<RequestKind, RequestHandler>> = {
  resync({ store }, resource) {
    store.resync(resourceWithParts(resource), store.dueClock.after(0))
    return {}
  },
  'accept-deletions': (context, resource) => ({ rows: acceptDeletions(context, resource)?.rows ?? 0 }),
}
