import { isUuid } from '../base/ids.ts'
import type { Position } from '../base/timeline.ts'
import { notFound } from '../http/answers.ts'
import type { Operation, OperationCall } from '../http/operation.ts'
import { type Scan, v2Page } from '../http/paging.ts'
import { compare } from '../world/crm/people.ts'
import type { Messages } from '../world/messages/messages.ts'

export const messageOperations: readonly Operation[] = [
  { name: 'List messages', template: '/v2/messages', handle: list },
  { name: 'Get message', template: '/v2/messages/{messageId}', handle: read },
]

function list({ query, world: { messages }, cursors }: OperationCall): string {
  const ids = query.uuids('ids')
  const thread = query.nonEmptyText('thread_id')
  const oldest = query.instant('received_from')
  const newest = query.instant('received_to')
  const { timeline, items } = messages
  const scanTimeline: Scan = (after, visit) =>
    timeline.scan({ after, oldest, newest }, index => (items.isPublished(index) ? visit(index) : true))
  const scanSelected = (indices: number[]): Scan =>
    scanIndices(messages, indices, index => {
      const at = timeline.timeOf(index)
      return (oldest === undefined || at >= oldest) && (newest === undefined || at <= newest)
    })
  return v2Page(query, cursors, `messages?${query.filter()}`, {
    scan: ids || thread !== undefined ? scanSelected(messagesOf(messages, ids, thread)) : scanTimeline,
    positionOf: index => ({ at: timeline.timeOf(index), index }),
    json: messages.listJson,
  })
}

/** The messages that the ids name, the messages of the thread, or those in both. */
function messagesOf(messages: Messages, ids: string[] | undefined, thread: string | undefined): number[] {
  const named =
    ids === undefined ? undefined : [...new Set(ids)].map(messages.items.find).filter(index => index >= 0)
  if (thread === undefined) return named ?? []
  const inThread = messages.ofThread(thread)
  return named === undefined ? inThread : inThread.filter(index => named.includes(index))
}

function scanIndices(
  { timeline, items }: Messages,
  indices: readonly number[],
  wanted: (index: number) => boolean,
): Scan {
  const rows = indices
    .filter(index => items.isPublished(index) && wanted(index))
    .sort((a, b) => compare(timeline.timeOf(b), timeline.timeOf(a)) || b - a)
  const isBehind = (index: number, { at, index: last }: Position): boolean =>
    timeline.timeOf(index) < at || (timeline.timeOf(index) === at && index < last)
  return (after, visit) => {
    for (const index of rows) {
      if (after && !isBehind(index, after)) continue
      if (!visit(index)) return
    }
  }
}

function read({ parameters: [id = ''], query, world: { messages } }: OperationCall): string {
  if (!isUuid(id)) throw query.badRequest('messageId must be a UUID')
  const index = messages.items.find(id)
  if (!messages.items.isPublished(index)) throw notFound('Message not found')
  return messages.json(index)
}
