/**
 * Finds the rows that a webhook of the product is about. The API's description (section Events) does not specify the
 * body, and the sender is not trusted. So any JSON is accepted, nothing in it is stored, and the work on it is limited.
 * A webhook only decides what is read from the API next: daemon/webhook-reads.ts. A thing is what an id in the body
 * names, such as a meeting.
 */

/** The rows and lists to read now because of a webhook. */
export interface Nudge {
  kind: NudgeKind
  /** Ids as sent: 1 to 200 printable ASCII characters, no duplicates, at most 100 in all three lists together. */
  meetings: string[]
  playbooks: string[]
  /** `object` in lower case, such as `deal`. */
  records: Thing[]
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

/** Fields that may hold the payload. */
const PAYLOAD_FIELDS = ['data', 'payload', 'event', 'object', 'resource']

const ACTIVITY_NAMES = ['activity', 'message', 'object_change_event']
/** Kinds of things whose ids in a webhook are ignored. */
const IGNORED_NAMES = ['member', 'user', 'team', 'collection', 'workspace', 'event', 'webhook']
/** Things that a field's name may contain, in singular or plural. A type field may name any other thing as well. */
const KNOWN_NAMES = new Set([
  ...['meeting', 'playbook', 'company', 'contact', 'deal'],
  ...ACTIVITY_NAMES,
  ...IGNORED_NAMES,
])

const MAX_IDS = 100
const MAX_NODES = 5_000
const MAX_DEPTH = 10
const ID = /^[\x21-\x7e]{1,200}$/
const NAME = /^[a-z][a-z0-9_-]{0,99}$/

/** Never throws, whatever the JSON is. Walks breadth-first, so that ids near the top win when there are too many. */
export function readNudge(body: unknown): Nudge {
  const kind = kindOf(body)
  const found = new Map<string, Thing>()
  const nodes: Node[] = [{ value: body, name: '', depth: 0 }]
  for (const node of nodes) {
    for (const thing of thingsIn(node, kind)) {
      if (found.size < MAX_IDS) found.set(`${thing.object} ${thing.id}`, thing)
    }
    const children = node.depth + 1 < MAX_DEPTH ? fieldsOf(node) : []
    for (const [name, value] of children.slice(0, MAX_NODES - nodes.length)) {
      nodes.push({ value, name, depth: node.depth + 1 })
    }
  }
  const things = [...found.values()]
  const idsOf = (name: string) => things.flatMap(({ object, id }) => (object === name ? [id] : []))
  return {
    kind,
    meetings: idsOf('meeting'),
    playbooks: idsOf('playbook'),
    records: things.filter(({ object }) => !['meeting', 'playbook', ...ACTIVITY_NAMES].includes(object)),
    activities: /^(meeting|record)\./.test(kind) || ACTIVITY_NAMES.some(name => idsOf(name).length > 0),
  }
}

/** The kind of a webhook. Any field at the top or of the payload may hold it. */
function kindOf(body: unknown): NudgeKind {
  const top = entriesOf(body)
  const payloads = top.flatMap(([name, value]) => (PAYLOAD_FIELDS.includes(name) ? entriesOf(value) : []))
  for (const [, value] of [...top, ...payloads]) {
    if (typeof value !== 'string') continue
    if (value.startsWith('record.activity_link.')) return 'record.activity_link.*'
    // The API may drop the suffix `.beta`.
    const kind = NUDGE_KINDS.find(known => known === value || known === `${value}.beta`)
    if (kind !== undefined) return kind
  }
  return 'unknown'
}

interface Thing {
  /** `meeting`, or the name of another thing in the singular and lower case. */
  object: string
  id: string
}

interface Node {
  value: unknown
  /** Name of the field that holds the value. The items of a list have the name of the list. */
  name: string
  depth: number
}

const entriesOf = (value: unknown): [name: string, value: unknown][] =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : []

function fieldsOf({ value, name }: Node): [name: string, value: unknown][] {
  if (Array.isArray(value)) return value.map(item => [name, item])
  return entriesOf(value).map(([field, inner]) => [snakeCase(field), inner])
}

/** `meetingId` becomes `meeting_id`. */
const snakeCase = (name: string): string =>
  name.replace(/[a-z0-9][A-Z]/g, ([before, capital]) => `${before}_${capital}`).toLowerCase()

/**
 * The things that an object's own fields name. The kind of a thing is in the name of the id's field (`meeting_id`), in
 * a type field next to it (`context_type`), or in the name of the field that holds the object (`"meeting": {"id": …}`).
 * `record_id` with `record_object_type` does not count: the API cannot look up an id of the CRM behind the product.
 */
function thingsIn(node: Node, kind: NudgeKind): Thing[] {
  const fields = new Map(Array.isArray(node.value) ? [] : fieldsOf(node))
  const named = [...fields].flatMap(([field, ids]) => {
    const [, name] = /^(.*)_ids?$/.exec(field) ?? []
    if (name === undefined) return []
    const type = fields.get(`${name}_type`) ?? (name === 'record' ? fields.get('object') : undefined)
    return thingsOf(knownName(name) ?? type, ids)
  })
  // An `id` at the top is the id of the webhook itself.
  if (node.depth === 0) return named
  const payload = PAYLOAD_FIELDS.includes(node.name) && kind.startsWith('meeting.') ? 'meeting' : undefined
  const types = [fields.get('object'), knownName(node.name) ?? payload]
  return [...named, ...types.flatMap(type => thingsOf(type, fields.get('id')))]
}

/** @param ids an id or a list of ids */
function thingsOf(type: unknown, ids: unknown): Thing[] {
  if (typeof type !== 'string') return []
  const object = knownName(type.toLowerCase()) ?? type.toLowerCase()
  if (!NAME.test(object) || IGNORED_NAMES.includes(object)) return []
  return [ids].flat().flatMap(id => (typeof id === 'string' && ID.test(id) ? [{ object, id }] : []))
}

function knownName(name: string): string | undefined {
  const singulars = [name, name.replace(/s$/, ''), name.replace(/ies$/, 'y')]
  return singulars.find(singular => KNOWN_NAMES.has(singular))
}
