/**
 * Reads a webhook of the product for what it hints at. It comes from a stranger and its envelope is not described
 * (specification: Events), so nothing is expected of its shape, nothing in it is data, and all work on it is bounded.
 */

/** What a webhook says is worth reading now. */
export interface Nudge {
  kind: NudgeKind
  /** Ids as they stood there: 1 to 200 printable ASCII characters, none twice, at most 100 in all three lists together. */
  meetings: string[]
  playbooks: string[]
  /** `object` in lower case, such as `deal`. */
  records: { object: string; id: string }[]
  /** Whether the activities may have changed. */
  activities: boolean
}

/** The specification names four kinds and the family `record.activity_link.*`, but none of its members. */
export const NUDGE_KINDS = [
  'meeting.completed.beta',
  'playbook.generated.beta',
  'playbook.updated.beta',
  'meeting.crm_integrations.created.beta',
  'record.activity_link.*',
  'unknown',
] as const

export type NudgeKind = (typeof NUDGE_KINDS)[number]

interface KindRule {
  kind: NudgeKind
  /** Also without the suffix of the beta, which is to end some day. */
  pattern: RegExp
  activities: boolean
  /** What a bare `id` in the envelope's payload is the id of. */
  payload?: Thing
}

const KIND_RULES: readonly KindRule[] = [
  {
    kind: 'meeting.completed.beta',
    pattern: /^meeting\.completed(\.beta)?$/,
    activities: true,
    payload: 'meeting',
  },
  { kind: 'playbook.generated.beta', pattern: /^playbook\.generated(\.beta)?$/, activities: false },
  { kind: 'playbook.updated.beta', pattern: /^playbook\.updated(\.beta)?$/, activities: false },
  {
    kind: 'meeting.crm_integrations.created.beta',
    pattern: /^meeting\.crm_integrations\.created(\.beta)?$/,
    activities: true,
    payload: 'meeting',
  },
  { kind: 'record.activity_link.*', pattern: /^record\.activity_link\../, activities: true },
]
const UNKNOWN: KindRule = { kind: 'unknown', pattern: /^/, activities: false }

/** Where the kind may stand: in these fields, at the top or in one of the payload's places. */
const KIND_FIELDS = ['type', 'event', 'event_type', 'event_name', 'name', 'kind', 'topic', 'eventType']
const PAYLOAD_NAMES = ['data', 'payload', 'event', 'object', 'resource']

type Thing = 'meeting' | 'playbook' | 'activity' | 'company' | 'contact' | 'deal' | 'other'

/** Names of things in the singular and the plural, as they stand in field names and as values of `…_type`. */
const THINGS: ReadonlyMap<string, Thing> = new Map<string, Thing>([
  ['meeting', 'meeting'],
  ['meetings', 'meeting'],
  ['playbook', 'playbook'],
  ['playbooks', 'playbook'],
  ['activity', 'activity'],
  ['activities', 'activity'],
  ['message', 'activity'],
  ['messages', 'activity'],
  ['object_change_event', 'activity'],
  ['company', 'company'],
  ['companies', 'company'],
  ['contact', 'contact'],
  ['contacts', 'contact'],
  ['deal', 'deal'],
  ['deals', 'deal'],
  ...['member', 'user', 'team', 'collection', 'workspace', 'event', 'webhook'].map(
    name => [name, 'other'] as const,
  ),
])

/** `meeting_id` and `meeting_ids`, and so for every other. A table, since a name may be as long as the body. */
const ID_FIELDS: ReadonlyMap<string, Thing> = new Map(
  [...THINGS].flatMap(([name, thing]) => [`${name}_id`, `${name}_ids`].map(field => [field, thing] as const)),
)

/**
 * An id beside the field that says what it is of. `record_id` with `record_object_type` is none of them: it is an id
 * of the CRM behind the product, which the API does not know.
 */
const PAIRS = [
  ['object_id', 'object_type'],
  ['context_id', 'context_type'],
  ['source_id', 'source_type'],
  ['record_id', 'record_type'],
  ['record_id', 'object'],
  ['id', 'object'],
] as const

const MOST_IDS = 100
const MOST_NODES = 5_000
const MOST_DEPTH = 10
const ID = /^[\x21-\x7e]{1,200}$/
const OBJECT = /^[a-z][a-z0-9_-]{0,99}$/

