import { type PagingStyle, readDataList, readPage, readSingle } from '../api/paging.ts'
import type { ApiReader, ReaderReply } from '../api/reader.ts'
import type { Query } from '../api/request.ts'
import { fillPath } from '../api/request.ts'
import { tableNamed } from '../catalog/catalog.ts'
import type { Expected, ResourceName } from '../catalog/resource.ts'
import { keyOf } from '../engine/parse/key.ts'
import { compileParser } from '../engine/parse/parse.ts'
import { EXIT_STATUS, RetryError } from '../errors.ts'
import { createFinder, type Finding } from './check.ts'

/** One cheap request to each endpoint of the API. Lists come before the single reads that need their ids. */

export interface Endpoint {
  route: string
  resource: ResourceName
  query?: Query
  answer: PagingStyle | { placement: 'bare' | 'data' | 'either' }
  /** The table whose columns the items are checked against. */
  table?: string
  /** The route parameter that owns the items. */
  within?: string
  /** Fields that may hold an item's id; the first that exists is used. */
  ids?: readonly string[]
  /** Route parameters of later endpoints, each with the fields of the first item that may give its value. */
  gives?: Readonly<Record<string, readonly string[]>>
  /** Refusals that are allowed, by status. */
  expected?: Expected
}

const ONE_ITEM = { limit: '1' }

/** All endpoints of the API except the access log, which `access-log.ts` checks. */
export const ENDPOINTS: readonly Endpoint[] = [
  {
    route: '/v1/members',
    resource: 'members',
    query: ONE_ITEM,
    answer: 'v1-page',
    table: 'members',
    ids: ['id'],
  },
  {
    route: '/v1/teams',
    resource: 'teams',
    query: ONE_ITEM,
    answer: 'v1-page',
    table: 'teams',
    ids: ['id'],
    gives: { team: ['id'] },
  },
  {
    route: '/v1/teams/{team}',
    resource: 'teams',
    answer: { placement: 'data' },
    table: 'teams',
    ids: ['id'],
  },
  {
    route: '/v1/collections',
    resource: 'collections',
    query: ONE_ITEM,
    answer: 'v1-cursor',
    table: 'collections',
    ids: ['id'],
    gives: { collection: ['id'] },
  },
  {
    route: '/v1/collections/{collection}',
    resource: 'collections',
    answer: { placement: 'either' },
    table: 'collections',
    ids: ['id'],
  },
  {
    route: '/v2/activities',
    resource: 'activities',
    query: ONE_ITEM,
    answer: 'v2-cursor',
    table: 'activities',
    ids: ['id'],
    gives: { activity: ['id'] },
  },
  {
    route: '/v2/activities/{activity}',
    resource: 'activities',
    answer: { placement: 'either' },
    table: 'activities',
    ids: ['id'],
  },
  {
    route: '/v2/messages',
    resource: 'messages',
    query: ONE_ITEM,
    answer: 'v2-cursor',
    table: 'message_copies',
    ids: ['id'],
    gives: { message: ['id'] },
  },
  {
    route: '/v2/messages/{message}',
    resource: 'message_bodies',
    answer: { placement: 'bare' },
    table: 'message_copies',
    ids: ['id'],
  },
  {
    route: '/v2/objects',
    resource: 'crm_objects',
    answer: 'any',
    ids: ['name'],
    gives: { object: ['name'] },
  },
  {
    route: '/v2/objects/{object}',
    resource: 'crm_objects',
    answer: { placement: 'either' },
    table: 'crm_objects',
    ids: ['name'],
  },
  {
    route: '/v2/objects/{object}/records',
    within: 'object',
    resource: 'crm_records',
    query: ONE_ITEM,
    answer: 'v2-cursor',
    table: 'crm_records',
    ids: ['id'],
    gives: { record: ['id'] },
    expected: { 404: 'unavailable' },
  },
  {
    route: '/v2/objects/{object}/records/{record}',
    within: 'object',
    resource: 'crm_records',
    answer: { placement: 'either' },
    table: 'crm_records',
    ids: ['id'],
  },
  {
    route: '/v1/meetings',
    resource: 'meetings',
    answer: 'any',
    ids: ['meeting_id', 'id'],
    gives: { meeting: ['meeting_id', 'id'] },
  },
  {
    route: '/v1/meetings/{meeting}',
    resource: 'meetings',
    answer: { placement: 'data' },
    table: 'meetings',
    ids: ['meeting_id'],
    expected: { 403: 'withheld', 404: 'absent' },
  },
  {
    route: '/v1/meetings/{meeting}/transcript',
    resource: 'transcripts',
    answer: 'data-list',
    expected: { 403: 'withheld', 404: 'absent' },
  },
  {
    route: '/v1/meetings/{meeting}/playbook-results',
    within: 'meeting',
    resource: 'playbook_results',
    answer: 'data-list',
    table: 'playbook_results',
    ids: ['id'],
    gives: { playbookRun: ['playbook_id'] },
    expected: { 403: 'withheld', 404: 'absent' },
  },
  {
    route: '/v1/meetings/{meeting}/playbook-results/{playbookRun}',
    within: 'meeting',
    resource: 'playbook_results',
    answer: { placement: 'data' },
    table: 'playbook_results',
    ids: ['id'],
    expected: { 403: 'withheld', 404: 'absent' },
  },
  {
    route: '/v1/playbooks',
    resource: 'playbooks',
    answer: 'any',
    ids: ['id', 'playbook_id'],
    gives: { playbook: ['id', 'playbook_id'] },
  },
  {
    route: '/v1/playbooks/{playbook}',
    resource: 'playbooks',
    answer: { placement: 'data' },
    table: 'playbooks',
    ids: ['id'],
    expected: { 404: 'absent' },
  },
  {
    route: '/v1/playbooks/{playbook}/execution-setting',
    resource: 'playbooks',
    answer: { placement: 'either' },
    expected: { 403: 'absent', 404: 'absent' },
  },
  {
    route: '/v1/bot-definition',
    resource: 'bot_definition',
    answer: { placement: 'data' },
    table: 'bot_definition',
    expected: { 403: 'unavailable', 404: 'unavailable' },
  },
  {
    route: '/v1/settings/integrations',
    resource: 'integrations',
    answer: { placement: 'either' },
    expected: { 403: 'unavailable', 404: 'unavailable' },
  },
]

