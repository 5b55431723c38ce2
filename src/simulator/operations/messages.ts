import { notFound } from '../http/answers.ts'
import type { Call, Operation } from '../http/operation.ts'
import { v2Page, type Walk } from '../http/paging.ts'
import { isUuid } from '../ids.ts'
import type { Position } from '../timeline.ts'
import type { Messages } from '../world/messages.ts'
import { compare } from '../world/people.ts'

export const messageOperations: readonly Operation[] = [
  { name: 'List messages', template: '/v2/messages', handle: list },
  { name: 'Get message', template: '/v2/messages/{messageId}', handle: read },
]

function list({ query, world: { messages }, cursors }: Call): string {
  const ids = query.uuids('ids')
  const thread = query.word('thread_id')
  const oldest = query.instant('received_from')
  const newest = query.instant('received_to')
  const { timeline, shelf } = messages
  const inTime: Walk = (after, visit) =>
    timeline.walk({ after, oldest, newest }, index => (shelf.isPublished(index) ? visit(index) : true))
  const ofFew = (few: number[]): Walk =>
    walkFew(messages, few, index => {
      const at = timeline.timeOf(index)
      return (oldest === undefined || at >= oldest) && (newest === undefined || at <= newest)
    })
  return v2Page(query, cursors, `messages?${query.filter()}`, {
    walk: ids || thread !== undefined ? ofFew(narrow(messages, ids, thread)) : inTime,
    positionOf: index => ({ at: timeline.timeOf(index), index }),
    json: messages.listJson,
  })
}

/** The messages that the ids name, or those of the thread, or both. */
function narrow(messages: Messages, ids: string[] | undefined, thread: string | undefined): number[] {
  const named =
    ids === undefined ? undefined : [...new Set(ids)].map(messages.shelf.find).filter(index => index >= 0)
  if (thread === undefined) return named ?? []
  const inThread = messages.ofThread(thread)
  return named === undefined ? inThread : inThread.filter(index => named.includes(index))
}

function walkFew(
  { timeline, shelf }: Messages,
  few: readonly number[],
  wanted: (index: number) => boolean,
): Walk {
  const rows = few
    .filter(index => shelf.isPublished(index) && wanted(index))
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

function read({ parameters: [id = ''], query, world: { messages } }: Call): string {
  if (!isUuid(id)) throw query.refuse('messageId must be a UUID')
  const index = messages.shelf.find(id)
  if (!messages.shelf.isPublished(index)) throw notFound('Message not found')
  return messages.json(index)
}
