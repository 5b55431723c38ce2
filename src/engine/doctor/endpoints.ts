import type { Asker, Reply } from '../../api/ask.ts'
import { type PagingStyle, readDataList, readPage, readSingle } from '../../api/paging.ts'
import { fillPath } from '../../api/request.ts'
import { tableNamed } from '../../catalog.ts'
import { EXIT_STATUS, RetryError } from '../../errors.ts'
import type { Expected, ResourceName } from '../../resource.ts'
import { compileParser } from '../parse.ts'
import { keyOf } from '../snapshot.ts'
import { type Finding, finder } from './check.ts'

/** One cheap request to every endpoint of the API's description, in an order in which lists give ids to reads. */

export interface Endpoint {
  route: string
  resource: ResourceName
  query?: Readonly<Record<string, string>>
  answer: PagingStyle | { placement: 'bare' | 'data' | 'either' }
  /** The table that the answer's items are to fit. */
  table?: string
  /** What in the route the items repeat or belong to. */
  within?: string
  /** Fields that may hold an item's id; the first that there is counts. */
  ids?: readonly string[]
  /** What the id of the first item, or a field of it, fills in later routes. */
  gives?: Readonly<Record<string, readonly string[]>>
  /** What a refusal means here. */
  expected?: Expected
}

const ONE = { limit: '1' }

/** The spec's Endpoints; the access log has checks of its own. */
export const ENDPOINTS: readonly Endpoint[] = [
  { route: '/v1/members', resource: 'members', query: ONE, answer: 'v1-page', table: 'members', ids: ['id'] },
  {
    route: '/v1/teams',
    resource: 'teams',
    query: ONE,
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
    query: ONE,
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
    query: ONE,
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
    query: ONE,
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
    query: ONE,
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
  reply: Reply<readonly unknown[]> | undefined
}

/** Asks one after another. @throws StopError when the key is refused or nothing answers */
export async function* checkEndpoints(asker: Asker): AsyncGenerator<EndpointAnswer> {
  const known = new Map<string, string>()
  for (const endpoint of ENDPOINTS) {
    const line = finder(`GET ${endpoint.route}`)
    const lacking = [...endpoint.route.matchAll(/\{(\w+)\}/g)].find(([, name]) => !known.has(name ?? ''))
    if (lacking) {
      yield {
        finding: line.note('not tried: nothing was listed whose id could be asked for'),
        reply: undefined,
      }
      continue
    }
    const path = fillPath(endpoint.route, Object.fromEntries(known))
    const request = { ...endpoint, path }
    const reply = await asker.ask(request, value => readItems(endpoint, value))
    yield { finding: judge(endpoint, reply, known.get(endpoint.within ?? '')), reply }
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
  withheld: 'withheld (allowed): open to its attendees only',
  unavailable: 'not offered to this workspace (allowed)',
}

const REFUSED_HINTS: Readonly<Record<number, string>> = {
  400: 'The API may have changed: look for a newer version of parley.',
  403: 'Ask the administrators of the workspace what the key may read, or leave the resource out with --skip.',
  404: 'Check api.base_url; the API may not offer this here, then leave the resource out with --skip.',
}

function judge(endpoint: Endpoint, reply: Reply<readonly unknown[]>, owner: string | undefined): Finding {
  const line = finder(`GET ${endpoint.route}`)
  if (reply.kind === 'answer') return judgeItems(endpoint, reply.value, owner)
  if (reply.kind === 'failed') {
    const hint = reply.hint ?? 'Run it again later; if it stays so, look for a newer version of parley.'
    return line.wrong(reply.message, EXIT_STATUS.apiUnavailable, hint)
  }
  const { status, message } = reply
  const meaning = endpoint.expected?.[status]
  if (meaning) return line.note(`${status}: ${MEANINGS[meaning]}`)
  const hint = REFUSED_HINTS[status] ?? 'See the API description for what this status means.'
  return line.wrong(`${status}: ${message}`, EXIT_STATUS.apiUnavailable, hint)
}

/** Whether the items have an identity and fit their table. Fields are named, values never. */
function judgeItems(
  { route, table, ids, resource }: Endpoint,
  items: readonly unknown[],
  owner: string | undefined,
): Finding {
  const line = finder(`GET ${route}`)
  if (items.length === 0) return line.ok('200, nothing in it')
  if (ids && !items.some(item => keyOf(item, ids) !== undefined)) {
    const hint = `Nothing of it could be stored: look for a newer version of parley, or leave ${resource} out with --skip.`
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
    const hint = 'These values are kept in _extra; a newer version of parley may know them.'
    return line.warning(`200, with an unexpected type in: ${[...strange].join(', ')}`, hint)
  }
  if (unknown.size === 0) return line.ok('200')
  return line.note(`200, with fields that parley does not know: ${[...unknown].join(', ')} (kept in _extra)`)
}
