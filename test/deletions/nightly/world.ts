import {
  type Handler,
  numberedPage,
  refused,
  type ScriptedApi,
  startScriptedApi,
  v1Page,
  v2Page,
} from '../../support/scripted-api.ts'
import { scriptedList } from '../../support/scripted-lists.ts'

export const OBJECTS = ['deal', 'company', 'contact'] as const
const V1_LISTS = ['members', 'teams', 'collections', 'meetings', 'playbooks'] as const
export const LISTS = [...V1_LISTS, 'messages', 'activities', ...OBJECTS] as const

export type ListName = (typeof LISTS)[number]

export interface Row {
  id: string
  [field: string]: unknown
}

/** A small workspace behind a scripted API, which publishes its content. */
export interface World {
  api: ScriptedApi
  rows: Record<ListName, Row[]>
  deleted: { list: ListName; row: Row }[]
  /** Bodies by path. A path without a body answers 404. */
  parts: Map<string, object>
  /** Pairs of ids: deals with companies and contacts, collections with meetings. */
  pairs: Set<string>
  routes: readonly string[]
  /** Gets each request first and may give another answer. */
  instead: (...request: Parameters<Handler>) => ReturnType<Handler> | undefined
}

const HOUR = 3_600_000
const hoursAgo = (hours: number): string => new Date(Date.now() - hours * HOUR).toISOString()

export const idOf = (list: ListName, number: number): string =>
  `00000000-0000-4000-8${String(LISTS.indexOf(list)).padStart(3, '0')}-${String(number).padStart(12, '0')}`

export const pair = (one: string, other: string): string => [one, other].sort().join(' ')

export const linkTo = (number: number): object => ({
  context_type: 'deal',
  context_id: idOf('deal', number),
  origin: 'DIRECT',
})

const record = (object: string): object => ({ object, fields: {}, updated_at: hoursAgo(90) })

/** The first number of rows of each list, and their content. */
const FIRST_ROWS: Readonly<Record<ListName, readonly [count: number, fields: (number: number) => object]>> = {
  members: [4, () => ({ name: 'first' })],
  teams: [3, number => ({ name: 'first', member_ids: [idOf('members', number)] })],
  collections: [3, () => ({ name: 'first' })],
  meetings: [5, number => ({ overview_status: 'COMPLETED', action_items: [{ id: `a${number}` }] })],
  playbooks: [3, number => ({ active: true, talk_points: [{ id: `t${number}` }] })],
  messages: [
    10,
    number => ({
      header_message_id: `<${number}@mail.example.com>`,
      subject: 'first',
      received_at: hoursAgo(3 * number),
      participants: [{ handle: `${number}@mail.example.com`, role: 'FROM' }],
      text: `Body ${number}`,
    }),
  ],
  activities: [
    8,
    number => ({
      type: 'first',
      source_type: 'MEETING',
      source_id: idOf('meetings', number % 5),
      occurred_at: hoursAgo(3 * number + 1),
      links: [linkTo(number % 5)],
    }),
  ],
  deal: [5, () => record('deal')],
  company: [3, () => record('company')],
  contact: [4, () => record('contact')],
}

function firstRows(list: ListName): Row[] {
  const [count, fields] = FIRST_ROWS[list]
  return Array.from({ length: count }, (_, number) => ({ id: idOf(list, number), ...fields(number) }))
}

type MakeBody = (version: string) => object

/** Items with a single read, and their body by version. */
export const PARTS: ReadonlyMap<string, MakeBody> = new Map<string, MakeBody>([
  ...firstRows('meetings').flatMap(({ id }): [string, MakeBody][] => [
    [`/v1/meetings/${id}/transcript`, text => ({ data: [{ text }, { text: 'words' }] })],
    [`/v1/meetings/${id}/playbook-results`, version => ({ data: [{ id: `${id} ${version}` }] })],
  ]),
  ...firstRows('playbooks').map(({ id }): [string, MakeBody] => [
    `/v1/playbooks/${id}/execution-setting`,
    mode => ({ data: { mode } }),
  ]),
  ['/v1/bot-definition', name => ({ data: { name, transcription_hints: [{ hint: name }] } })],
  ['/v1/settings/integrations', crm => ({ data: { crm } })],
  ...OBJECTS.map((name): [string, MakeBody] => [
    `/v2/objects/${name}`,
    label => ({ name, label, fields: [] }),
  ]),
])

