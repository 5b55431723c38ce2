/**
 * Reads which rows a webhook of the product is about. The sender is not trusted, and the API's description does not
 * give the envelope (section Events). So any JSON is accepted, nothing in it is stored, and all work on it is bounded.
 */

/** The rows and lists that a webhook suggests to read now. */
export interface Nudge {
  kind: NudgeKind
  /** Ids as sent: 1 to 200 printable ASCII characters, no duplicates, at most 100 in all three lists together. */
  meetings: string[]
  playbooks: string[]
  /** `object` in lower case, such as `deal`. */
  records: { object: string; id: string }[]
  /** Whether the activities may have changed. */
  activities: boolean
}

/** The API's description names four kinds, and the family `record.activity_link.*` without its members. */
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
  /** Matches with and without `.beta`, since the API may drop the suffix. */
  pattern: RegExp
  activities: boolean
  /** What a plain `id` field in the envelope's payload identifies. */
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

/** Fields that may hold the kind, at the top or in one of the fields that may hold the payload. */
const KIND_FIELDS = ['type', 'event', 'event_type', 'event_name', 'name', 'kind', 'topic', 'eventType']
const PAYLOAD_NAMES = ['data', 'payload', 'event', 'object', 'resource']

type Thing = 'meeting' | 'playbook' | 'activity' | 'company' | 'contact' | 'deal' | 'other'

/** Names of things, singular and plural, as they occur in field names and in values of `…_type`. */
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

/** `meeting_id`, `meeting_ids` and so on. A map, since a pattern would scan names that may be as long as the body. */
const ID_FIELDS: ReadonlyMap<string, Thing> = new Map(
  [...THINGS].flatMap(([name, thing]) => [`${name}_id`, `${name}_ids`].map(field => [field, thing] as const)),
)

/**
 * Pairs of an id field and the field with its type. `record_id` with `record_object_type` is not one of them: it is an
 * id of the CRM behind the product, and the API cannot look it up.
 */
const PAIRS = [
  ['object_id', 'object_type'],
  ['context_id', 'context_type'],
  ['source_id', 'source_type'],
  ['record_id', 'record_type'],
  ['record_id', 'object'],
  ['id', 'object'],
] as const

const MAX_IDS = 100
const MAX_NODES = 5_000
const MAX_DEPTH = 10
const ID = /^[\x21-\x7e]{1,200}$/
const OBJECT = /^[a-z][a-z0-9_-]{0,99}$/

/** Never throws, whatever the JSON is. Walks breadth-first, so that ids near the top win when there are too many. */
export function readNudge(body: unknown): Nudge {
  const rule = findRule(body)
  const found = createFindings(rule.activities)
  const nodes: Node[] = [{ value: body, name: '', depth: 0 }]
  for (let at = 0; at < nodes.length && !found.isFull(); at += 1) {
    const node = nodes[at]
    if (node !== undefined) visitNode(node, rule, nodes, found)
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
  /** Name of the field that holds the value. The items of a list have the name of the list. */
  name: string
  depth: number
}

/** Collects the ids of one node and appends its children to `nodes`, up to the limits. */
function visitNode({ value, name, depth }: Node, rule: KindRule, nodes: Node[], found: Findings): void {
  const add = (child: unknown, childName: string) => {
    if (depth < MAX_DEPTH && nodes.length < MAX_NODES)
      nodes.push({ value: child, name: childName, depth: depth + 1 })
  }
  if (typeof value === 'string') {
    const thing = ID_FIELDS.get(name)
    if (thing !== undefined) found.add(thing, value)
  } else if (Array.isArray(value)) {
    for (const item of value.slice(0, MAX_NODES)) add(item, name)
  } else if (isObject(value)) {
    const fields = Object.entries(value).map(([key, child]) => [snakeCase(key), child] as const)
    for (const [key, child] of fields) add(child, key)
    visitFields(new Map(fields), { name, isTop: depth === 0 }, rule, found)
  }
}

/** Collects the ids whose type is given by another field, or by the name of the field that holds the object. */
function visitFields(
  fields: ReadonlyMap<string, unknown>,
  { name, isTop }: { name: string; isTop: boolean },
  rule: KindRule,
  found: Findings,
): void {
  for (const [idField, typeField] of PAIRS) {
    const type = fields.get(typeField)
    // An `id` at the top is the id of the webhook itself.
    if (typeof type === 'string' && !(isTop && idField === 'id')) found.addTyped(type, fields.get(idField))
  }
  const thing = THINGS.get(name) ?? (PAYLOAD_NAMES.includes(name) ? rule.payload : undefined)
  if (thing !== undefined) found.add(thing, fields.get('id'))
}

/** `meetingId` becomes `meeting_id`. */
const snakeCase = (name: string): string =>
  name.replace(/[a-z0-9][A-Z]/g, ([before, capital]) => `${before}_${capital}`).toLowerCase()

interface Findings {
  add(thing: Thing, id: unknown): void
  addTyped(type: string, id: unknown): void
  isFull(): boolean
  all(): Omit<Nudge, 'kind'>
}

function createFindings(initialActivities: boolean): Findings {
  const meetings = new Set<string>()
  const playbooks = new Set<string>()
  const records = new Map<string, { object: string; id: string }>()
  let activities = initialActivities
  const full = () => meetings.size + playbooks.size + records.size >= MAX_IDS
  const addRecord = (object: string, id: string) => records.set(`${object} ${id}`, { object, id })
  const adders: Readonly<Record<Thing, (id: string) => unknown>> = {
    meeting: id => meetings.add(id),
    playbook: id => playbooks.add(id),
    activity: () => {
      activities = true
    },
    company: id => addRecord('company', id),
    contact: id => addRecord('contact', id),
    deal: id => addRecord('deal', id),
    other: () => undefined,
  }
  const isId = (id: unknown): id is string => typeof id === 'string' && ID.test(id) && !full()
  return {
    add: (thing, id) => {
      if (isId(id)) adders[thing](id)
    },
    addTyped: (type, id) => {
      const object = type.toLowerCase()
      const thing = THINGS.get(object)
      if (!isId(id)) return
      if (thing !== undefined) adders[thing](id)
      else if (OBJECT.test(object)) addRecord(object, id)
    },
    isFull: full,
    all: () => ({
      meetings: [...meetings],
      playbooks: [...playbooks],
      records: [...records.values()],
      activities,
    }),
  }
}