export interface EndpointAnswer {
  finding: Finding
  reply: ReaderReply<readonly unknown[]> | undefined
}

/** Requests one endpoint after another. @throws StopError when the API refuses the key or does not answer */
export async function* checkEndpoints(api: ApiReader): AsyncGenerator<EndpointAnswer> {
  const known = new Map<string, string>()
  for (const endpoint of ENDPOINTS) {
    const line = createFinder(`GET ${endpoint.route}`)
    const missingId = [...endpoint.route.matchAll(/\{(\w+)\}/g)].find(([, name]) => !known.has(name ?? ''))
    if (missingId) {
      yield {
        finding: line.note('not checked: the lists contain no item whose id could be requested'),
        reply: undefined,
      }
      continue
    }
    const path = fillPath(endpoint.route, Object.fromEntries(known))
    const request = { ...endpoint, path }
    const reply = await api.read(request, value => readItems(endpoint, value))
    yield { finding: replyFinding(endpoint, reply, known.get(endpoint.within ?? '')), reply }
    if (reply.kind !== 'answer') continue
    for (const [name, fields] of Object.entries(endpoint.gives ?? {})) {
      const [id] = reply.value.flatMap(item => keyOf(item, fields) ?? [])
      if (id !== undefined) known.set(name, id)
    }
  }
}

function readItems({ answer, query, ids, table }: Endpoint, value: unknown): readonly unknown[] {
  if (answer === 'data-list') return readDataList(value)
  if (typeof answer === 'string') return readPage(answer, value, query ?? {}).items
  const single = readSingle(value, answer.placement, ids?.[0])
  if (table !== undefined && Array.isArray(single)) {
    throw new RetryError('Expected an object, found a list', { code: 'broken-envelope' })
  }
  return [single]
}

const MEANINGS: Readonly<Record<'absent' | 'withheld' | 'unavailable', string>> = {
  absent: 'not published (allowed)',
  withheld: 'withheld (allowed): visible to its attendees only',
  unavailable: 'not offered to this workspace (allowed)',
}

const REFUSED_HINTS: Readonly<Record<number, string>> = {
  400: 'The API may have changed: install the newest version of parley.',
  403: 'Ask an administrator of the workspace for read access, or leave the resource out with --skip.',
  404: 'Check api.base_url. If the workspace does not offer this, leave the resource out with --skip.',
}

function replyFinding(
  endpoint: Endpoint,
  reply: ReaderReply<readonly unknown[]>,
  owner: string | undefined,
): Finding {
  const line = createFinder(`GET ${endpoint.route}`)
  if (reply.kind === 'answer') return itemsFinding(endpoint, reply.value, owner)
  if (reply.kind === 'failed') {
    const hint =
      reply.hint ??
      'Run parley doctor again later. If the error remains, install the newest version of parley.'
    return line.wrong(reply.message, EXIT_STATUS.apiUnavailable, hint)
  }
  const { status, message } = reply
  const meaning = endpoint.expected?.[status]
  if (meaning) return line.note(`${status}: ${MEANINGS[meaning]}`)
  const hint = REFUSED_HINTS[status] ?? 'Look the status up in the API documentation.'
  return line.wrong(`${status}: ${message}`, EXIT_STATUS.apiUnavailable, hint)
}

/** Checks that the items have an id and fit their table. Findings name fields, never values. */
function itemsFinding(
  { route, table, ids, resource }: Endpoint,
  items: readonly unknown[],
  owner: string | undefined,
): Finding {
  const line = createFinder(`GET ${route}`)
  if (items.length === 0) return line.ok('200, empty')
  if (ids && !items.some(item => keyOf(item, ids) !== undefined)) {
    const hint = `No item could be stored. Install the newest version of parley, or leave ${resource} out with --skip.`
    return line.wrong(`200, but no item has ${ids.join(' or ')}`, EXIT_STATUS.apiUnavailable, hint)
  }
  if (table === undefined) return line.ok('200')
  const unknown = new Set<string>()
  const strange = new Set<string>()
  const parse = compileParser(tableNamed(table))
  for (const item of items) {
    parse(
      item,
      {
        drift: (_table, field, reason) => void (reason === 'unknown field' ? unknown : strange).add(field),
        reject: (_table, _item, reason) => void strange.add(reason),
      },
      owner,
    )
  }
  if (strange.size > 0) {
    const hint = 'These values are stored in _extra. A newer version of parley may have columns for them.'
    return line.warning(`200, unexpected type in: ${[...strange].join(', ')}`, hint)
  }
  if (unknown.size === 0) return line.ok('200')
  return line.note(`200, unknown fields (stored in _extra): ${[...unknown].join(', ')}`)
}
