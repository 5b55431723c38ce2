import {
  refused,
  type ScriptedAnswer,
  type ScriptedApi,
  type ScriptedRequest,
  startScriptedApi,
  v2Page,
} from '../support/scripted-api.ts'
import { uuid } from './trial-backfill.ts'

/** A small CRM behind a scripted API. The API shows what a test changes here. */
export interface CrmWorld {
  api: ScriptedApi
  /** Records by object and number. The list keeps its first state; only `ids` shows changes. */
  records: Record<string, Record<number, RecordFields>>
  /** The fields of an object that refer to other records. */
  relations: Record<string, RelationField[]>
  activities: object[]
  /** Pairs of records, each as `deal 1`. */
  links: Set<string>
  /** Answers in place of the records of an object. */
  instead: Record<string, (request: ScriptedRequest) => ScriptedAnswer | undefined>
  /** The list catches up with the records. */
  publish(): void
  /** The ids of each request that named some, in the order of arrival, with the object. */
  asked(): string[]
  /** The requests for the links of a record, as `contact of deal 1`. */
  askedLinks(): string[]
}

export interface RecordFields {
  /** Minutes from now. */
  updated: number | null
  [field: string]: unknown
}

interface RelationField {
  name: string
  object?: string
  resource?: string
}

/** Test files share a process, so a time from its start would be long past for the last of them. */
let start = Date.now()

/** An instant this many minutes from now. */
export function at(minutes: number): string {
  return new Date(start + minutes * 60_000).toISOString()
}

/** An activity that reports a changed record. Links are written as `deal 1`; those after the first are derived. */
export function event(number: number, minutes: number, links: readonly string[], more: object = {}): object {
  return {
    id: uuid(9_000 + number),
    type: 'object_changed',
    source_type: 'OBJECT_CHANGE_EVENT',
    source_id: `source ${number}`,
    occurred_at: at(minutes),
    created_via: null,
    actor: null,
    links: links.map((link, index) => ({ ...linkTo(link), origin: index === 0 ? 'DIRECT' : 'DERIVED' })),
    ...more,
  }
}

export function linkTo(link: string): { context_type: string; context_id: string } {
  const [object = '', number = '0'] = link.split(' ')
  return { context_type: object, context_id: uuid(Number(number)) }
}

const numberOf = (id: string): number => Number(id.split('-').at(-1))

export async function startCrm(records: CrmWorld['records']): Promise<CrmWorld> {
  start = Date.now()
  const api = await startScriptedApi()
  let listed = structuredClone(records)
  const world: CrmWorld = {
    api,
    records,
    relations: {},
    activities: [],
    links: new Set(),
    instead: {},
    publish() {
      listed = structuredClone(world.records)
    },
    asked: () =>
      api
        .asked('/v2/objects/{object}/records')
        .filter(({ query }) => query['ids'] !== undefined)
        .map(
          ({ params, query }) => `${params[0]} ${(query['ids'] ?? '').split(',').map(numberOf).join(' ')}`,
        ),
    askedLinks: () =>
      api
        .asked('/v2/objects/{object}/records')
        .filter(({ query }) => query['related_id'] !== undefined)
        .map(({ params, query }) => `${params[0]} of ${ownerOf(world, query['related_id'] ?? '')}`),
  }
  api.on('/v2/activities', () => v2Page(newestFirst(world.activities)))
  api.on('/v2/objects', () => ({ body: { data: Object.keys(world.records).map(name => ({ name })) } }))
  api.on('/v2/objects/{object}', ({ params: [name = ''] }) => {
    const fields = (world.relations[name] ?? []).map(fieldOf)
    return name in world.records ? { body: { name, fields } } : refused(404)
  })
  api.on('/v2/objects/{object}/records', request => {
    const { params, query } = request
    const [object = ''] = params
    const other = world.instead[object]?.(request)
    if (other) return other
    if (!(object in world.records)) return refused(404)
    const { ids, related_id: related } = query
    const shown = Object.entries((ids === undefined ? listed : world.records)[object] ?? {})
    const rows = shown.map(([number, fields]) => recordOf(object, Number(number), fields))
    if (ids !== undefined) return v2Page(rows.filter(({ id }) => ids.split(',').includes(id)))
    if (related !== undefined) return v2Page(rows.filter(row => isLinked(world, object, row.id, related)))
    return v2Page(rows)
  })
  return world
}

function newestFirst(activities: readonly object[]): object[] {
  const time = (activity: object) => ('occurred_at' in activity ? String(activity.occurred_at) : '')
  return [...activities].sort((one, other) => (time(one) < time(other) ? 1 : -1))
}

function fieldOf({ name, object = '', resource = '' }: RelationField): object {
  return { name, relation: { type: 'MANY_TO_ONE', target_object: object, target_resource: resource } }
}

function recordOf(object: string, number: number, { updated, ...fields }: RecordFields) {
  return {
    id: uuid(number),
    object,
    visibility: 'workspace',
    fields,
    created_at: at(-10_000),
    updated_at: updated === null ? null : at(updated),
    created_by: null,
    updated_by: null,
  }
}

/** A number is used by one object only. */
function ownerOf({ records }: CrmWorld, id: string): string {
  const number = numberOf(id)
  const [object] = Object.entries(records).find(([, rows]) => number in rows) ?? ['unknown']
  return `${object} ${number}`
}

function isLinked(world: CrmWorld, object: string, id: string, related: string): boolean {
  const [one, other] = [`${object} ${numberOf(id)}`, ownerOf(world, related)]
  return world.links.has(`${one}, ${other}`) || world.links.has(`${other}, ${one}`)
}
