import { type Page, readPage } from '../../api/paging.ts'
import type { ApiReader, ReaderReply } from '../../api/reader.ts'
import { fillPath, type Query } from '../../api/request.ts'
import { tableNamed } from '../../catalog/catalog.ts'
import type { DeclaredFeed, ListFeed } from '../../catalog/feeds.ts'
import type { SourceRow } from '../../declare/resource.ts'
import type { ResourceName } from '../../declare/resource-names.ts'
import { compileParser } from '../parse/parse.ts'

/** Reads single pages for an estimate and notes refusals. Nothing is stored. */
export interface PageReader {
  read(list: DeclaredFeed<ListFeed>, query: Query, scope?: string): Promise<ReaderReply<Page>>
  /** Undefined when the API did not answer with a page: `refusals` then says why. */
  page(list: DeclaredFeed<ListFeed>, query: Query): Promise<Page | undefined>
  refuse(list: DeclaredFeed<ListFeed>, reply: NoPage): undefined
  refusals: ReadonlyMap<ResourceName, Refusal>
  /** Requests sent so far, including retries. */
  used(): number
}

export type NoPage = Exclude<ReaderReply<Page>, { kind: 'answer' }>

export interface Refusal {
  status: number | undefined
  message: string
  /** True when the declaration says that this status means: the workspace does not offer the resource. */
  expected: boolean
}

export function createPageReader(api: ApiReader): PageReader {
  const refusals = new Map<ResourceName, Refusal>()
  const read: PageReader['read'] = ({ feed }, query, scope = '') => {
    const isDocument = feed.mode === 'singleton'
    const list = isDocument ? feed.read : feed.list
    const request = { route: list.path, path: fillPath(list.path, { scope }), query }
    return api.read(request, value => readPage(isDocument ? 'single' : feed.list.paging, value, query))
  }
  const refuse: PageReader['refuse'] = ({ resource, feed }, reply) => {
    const status = reply.kind === 'refused' ? reply.status : undefined
    const expected = status !== undefined && feed.expected?.[status] === 'unavailable'
    refusals.set(resource, { status, message: reply.message, expected })
    return undefined
  }
  return {
    read,
    refuse,
    async page(list, query) {
      const reply = await read(list, query)
      return reply.kind === 'answer' ? reply.value : refuse(list, reply)
    },
    refusals,
    used: api.used,
  }
}

/** The items of a page as rows of a table. An item that could not be stored is left out. */
export function rowsOf(table: string, items: readonly unknown[]): SourceRow[] {
  const declared = tableNamed(table)
  const columns = Object.keys(declared.columns)
  const parse = compileParser(declared)
  const ignore = { drift: () => undefined, reject: () => undefined }
  return items.flatMap(item => {
    const cells = parse(item, ignore)?.cells
    return cells ? [Object.fromEntries(columns.map((name, index) => [name, cells[index] ?? null]))] : []
  })
}
