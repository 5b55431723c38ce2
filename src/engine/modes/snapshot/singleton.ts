import { isNullData, readSingle } from '../../../api/paging.ts'
import { encodeJson } from '../../../base/json.ts'
import { tableNamed } from '../../../catalog/catalog.ts'
import type { DeclaredFeed } from '../../../catalog/feeds.ts'
import type { ParsedItem } from '../../../declare/parsed-item.ts'
import type { SingletonFeed } from '../../../declare/resource.ts'
import type { EngineContext } from '../../context/context.ts'
import type { Source } from '../../context/job.ts'
import { noteDenial } from '../../deletions/denial.ts'
import { backOff } from '../../due/back-off.ts'
import { writeRows } from '../../follow-ups/write.ts'
import { createListSources, type ListMode } from '../lists.ts'
import { endPassOf } from '../pass.ts'
import { handleRefusal } from '../refusals.ts'

/** Reads a resource that is one document. The document is stored in one row, with the id 1. */
export function createSingleton(context: EngineContext, document: DeclaredFeed<SingletonFeed>): Source[] {
  const { store } = context
  const { resource, id, feed } = document
  const row = { table: feed.table, scope: '', key: '1' }
  const isStored = () => store.stored.state(row) === 'open'

  /** Handles a 404 for a stored document: a second 404, minutes later, confirms that it is gone. */
  const denyDocument = (status: number, message: string) => {
    if (noteDenial(context, row).state === 'suspected') return
    for (const segment of store.segments.of(id)) store.segments.remove(segment)
    handleRefusal(context, document, status, message)
  }

  /** Whether the API has no document any more: as for a 404, a second answer confirms that. */
  const isNullOfStored = (value: unknown) =>
    feed.stores === 'document' &&
    isNullData(value) &&
    isStored() &&
    store.stored.valueOf(row, 'document') !== undefined

  /** A document that was never read, or that was gone, gets a new segment. */
  const addSegment = () => store.segments.add({ feed: id, scope: '', from: null, to: null })

  const ask: ListMode['ask'] = segment => ({
    request: { route: feed.read.path, path: feed.read.path },
    answer(value, reply) {
      if (isNullOfStored(value)) {
        if (noteDenial(context, row).state === 'suspected') return
        store.suspicions.end(row)
      }
      const item = toItem(context, document, value)
      if (item) {
        const filled = feed.stores === 'document' ? ['id', 'document'] : ['id']
        writeRows(context, resource, feed.table, [item], { ticket: reply.ticket, now: context.now(), filled })
      }
      const passRound = context.rounds.number(resource)
      const pass = { passStartedAt: reply.serverSentAt, passRound, passWantedAt: segment.wantedAt }
      endPassOf(store.segments, { ...segment, ...pass })
      store.state.fresh(resource, reply.serverSentAt)
    },
    refused(status, message) {
      if (status === 404 && isStored() && feed.expected?.[404]) denyDocument(status, message)
      else handleRefusal(context, document, status, message)
    },
    failed(error) {
      backOff(context, document, error)
    },
  })

  return createListSources(context, {
    list: document,
    isOneByOne: true,
    prepare: () => store.segments.of(id, '').length > 0 || store.attempt(addSegment) !== undefined,
    ask,
  })
}

function toItem(
  context: EngineContext,
  document: DeclaredFeed<SingletonFeed>,
  value: unknown,
): ParsedItem | undefined {
  const { feed } = document
  const isNull = feed.stores === 'document' && isNullData(value)
  const record = isNull ? null : readSingle(value, feed.read.placement)
  const columns = Object.keys(tableNamed(feed.table).columns)
  const item =
    feed.stores === 'document'
      ? { cells: columns.map(() => null), extra: null, children: new Map(), feedFields: {} }
      : context.parsing.parser(feed.table)(record, context.parsing.report(document, ''))
  if (!item) return undefined
  const cells = columns.map((column, index) => {
    if (column === 'id') return 1
    return column === 'document' && !isNull ? encodeJson(record) : (item.cells[index] ?? null)
  })
  return { ...item, cells }
}
