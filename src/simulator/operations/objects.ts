import { isUuid } from '../base/ids.ts'
import type { Items } from '../base/items.ts'
import type { ObjectDefinition } from '../content/objects.ts'
import { notFound } from '../http/answers.ts'
import type { Operation, OperationCall } from '../http/operation.ts'
import { arrayListing, shapedPage, v2Page } from '../http/paging.ts'
import type { World } from '../world/world.ts'

export const objectOperations: readonly Operation[] = [
  { name: 'List objects', template: '/v2/objects', handle: list },
  { name: 'Get object', template: '/v2/objects/{object}', handle: read },
  { name: 'List records', template: '/v2/objects/{object}/records', handle: listRecords },
  { name: 'Get record', template: '/v2/objects/{object}/records/{recordId}', handle: readRecord },
]

const RECORD_PARAMETERS = ['limit', 'cursor', 'ids', 'related_id']

function list({ query, world: { records }, variants, cursors }: OperationCall): string {
  const objects = records.objects().filter(object => object.isListed)
  const order = objects.map((_, position) => position)
  const json = (position: number): string => {
    const { name, label, labelPlural, isCustom, isActive } = objects[position] ?? {}
    return JSON.stringify({
      name,
      label,
      label_plural: labelPlural,
      is_custom: isCustom,
      is_active: isActive,
    })
  }
  return shapedPage(
    variants.objectList,
    query,
    cursors,
    `objects?${query.filter()}`,
    arrayListing(order, json, (index, last) => index > last),
  )
}

function read({ parameters: [name = ''], world: { records } }: OperationCall): string {
  return records.objectJson(objectNamed(name, records.object(name)))
}

function objectNamed(name: string, object: ObjectDefinition | undefined): ObjectDefinition {
  if (!object) throw notFound(`Object ${name} not found`)
  return object
}

function recordsOf(world: World, name: string): { object: ObjectDefinition; items: Items } {
  const object = objectNamed(name, world.records.object(name))
  const items = world.records.itemsOf(name)
  if (!items) throw notFound(`Object ${name} not found`)
  return { object, items }
}

function listRecords({ parameters: [name = ''], query, world, cursors }: OperationCall): string {
  query.allowOnly(RECORD_PARAMETERS)
  const ids = query.uuids('ids')
  const relatedId = query.uuid('related_id')
  const { object, items } = recordsOf(world, name)
  if (relatedId !== undefined && RELATIONS[name] === undefined) {
    throw query.badRequest(`related_id is not accepted for ${name}`)
  }
  const named = ids === undefined ? undefined : new Set(ids.map(items.find))
  const related = relatedId === undefined ? undefined : relatedTo(world, name, relatedId)
  const order = related ?? (named && [...named])
  const candidates = order && [...new Set(order)].sort((a, b) => a - b)
  return v2Page(query, cursors, `records/${name}?${query.filter()}`, {
    scan: (after, visit) => {
      const wanted = (index: number): boolean => items.isPublished(index) && (named?.has(index) ?? true)
      if (candidates) {
        for (const index of candidates) {
          if ((!after || index > after.index) && wanted(index) && !visit(index)) return
        }
        return
      }
      for (let index = (after?.index ?? -1) + 1; index < items.count(); index++) {
        if (wanted(index) && !visit(index)) return
      }
    },
    positionOf: index => ({ at: 0, index }),
    json: index => world.records.recordJson(object, index),
  })
}

type RelatedIndices = (world: World, index: number) => readonly number[]

/** The first key is the listed object, the second that of the related record. The functions find the listed records. */
const RELATIONS: Record<string, Record<string, RelatedIndices>> = {
  company: {
    contact: ({ customers }, contact) => [customers.companyOfContact(contact)],
    deal: ({ customers }, deal) => [customers.companyOfDeal(deal)],
  },
  contact: {
    company: ({ customers }, company) => customers.contactsOfCompany(company),
    deal: ({ customers }, deal) => customers.contactsOfDeal(deal),
  },
  deal: {
    company: ({ customers }, company) => customers.dealsOfCompany(company),
    contact: ({ customers }, contact) => customers.dealsOfContact(contact),
  },
}

/** The listed records that are related to the record `relatedId` of any object. None if that record is unpublished. */
function relatedTo(world: World, listed: string, relatedId: string): readonly number[] {
  for (const [name, relatedIndices] of Object.entries(RELATIONS[listed] ?? {})) {
    const items = world.records.itemsOf(name)
    const index = items?.find(relatedId) ?? -1
    if (items?.isPublished(index)) return relatedIndices(world, index)
  }
  return []
}

function readRecord({ parameters: [name = '', id = ''], query, world }: OperationCall): string {
  const { object, items } = recordsOf(world, name)
  if (!isUuid(id)) throw query.badRequest('recordId must be a UUID')
  const index = items.find(id)
  if (!items.isPublished(index)) throw notFound('Record not found')
  return world.records.recordJson(object, index)
}