export async function startWorld(): Promise<World> {
  const api = await startScriptedApi()
  const state = {
    rows: Object.fromEntries(LISTS.map(list => [list, firstRows(list)])) as World['rows'],
    parts: new Map([...PARTS].map(([path, make]) => [path, make('first')])),
    pairs: new Set(firstRows('deal').map(({ id }, number) => pair(id, idOf('company', number % 3)))),
  }
  const handlers = handlersOf(state)
  const world: World = { api, ...state, deleted: [], routes: Object.keys(handlers), instead: () => undefined }
  for (const [route, handler] of Object.entries(handlers)) {
    api.on(route, request => world.instead(request) ?? handler(request))
  }
  return world
}

function handlersOf({
  rows,
  parts,
  pairs,
}: Pick<World, 'rows' | 'parts' | 'pairs'>): Record<string, Handler> {
  const body: Handler = ({ path }) => (parts.has(path) ? { body: parts.get(path) } : refused(404))
  const single =
    (list: ListName, answer: (row: Row, ...request: Parameters<Handler>) => ReturnType<Handler>): Handler =>
    request => {
      const row = rows[list].find(({ id }) => id === request.params[0])
      if (!row) return refused(404)
      return row['withheld'] ? refused(403) : answer(row, request)
    }
  const timed = (list: ListName, field: string, shown: (row: Row) => Row[]): Handler => {
    const bounds = { time: `${field}_at`, from: `${field}_from`, to: `${field}_to` }
    const pages = scriptedList<Row>({ rows: [], ...bounds, pageSize: 4 })
    return request => {
      pages.rows = rows[list].flatMap(shown)
      return pages.handler(request)
    }
  }
  const whole = (row: Row) => ({ body: { data: row } })
  const objects = () => OBJECTS.filter(name => parts.has(`/v2/objects/${name}`))
  return {
    '/v1/members': () => numberedPage(rows.members),
    '/v1/teams': () => numberedPage(rows.teams),
    '/v1/teams/{id}': single('teams', whole),
    '/v1/collections': () => v1Page(rows.collections),
    '/v1/collections/{id}': single('collections', whole),
    '/v1/meetings': ({ query: { collection_id: collection } }) => {
      const open = rows.meetings.filter(({ withheld }) => !withheld)
      const listed = open.filter(({ id }) => collection === undefined || pairs.has(pair(collection, id)))
      return v1Page(listed.map(({ id }) => ({ meeting_id: id })))
    },
    '/v1/meetings/{id}': single('meetings', ({ id, withheld: _, ...meeting }) =>
      whole({ id, meeting_id: id, ...meeting }),
    ),
    '/v1/meetings/{id}/transcript': single('meetings', (_, request) => body(request)),
    '/v1/meetings/{id}/playbook-results': single('meetings', (meeting, request) =>
      meeting['overview_status'] === 'COMPLETED' ? body(request) : refused(404),
    ),
    '/v1/playbooks': () => v1Page(rows.playbooks.filter(({ active }) => active).map(({ id }) => ({ id }))),
    '/v1/playbooks/{id}': single('playbooks', whole),
    '/v1/playbooks/{id}/execution-setting': body,
    '/v1/bot-definition': body,
    '/v1/settings/integrations': body,
    '/v2/activities': timed('activities', 'occurred', row => (isLinked(row['links']) ? [row] : [])),
    '/v2/activities/{id}': single('activities', whole),
    '/v2/messages': timed('messages', 'received', ({ text: _, ...row }) => [row]),
    '/v2/messages/{id}': single('messages', body => ({ body })),
    '/v2/objects': () => ({ body: { data: objects().map(name => ({ name })) } }),
    '/v2/objects/{object}': body,
    '/v2/objects/{object}/records': ({ params: [object], query: { ids, related_id: related } }) => {
      const name = objects().find(name => name === object)
      if (name === undefined) return refused(404)
      const asked = rows[name].filter(({ id }) => ids === undefined || ids.split(',').includes(id))
      return v2Page(asked.filter(({ id }) => related === undefined || pairs.has(pair(id, related))))
    },
  }
}

export const isLinked = (links: unknown): boolean => Array.isArray(links) && links.length > 0
