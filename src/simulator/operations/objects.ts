import type { ObjectDefinition } from '../content/objects.ts'
import { notFound } from '../http/answers.ts'
import type { Call, Operation } from '../http/operation.ts'
import { arrayListing, shapedPage, v2Page } from '../http/paging.ts'
import { isUuid } from '../ids.ts'
import type { Shelf } from '../shelf.ts'
import type { World } from '../world/world.ts'

export const objectOperations: readonly Operation[] = [
  { name: 'List objects', template: '/v2/objects', handle: list },
  { name: 'Get object', template: '/v2/objects/{object}', handle: read },
  { name: 'List records', template: '/v2/objects/{object}/records', handle: listRecords },
  { name: 'Get record', template: '/v2/objects/{object}/records/{recordId}', handle: readRecord },
]

const RECORD_PARAMETERS = ['limit', 'cursor', 'ids', 'related_id']

function list({ query, world: { records }, variants, cursors }: Call): string {
  const objects = records.objects().filter(object => object.listed)
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

function read({ parameters: [name = ''], world: { records } }: Call): string {
  return records.objectJson(objectNamed(name, records.object(name)))
}

function objectNamed(name: string, object: ObjectDefinition | undefined): ObjectDefinition {
  if (!object) throw notFound(`Object ${name} not found`)
  return object
}

function recordsOf(world: World, name: string): { object: ObjectDefinition; shelf: Shelf } {
  const object = objectNamed(name, world.records.object(name))
  const shelf = world.records.shelf(name)
  if (!shelf) throw notFound(`Object ${name} not found`)
  return { object, shelf }
}

function listRecords({ parameters: [name = ''], query, world, cursors }: Call): string {
  query.only(RECORD_PARAMETERS)
  const ids = query.uuids('ids')
  const relatedId = query.uuid('related_id')
  const { object, shelf } = recordsOf(world, name)
  if (relatedId !== undefined && RELATIONS[name] === undefined) {
    throw query.refuse(`related_id is not accepted for ${name}`)
  }
  const named = ids === undefined ? undefined : new Set(ids.map(shelf.find))
  const related = relatedId === undefined ? undefined : relatedTo(world, name, relatedId)
  const order = related ?? (named && [...named])
  const candidates = order && [...new Set(order)].sort((a, b) => a - b)
  return v2Page(query, cursors, `records/${name}?${query.filter()}`, {
    walk: (after, visit) => {
      const wanted = (index: number): boolean => shelf.isPublished(index) && (named?.has(index) ?? true)
      if (candidates) {
        for (const index of candidates) {
          if ((!after || index > after.index) && wanted(index) && !visit(index)) return
        }
        return
      }
      for (let index = (after?.index ?? -1) + 1; index < shelf.count(); index++) {
        if (wanted(index) && !visit(index)) return
      }
    },
    positionOf: index => ({ at: 0, index }),
    json: index => world.records.recordJson(object, index),
  })
}

type Path = (world: World, index: number) => readonly number[]

/** For the listed object: which records belong to a record of another object. */
const RELATIONS: Record<string, Record<string, Path>> = {
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

/** The object of the related record is found by its id. An unknown or unpublished one relates to nothing. */
function relatedTo(world: World, listed: string, relatedId: string): readonly number[] {
  for (const [name, path] of Object.entries(RELATIONS[listed] ?? {})) {
    const shelf = world.records.shelf(name)
    const index = shelf?.find(relatedId) ?? -1
    if (shelf?.isPublished(index)) return path(world, index)
  }
  return []
}

function readRecord({ parameters: [name = '', id = ''], query, world }: Call): string {
  const { object, shelf } = recordsOf(world, name)
  if (!isUuid(id)) throw query.refuse('recordId must be a UUID')
  const index = shelf.find(id)
  if (!shelf.isPublished(index)) throw notFound('Record not found')
  return world.records.recordJson(object, index)
}
