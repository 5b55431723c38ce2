import { notFound } from '../http/answers.ts'
import type { Operation, OperationCall } from '../http/operation.ts'
import { arrayListing, v1CursorPage } from '../http/paging.ts'
import type { Collections } from '../world/collections.ts'

export const collectionOperations: readonly Operation[] = [
  { name: 'List collections', template: '/v1/collections', handle: list },
  { name: 'Get collection', template: '/v1/collections/{collectionId}', handle: read },
]

function list({ query, world: { collections }, cursors }: OperationCall): string {
  return v1CursorPage(
    query,
    cursors,
    `collections?${query.filter()}`,
    arrayListing(collections.order(), collections.json, (index, last) => isBehind(collections, index, last)),
  )
}

function isBehind({ createdAt, items }: Collections, index: number, last: number): boolean {
  const difference = createdAt(index) - createdAt(last)
  return difference < 0 || (difference === 0 && items.ids.of(index) < items.ids.of(last))
}

function read({ parameters: [id = ''], world: { collections }, variants }: OperationCall): string {
  const index = collections.items.find(id)
  if (!collections.items.isPublished(index)) throw notFound('Collection not found')
  const json = collections.json(index)
  return variants.unstatedSingle === 'data' ? `{"data":${json}}` : json
}