/** Never throws, whatever the JSON is. The ids that stand nearest to the top are taken first. */
export function readNudge(body: unknown): Nudge {
  const rule = findRule(body)
  const found = createFindings(rule.activities)
  const nodes: Node[] = [{ value: body, name: '', depth: 0 }]
  for (let at = 0; at < nodes.length && !found.full(); at += 1) {
    const node = nodes[at]
    if (node !== undefined) look(node, rule, nodes, found)
  }
  return { kind: rule.kind, ...found.all() }
}

function findRule(body: unknown): KindRule {
  const places = [body, ...PAYLOAD_NAMES.map(name => fieldOf(body, name))]
  const names = places.flatMap(place => KIND_FIELDS.map(name => fieldOf(place, name)))
  const matching = (name: unknown) =>
    KIND_RULES.find(({ pattern }) => typeof name === 'string' && pattern.test(name))
  return names.map(matching).find(rule => rule !== undefined) ?? UNKNOWN
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const fieldOf = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined)

interface Node {
  value: unknown
  /** Of the field in which it stands; the items of a list have the name of the list. */
  name: string
  depth: number
}

/** Takes the ids of one node and puts what is in it at the end of the nodes, as far as these may grow. */
function look({ value, name, depth }: Node, rule: KindRule, nodes: Node[], found: Findings): void {
  const add = (child: unknown, childName: string) => {
    if (depth < MOST_DEPTH && nodes.length < MOST_NODES)
      nodes.push({ value: child, name: childName, depth: depth + 1 })
  }
  if (typeof value === 'string') {
    const thing = ID_FIELDS.get(name)
    if (thing !== undefined) found.note(thing, value)
  } else if (Array.isArray(value)) {
    for (const item of value.slice(0, MOST_NODES)) add(item, name)
  } else if (isObject(value)) {
    const fields = Object.entries(value).map(([key, child]) => [snakeCase(key), child] as const)
    for (const [key, child] of fields) add(child, key)
    lookTogether(new Map(fields), { name, isTop: depth === 0 }, rule, found)
  }
}

/** Takes the ids that say what they are of only together with another field or with where they stand. */
function lookTogether(
  fields: ReadonlyMap<string, unknown>,
  { name, isTop }: { name: string; isTop: boolean },
  rule: KindRule,
  found: Findings,
): void {
  for (const [idField, typeField] of PAIRS) {
    const type = fields.get(typeField)
    // At the top it is the id of the webhook itself.
    if (typeof type === 'string' && !(isTop && idField === 'id')) found.noteTyped(type, fields.get(idField))
  }
  const thing = THINGS.get(name) ?? (PAYLOAD_NAMES.includes(name) ? rule.payload : undefined)
  if (thing !== undefined) found.note(thing, fields.get('id'))
}

/** `meetingId` is `meeting_id`. */
const snakeCase = (name: string): string =>
  name.replace(/[a-z0-9][A-Z]/g, ([before, capital]) => `${before}_${capital}`).toLowerCase()

interface Findings {
  note(thing: Thing, id: unknown): void
  noteTyped(type: string, id: unknown): void
  full(): boolean
  all(): Omit<Nudge, 'kind'>
}

function createFindings(activitiesToBeginWith: boolean): Findings {
  const meetings = new Set<string>()
  const playbooks = new Set<string>()
  const records = new Map<string, { object: string; id: string }>()
  let activities = activitiesToBeginWith
  const full = () => meetings.size + playbooks.size + records.size >= MOST_IDS
  const noteRecord = (object: string, id: string) => records.set(`${object} ${id}`, { object, id })
  const takers: Readonly<Record<Thing, (id: string) => unknown>> = {
    meeting: id => meetings.add(id),
    playbook: id => playbooks.add(id),
    activity: () => {
      activities = true
    },
    company: id => noteRecord('company', id),
    contact: id => noteRecord('contact', id),
    deal: id => noteRecord('deal', id),
    other: () => undefined,
  }
  const isId = (id: unknown): id is string => typeof id === 'string' && ID.test(id) && !full()
  return {
    note: (thing, id) => {
      if (isId(id)) takers[thing](id)
    },
    noteTyped: (type, id) => {
      const object = type.toLowerCase()
      const thing = THINGS.get(object)
      if (!isId(id)) return
      if (thing !== undefined) takers[thing](id)
      else if (OBJECT.test(object)) noteRecord(object, id)
    },
    full,
    all: () => ({
      meetings: [...meetings],
      playbooks: [...playbooks],
      records: [...records.values()],
      activities,
    }),
  }
}
