import {
  isNullData,
  MAX_LIMITS,
  type PagingStyle,
  readDataList,
  readPage,
  readSingle,
} from '../api/paging.ts'
import type { ApiReader, ReaderReply } from '../api/reader.ts'
import { fillPath, type Query } from '../api/request.ts'
import { EXIT_STATUS, RetryError } from '../base/errors.ts'
import { CATALOG, tableNamed } from '../catalog/catalog.ts'
import type { Feed, ListRequest, ReadRequest, StatusMeanings } from '../declare/resource.ts'
import type { ResourceName } from '../declare/resource-names.ts'
import { keyOf } from '../engine/parse/key.ts'
import { compileParser } from '../engine/parse/parse.ts'
import { type Finding, findingsOf, MEANINGS, NEWER_VERSION_HINT, refusedHint } from './finding.ts'

/** Sends one cheap request to each endpoint that the resources declare. */

interface Endpoint {
  /** Each parameter has the name of the item whose id it takes: `/v1/teams/{team}`. */
  route: string
  resource: ResourceName
  query?: Query
  answer: PagingStyle | ReadRequest['placement']
  /** The table whose columns the items are checked against. */
  table?: string | undefined
  /** Fields that may hold an item's id; the first that exists is used. */
  ids?: readonly string[] | undefined
  /** Refusals that are allowed, by status. */
  expected?: StatusMeanings | undefined
}

/** In the order of the catalogue, lists before the single reads that need their ids. */
const DECLARED: readonly Endpoint[] = CATALOG.flatMap(({ name, feeds, readsWithoutFeed = [] }) => [
  ...Object.values(feeds).flatMap(feed =>
    endpointsOf(feed).map(({ route, ...endpoint }) => ({
      ...endpoint,
      route: withNamedParameters(route),
      resource: name,
    })),
  ),
  ...readsWithoutFeed.map(({ path, placement, table, expected }) => ({
    route: path,
    resource: name,
    answer: placement,
    table,
    ids: [keyField(table)],
    expected,
  })),
])

/**
 * Two feeds may read the same endpoint. The last is kept: it says what refusals mean, while a list only confirms
 * deletions there.
 */
const ENDPOINTS = DECLARED.filter(
  ({ route }, index) => DECLARED.findLastIndex(other => other.route === route) === index,
)

/**
 * The endpoints of a feed. A list with its scope in the query has none here, since another feed reads the same list.
 * The access log has none here, since `access-log-end.ts` checks it.
 */
function endpointsOf(feed: Feed): Omit<Endpoint, 'resource'>[] {
  const { table, expected } = feed
  switch (feed.mode) {
    case 'timeline':
    case 'snapshot': {
      if (feed.list.scopeParameter !== undefined) return []
      const isWhole = feed.mode === 'timeline' || feed.lists === 'rows'
      const ids = feed.mode === 'timeline' ? [keyField(table)] : feed.keyFields
      const list = { ...listOf(feed.list), table: isWhole ? table : undefined, ids, expected }
      const { evidence } = feed
      return 'read' in evidence ? [list, singleOf(evidence.read, { table })] : [list]
    }
    case 'item': {
      const { read, stores } = feed
      if (!('placement' in read)) return []
      if (stores === 'results')
        return [{ route: read.path, answer: 'data-list', table, ids: [keyField(table)], expected }]
      if (stores === 'transcript') return [{ route: read.path, answer: 'data-list', expected }]
      return [singleOf(read, { table: stores === 'setting' ? undefined : table, expected })]
    }
    case 'singleton':
      return [singleOf(feed.read, { table: feed.stores === 'row' ? table : undefined, expected })]
    case 'periodic':
      return []
  }
}

/** The endpoint of a list. Its query asks for one item if the list accepts a limit. */
function listOf({ path, paging }: ListRequest) {
  const query = MAX_LIMITS[paging] === undefined ? {} : { query: { limit: '1' } }
  return { route: path, answer: paging, ...query }
}

function singleOf(
  { path, placement, identity }: ReadRequest,
  check: Pick<Endpoint, 'table' | 'expected'>,
): Omit<Endpoint, 'resource'> {
  return { route: path, answer: placement, ids: identity === undefined ? undefined : [identity], ...check }
}

/** The payload field with the key of a table's rows. */
function keyField(name: string): string {
  const { key, columns } = tableNamed(name)
  const source = columns[key.at(-1) ?? '']?.source
  const [field] = source?.from === 'payload' ? source.path : []
  if (field === undefined)
    throw new TypeError(`The key of the table ${name} is not declared as a payload field`)
  return field
}

/** `/v1/teams/{key}` becomes `/v1/teams/{team}`. */
function withNamedParameters(route: string): string {
  return route.replace(/(?<![\w-])([\w-]+)\/\{\w+\}/g, (_, list: string) => `${list}/{${singular(list)}}`)
}

function singular(list: string): string {
  return list.replace(/ies$/, 'y').replace(/s$/, '')
}

const parametersOf = (route: string): string[] =>
  [...route.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)

