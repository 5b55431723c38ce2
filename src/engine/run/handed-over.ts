import { REPORTS } from '../../declare/resyncable.ts'
import type { NewRequest } from '../../store/file/handed-over.ts'
import { resourceWithParts } from '../../store/sync/resync.ts'
import type { EngineContext } from '../context/context.ts'
import { acceptDeletions } from '../deletions/apply.ts'

/** Executes and logs what commands in other processes request, such as a resync. Call it inside a transaction. */
export function processRequests(context: EngineContext): void {
  const { store, log, now } = context
  for (const { id, ...request } of store.requests.open()) {
    store.requests.done(id, now())
    const { message, ...counts } = execute(context, request)
    log.info(message, { resource: request.resource, ...counts })
  }
}

function execute(context: EngineContext, { kind, resource }: NewRequest): { message: string; rows?: number } {
  if (kind === 'accept-deletions')
    return {
      message: 'Held-back deletions are applied, as requested',
      rows: acceptDeletions(context, resource)?.rows ?? 0,
    }
  const { store } = context
  store.resync(resourceWithParts(resource), store.dueClock.after(0))
  return {
    message:
      resource === REPORTS
        ? 'Tables for reports are computed again, as requested'
        : 'Resource is marked to be read again from the start, as requested',
  }
}