/** The path parameters that an item of this list can fill, each with the fields that may hold the id. */
function idsGivenBy({ route, ids = [] }: Endpoint): readonly (readonly [string, readonly string[]])[] {
  const list = route.slice(route.lastIndexOf('/') + 1)
  const others = READS_WITHOUT_FEED.filter(({ path }) => path.slice(0, path.lastIndexOf('/')) === route)
  return [
    [singular(list), ids] as const,
    ...others.flatMap(({ path, idFields }) => {
      const parameter = parametersOf(path).at(-1)
      return parameter !== undefined && idFields ? [[parameter, idFields] as const] : []
    }),
  ]
}

const READS_WITHOUT_FEED = CATALOG.flatMap(({ readsWithoutFeed = [] }) => readsWithoutFeed)

export interface EndpointAnswer {
  finding: Finding
  reply: ReaderReply<readonly unknown[]> | undefined
}

/** Requests one endpoint after another. @throws StopError when the API refuses the key or does not answer */
export async function* checkEndpoints(api: ApiReader): AsyncGenerator<EndpointAnswer> {
  const known = new Map<string, string>()
  for (const endpoint of ENDPOINTS) {
    const line = findingsOf(`GET ${endpoint.route}`)
    const parameters = parametersOf(endpoint.route)
    if (!parameters.every(name => known.has(name))) {
      yield {
        finding: line.note('not checked: no list returned an item whose id could be requested'),
        reply: undefined,
      }
      continue
    }
    const path = fillPath(endpoint.route, Object.fromEntries(known))
    const request = { ...endpoint, path }
    const reply = await api.read(request, value => readItems(endpoint, value))
    yield { finding: replyFinding(endpoint, reply, known.get(parameters[0] ?? '')), reply }
    if (reply.kind !== 'answer') continue
    for (const [name, fields] of idsGivenBy(endpoint)) {
      const [id] = reply.value.flatMap(item => keyOf(item, fields) ?? [])
      if (id !== undefined) known.set(name, id)
    }
  }
  api.requireAccess()
}

function readItems({ answer, query, ids, table }: Endpoint, value: unknown): readonly unknown[] {
  if (answer === 'data-list') return readDataList(value)
  if (answer !== 'bare' && answer !== 'data' && answer !== 'either')
    return readPage(answer, value, query ?? {}).items
  if (table === undefined && isNullData(value)) return []
  const single = readSingle(value, answer, ids?.[0])
  if (table !== undefined && Array.isArray(single)) {
    throw new RetryError('The answer is a list, expected one object', {
      code: 'broken-envelope',
      hint: NEWER_VERSION_HINT,
    })
  }
  return [single]
}

function replyFinding(
  endpoint: Endpoint,
  reply: ReaderReply<readonly unknown[]>,
  owner: string | undefined,
): Finding {
  const line = findingsOf(`GET ${endpoint.route}`)
  if (reply.kind === 'answer') return itemsFinding(endpoint, reply.value, owner)
  if (reply.kind === 'failed') {
    const hint =
      reply.hint ??
      'Correct the setting that the message names. If it names none, run parley doctor again later, and report the error to the provider of the API if it remains.'
    return line.wrong(reply.message, EXIT_STATUS.apiUnavailable, hint)
  }
  const { status, message } = reply
  const meaning = endpoint.expected?.[status]
  if (meaning) return line.note(`${status}: ${MEANINGS[meaning]}`)
  return line.wrong(`${status}: ${message}`, EXIT_STATUS.apiUnavailable, refusedHint(status))
}

/** Checks that the items have an id and fit their table. Findings name fields, never values. */
function itemsFinding(
  { route, table, ids, resource }: Endpoint,
  items: readonly unknown[],
  owner: string | undefined,
): Finding {
  const line = findingsOf(`GET ${route}`)
  if (items.length === 0) return line.ok('200, empty')
  if (ids && !items.some(item => keyOf(item, ids) !== undefined)) {
    const hint = `parley cannot store items without an id. Install the newest version of parley, or leave ${resource} out (sync.resources, or parley backfill --skip).`
    return line.wrong(`200, but no item has ${ids.join(' or ')}`, EXIT_STATUS.apiUnavailable, hint)
  }
  if (table === undefined) return line.ok('200')
  const unknown = new Set<string>()
  const misfits = new Set<string>()
  const rejects = new Set<string>()
  const parse = compileParser(tableNamed(table))
  for (const item of items) {
    parse(
      item,
      {
        drift: (_table, field, reason) => void (reason === 'unknown field' ? unknown : misfits).add(field),
        reject: (_table, _item, reason) => void rejects.add(reason),
      },
      owner,
    )
  }
  if (rejects.size > 0) {
    const hint = 'parley keeps such items in sync_rejects. A newer version may be able to store them.'
    return line.warning(`200, with items that cannot be stored: ${[...rejects].join(', ')}`, hint)
  }
  if (misfits.size > 0) {
    const hint =
      'These values do not fit their columns and are stored in _extra. A newer version of parley may have columns for them.'
    return line.warning(`200, unexpected type in: ${[...misfits].join(', ')}`, hint)
  }
  if (unknown.size === 0) return line.ok('200')
  return line.note(`200, unknown fields (stored in _extra): ${[...unknown].join(', ')}`)
}
