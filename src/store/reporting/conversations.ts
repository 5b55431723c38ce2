import type { Prepare } from '../database/sqlite-types.ts'
import { createDerivedRows, type Deriving, listsBy, msOf, rowsFor } from './derivation.ts'
import type { Side } from './sides.ts'

/**
 * Derives conversations, the people who take part in them, and the CRM records that they belong to. A function follows
 * keys: it computes what is derived from the rows with these keys again.
 */

/** Stands for an unknown time, before every other time. */
const NO_TIME = -1e15

export const ROLES = { FROM: 1, TO: 2, CC: 3, BCC: 4, OWNER: 5, ATTENDEE: 6, SPEAKER: 7 } as const

/** How a conversation belongs to a record. The greatest value is the strongest. */
export const HOW = { participant: 1, derived: 2, related: 3, direct: 4 } as const

interface SourceConversation {
  id: string
  happenedAt: string | null
  title: string | null
  isGroup: number | null
  isReadable: number | null
  minutes: number | null
}

interface SourcePerson {
  id: string
  role: number
  address: string | null
  isNamed: number
  isInternal: number | null
  /** 1 when the person wrote the e-mail or spoke in the meeting. */
  hasSaid: number
  contact: string | null
}

interface SourceSpeaker {
  /** Id of the meeting. */
  id: string
  position: number
  hasSaid: number
}

const MAILS = `SELECT m.header_message_id AS id, m.received_at AS happenedAt, nullif(m.subject, '') AS title, m.is_group_email AS isGroup,
    CASE m.text_state WHEN 'present' THEN 1 WHEN 'pending' THEN NULL ELSE 0 END AS isReadable, NULL AS minutes
  FROM json_each(:keys) k CROSS JOIN messages m ON m.header_message_id = k.value AND m._deleted_at IS NULL`
const MAIL_ROLE = `CASE p.role ${(['FROM', 'TO', 'CC', 'BCC'] as const)
  .map(role => `WHEN '${role}' THEN ${ROLES[role]}`)
  .join(' ')} END`
const MAIL_PEOPLE = `SELECT p.header_message_id AS id, ${MAIL_ROLE} AS role, lower(trim(p.handle)) AS address,
    trim(coalesce(p.display_name, '')) <> '' AS isNamed, NULL AS isInternal, p.role = 'FROM' AS hasSaid,
    nullif(p.contact_id, '') AS contact
  FROM json_each(:keys) k CROSS JOIN message_participants p ON p.header_message_id = k.value`

/** SQL for whether the speaker `s` has spoken. A speaker without a share has: only the share is not known. */
const HAS_SPOKEN = '(s.speaker_ratio IS NULL OR s.speaker_ratio > 0)'

/** A meeting without a time, such as one withheld from the first read on, gets the time of its activity. */
const MEETINGS = `SELECT m.id, coalesce(m.start_time, (SELECT min(a.occurred_at) FROM activities a
      WHERE a.source_id = m.id AND a.source_type = 'MEETING' AND a._deleted_at IS NULL)) AS happenedAt, CASE WHEN m.access IS NOT 'withheld' THEN nullif(m.title, '') END AS title, 0 AS isGroup,
    CASE m.access WHEN 'open' THEN 1 WHEN 'withheld' THEN 0 END AS isReadable,
    CAST(round(CASE WHEN m.end_time >= m.start_time THEN round((julianday(m.end_time) - julianday(m.start_time)) * 86400) END / 60) AS INTEGER) AS minutes
  FROM json_each(:keys) k CROSS JOIN meetings m ON m.id = k.value AND m._deleted_at IS NULL`
const MEETING_PEOPLE = `SELECT m.id, ${ROLES.OWNER} AS role, lower(trim(m.owner_email)) AS address,
    trim(coalesce(m.owner_name, '')) <> '' AS isNamed, NULL AS isInternal, ${hasSpoken('m.id', 'm.owner_name')} AS hasSaid, NULL AS contact
  FROM json_each(:keys) k CROSS JOIN meetings m ON m.id = k.value
  UNION ALL SELECT a.meeting_id, ${ROLES.ATTENDEE}, lower(trim(a.email)), trim(coalesce(a.name, '')) <> '',
    CASE WHEN a.is_workspace_member = 1 THEN 1 ELSE a.is_internal END, ${hasSpoken('a.meeting_id', 'a.name')}, nullif(a.contact_id, '')
  FROM json_each(:keys) k CROSS JOIN meetings m ON m.id = k.value AND m.access IS NOT 'withheld'
  CROSS JOIN meeting_attendees a ON a.meeting_id = m.id`

/**
 * SQL for the address of the owner or attendee of a meeting with this name. NULL when there is none, 0 when the ones with
 * this name have no address, and '' when several with this name have different addresses. Of several addresses that one
 * member has or had, the greatest counts.
 */
export function addressNamed(meeting: string, name: string): string {
  return `(SELECT CASE WHEN n.many > 1 AND NOT EXISTS (
      SELECT 1 FROM member_versions v JOIN json_each(n.addresses) a ON a.value = lower(trim(v.email))
      GROUP BY v.member_id HAVING count(DISTINCT a.value) = n.many) THEN '' ELSE n.greatest END
    FROM (SELECT count(who) AS many, max(who) AS greatest, json_group_array(who) AS addresses FROM (
      SELECT coalesce(nullif(lower(trim(b.email)), ''), 0) AS who FROM meeting_attendees b
        WHERE b.meeting_id = ${meeting} AND b.name = ${name}
      UNION SELECT nullif(lower(trim(o.owner_email)), '') FROM meetings o WHERE o.id = ${meeting} AND o.owner_name = ${name})) n)`
}

/** Speakers who are matched to no address: their name is that of several people or of no one, or has no address. */
const SPEAKERS = `SELECT m.id, s.position, ${HAS_SPOKEN} AS hasSaid
  FROM json_each(:keys) k CROSS JOIN meetings m ON m.id = k.value AND m.access = 'open'
  CROSS JOIN meeting_speakers s ON s.meeting_id = m.id
  WHERE coalesce(${addressNamed('s.meeting_id', 's.speaker_name')}, '') IN ('', 0)`

/** Speakers have negative numbers in place of the internal numbers of people. */
const speakerNumber = (position: number): number => -1 - position

/** SQL for the position of the speaker whose number is in the column. */
export const positionOf = (column: string): string => `-1 - ${column}`

/** SQL for whether the person has spoken: 0 where a speaker's name is that of several people. */
function hasSpoken(meeting: string, name: string): string {
  return `EXISTS (SELECT 1 FROM meeting_speakers s WHERE s.meeting_id = ${meeting} AND s.speaker_name = ${name} AND ${HAS_SPOKEN}
    AND ${addressNamed(meeting, name)} IS NOT '')`
}

const SOURCES = {
  mail: { rows: MAILS, people: MAIL_PEOPLE },
  meeting: { rows: MEETINGS, people: MEETING_PEOPLE },
} as const

const BASE_COLUMNS = [
  ...(['kind', 'conversation_id', 'happened_at', 'day', 'local_hour', 'title', 'is_group_email'] as const),
  ...(['is_readable', 'minutes'] as const),
]

/** Follows e-mails or meetings: derives their own columns, and the people who take part. */
export function createConversations(kind: 'mail' | 'meeting', derivation: Deriving) {
  const { prepare, waiting, time, localHour } = derivation
  const conversations = createDerivedRows(prepare, {
    table: 'conversations',
    columns: BASE_COLUMNS,
    key: ['kind', 'conversation_id'],
    scope: 'conversation_id',
    where: `t.kind = '${kind}'`,
  })
  const takingPart = createDerivedRows(prepare, {
    table: '_conversation_people',
    columns: [
      'conversation',
      'person',
      'role',
      'happened_ms',
      'is_named',
      'is_internal',
      'has_said',
      'contact',
    ],
    key: ['conversation', 'person', 'role'],
    scope: 'conversation',
  })
  const stored = `SELECT c._id AS number, c.conversation_id AS id, c._thread AS thread
    FROM json_each(:keys) k CROSS JOIN conversations c ON c.kind = '${kind}' AND c.conversation_id = k.value`
  const forget = createForget(derivation)
  const personNumbers = createNumbers(prepare, 'person')
  const recordNumbers = createNumbers(prepare, 'record')
  return (ids: readonly string[]) => {
    const sources = rowsFor<SourceConversation>(prepare, SOURCES[kind].rows, ids)
    const people = listsBy(rowsFor<SourcePerson>(prepare, SOURCES[kind].people, ids), ({ id }) => id)
    const speakers = kind === 'mail' ? [] : rowsFor<SourceSpeaker>(prepare, SPEAKERS, ids)
    const storedRows = (of: readonly string[]) =>
      rowsFor<{ number: number; id: string; thread: number | null }>(prepare, stored, of)
    const live = sources.map(({ id }) => id)
    const isLive = new Set(live)
    for (const { number, id, thread } of storedRows(ids)) if (!isLive.has(id)) forget(number, thread)
    const { come } = conversations.replace(
      live,
      sources.map(source => {
        const ms = msOf(source.happenedAt)
        const day = ms === undefined ? undefined : time.dayOf(ms)
        return {
          kind,
          conversation_id: source.id,
          happened_at: source.happenedAt,
          day: day?.day ?? null,
          local_hour: ms === undefined || !day ? null : localHour(ms),
          title: source.title,
          is_group_email: source.isGroup,
          is_readable: source.isReadable,
          minutes: source.minutes,
        }
      }),
    )
    const numbers = new Map(storedRows(live).map(({ id, number }) => [id, number]))
    const numberOf = (id: string) => numbers.get(id) ?? 0
    const timeOf = new Map(sources.map(({ id, happenedAt }) => [id, msOf(happenedAt) ?? NO_TIME]))
    const takers = live.flatMap(id => distinctPeople(people.get(id) ?? []))
    const persons = personNumbers(takers.map(({ address }) => address))
    const contacts = recordNumbers(
      takers.flatMap(({ contact }) => contact ?? []),
      'contact',
    )
    const rowsOfPeople = takers.map(({ id, address, role, isNamed, isInternal, hasSaid, contact }) => ({
      conversation: numberOf(id),
      person: persons.get(address) ?? 0,
      role,
      happened_ms: timeOf.get(id) ?? NO_TIME,
      is_named: isNamed,
      is_internal: isInternal,
      has_said: hasSaid,
      contact: contact === null ? null : (contacts.get(contact) ?? 0),
    }))
    const rowsOfSpeakers = speakers.flatMap(({ id, position, hasSaid }) => {
      const ms = timeOf.get(id)
      if (ms === undefined) return []
      return {
        ...{ conversation: numberOf(id), person: speakerNumber(position), role: ROLES.SPEAKER },
        ...{ happened_ms: ms, is_named: 0, is_internal: null, has_said: hasSaid, contact: null },
      }
    })
    const rows = [...rowsOfPeople, ...rowsOfSpeakers]
    const present = [...numbers.values()]
    const { gone, come: added } = takingPart.replace(present, rows)
    const changed = [...gone, ...added]
    waiting.addFrom('person', ADDRESSES, [...new Set([...gone, ...rows].map(({ person }) => person))])
    waiting.add('conversation', present)
    if (kind === 'mail') waiting.add('thread', present)
    waiting.addFrom('record', RECORDS, [
      ...changed.map(({ conversation }) => conversation),
      ...come.map(row => numberOf(row.conversation_id)),
    ])
    // A record that has just got its number may have no conversation. Following removes its row.
    waiting.add(
      'record',
      changed.map(({ contact }) => contact),
    )
  }
}

/** SQL after SELECT: for the addresses of people, and for the records of conversations. */
const ADDRESSES = 'p.person_id FROM json_each(:keys) k CROSS JOIN people p ON p._id = k.value'
export const RECORDS =
  'r.record FROM json_each(:keys) k CROSS JOIN _record_conversations r ON r.conversation = k.value'

/** Changes one row or none. Parameters: the number of a conversation, and 1 when both sides took part, else 0. */
export const SET_TWO_WAY =
  'UPDATE conversations SET _is_two_way = NOT _is_two_way WHERE _id = ? AND _is_two_way <> ?'

/** One row for each address and role. The owner of a meeting who also attends it is its owner. */
function distinctPeople(people: readonly SourcePerson[]): (SourcePerson & { address: string })[] {
  const found = new Map<string, SourcePerson & { address: string }>()
  for (const { address, role, ...rest } of people) {
    if (address === null || address === '' || role === null) continue
    const key = `${role === ROLES.ATTENDEE ? ROLES.OWNER : role} ${address}`
    const other = found.get(key)
    found.set(key, {
      id: rest.id,
      address,
      role: other?.role ?? role,
      isNamed: Math.max(rest.isNamed, other?.isNamed ?? 0),
      isInternal: greatest(rest.isInternal, other?.isInternal ?? null),
      hasSaid: Math.max(rest.hasSaid, other?.hasSaid ?? 0),
      contact: greatest(rest.contact, other?.contact ?? null),
    })
  }
  return [...found.values()]
}

function greatest<T extends string | number>(one: T | null, other: T | null): T | null {
  if (one === null || other === null) return one ?? other
  return one > other ? one : other
}

/** `find` returns pairs of name and internal number for a JSON array of names; `create` gives numbers to names. */
const NUMBERS = {
  person: {
    find: 'SELECT p.person_id, p._id FROM json_each(?) k CROSS JOIN people p ON p.person_id = k.value',
    create: `INSERT INTO people (person_id, party_id, side, is_member_now) SELECT value, value, 'unknown', 0 FROM json_each(?)`,
  },
  /** The CRM object is the second parameter. */
  record: {
    find: 'SELECT r.record_id, r._id FROM json_each(?) k CROSS JOIN record_activity r ON r.object = ? AND r.record_id = k.value',
    create:
      'INSERT INTO record_activity (record_id, object) SELECT value, o FROM json_each(?), (SELECT ? AS o)',
  },
} as const

/** Returns internal numbers by name, and gives one to each name that has none. */
function createNumbers(prepare: Prepare, of: keyof typeof NUMBERS) {
  const find = prepare<[string, number]>(NUMBERS[of].find).raw()
  const create = prepare(NUMBERS[of].create)
  return (names: readonly string[], ...object: readonly string[]): ReadonlyMap<string, number> => {
    const all = [...new Set(names)]
    const numbers = new Map(find.all(JSON.stringify(all), ...object))
    if (numbers.size === all.length) return numbers
    const missing = JSON.stringify(all.filter(name => !numbers.has(name)))
    create.run(missing, ...object)
    return new Map([...numbers, ...find.all(missing, ...object)])
  }
}

/** Removes a conversation with all that is derived from it. */
function createForget({ prepare, waiting }: Deriving) {
  const mates = prepare<number>('SELECT _id FROM conversations WHERE _thread = ? AND _id <> ?').pluck()
  const people = `p.person_id FROM json_each(:keys) k CROSS JOIN _conversation_people x ON x.conversation = k.value
    CROSS JOIN people p ON p._id = x.person`
  const removals = [
    'DELETE FROM _conversation_people WHERE conversation = ?',
    'DELETE FROM _record_conversations WHERE conversation = ?',
    'DELETE FROM _mail_questions WHERE asked = ?',
    'DELETE FROM conversations WHERE _id = ?',
  ].map(sql => prepare(sql))
  return (number: number, thread: number | null) => {
    if (thread !== null) waiting.add('thread', mates.all(thread, number))
    waiting.addFrom('person', people, [number])
    waiting.addFrom('record', RECORDS, [number])
    for (const removal of removals) removal.run(number)
  }
}

interface KnownConversation {
  number: number
  kind: 'mail' | 'meeting'
  isReadable: number | null
  /** Side of the people without an address; null when everyone has an address. */
  others: 'theirs' | 'unknown' | null
}

interface TakingPart {
  conversation: number
  role: number
  person_id: string
  side: Side
  contact_id: string | null
}

interface RecordLink {
  conversation: number
  object: string
  record_id: string
  how: number
}

const TAKING_PART = `SELECT x.conversation, x.role, p.person_id, p.side, p.contact_id FROM json_each(:keys) k
  CROSS JOIN _conversation_people x ON x.conversation = k.value CROSS JOIN people p ON p._id = x.person
  ORDER BY x.conversation, x.role, p.person_id`

const LINK_COLUMNS = `l.context_type AS object, l.context_id AS record_id, CASE l.origin WHEN 'DIRECT' THEN ${HOW.direct} ELSE ${HOW.derived} END AS how`

/** SQL for all links from conversations to records, except those that follow only from people's addresses. */
const LINKS = `SELECT c._id AS conversation, ${LINK_COLUMNS} FROM json_each(:keys) k
    CROSS JOIN conversations c ON c._id = k.value AND c.kind = 'mail'
    CROSS JOIN message_copies m ON m.mail_id = c.conversation_id
    CROSS JOIN activities a ON a.source_id = m.id AND a.source_type = 'MESSAGE' AND a._deleted_at IS NULL
    CROSS JOIN activity_links l ON l.activity_id = a.id
  UNION ALL SELECT c._id, ${LINK_COLUMNS} FROM json_each(:keys) k
    CROSS JOIN conversations c ON c._id = k.value AND c.kind = 'meeting'
    CROSS JOIN activities a ON a.source_id = c.conversation_id AND a.source_type = 'MEETING' AND a._deleted_at IS NULL
    CROSS JOIN activity_links l ON l.activity_id = a.id
  UNION ALL SELECT c._id, coalesce((SELECT b.name FROM crm_objects b WHERE lower(b.name) = lower(o.object_type)), lower(o.object_type)),
      o.object_id, ${HOW.related} FROM json_each(:keys) k
    CROSS JOIN conversations c ON c._id = k.value AND c.kind = 'meeting'
    CROSS JOIN meetings m ON m.id = c.conversation_id AND m.access IS NOT 'withheld'
    CROSS JOIN meeting_related_objects o ON o.meeting_id = m.id WHERE o.object_type <> '' AND o.object_id <> ''
  UNION ALL SELECT c._id, 'contact', p.contact_id, ${HOW.participant} FROM json_each(:keys) k
    CROSS JOIN conversations c ON c._id = k.value AND c.kind = 'mail'
    CROSS JOIN message_participants p ON p.header_message_id = c.conversation_id WHERE p.contact_id <> ''
  UNION ALL SELECT c._id, 'contact', p.contact_id, ${HOW.participant} FROM json_each(:keys) k
    CROSS JOIN conversations c ON c._id = k.value AND c.kind = 'meeting'
    CROSS JOIN meetings m ON m.id = c.conversation_id AND m.access IS NOT 'withheld'
    CROSS JOIN meeting_attendees p ON p.meeting_id = m.id WHERE p.contact_id <> ''`

/**
 * SQL for the side of people without an address: `theirs` if one is known to be theirs, else `unknown` unless all are
 * ours.
 */
const OTHERS = `CASE c.kind
    WHEN 'mail' THEN (SELECT max('unknown') FROM message_participants p
      WHERE p.header_message_id = c.conversation_id AND trim(coalesce(p.handle, '')) = '')
    ELSE coalesce(
      (SELECT min(CASE WHEN a.is_internal = 0 OR a.contact_id <> '' THEN 'theirs' ELSE 'unknown' END) FROM meeting_attendees a
        WHERE a.meeting_id = c.conversation_id AND trim(coalesce(a.email, '')) = ''
          AND a.is_workspace_member IS NOT 1 AND a.is_internal IS NOT 1),
      (SELECT 'unknown' FROM meeting_speakers s JOIN meetings m ON m.id = s.meeting_id
        WHERE s.meeting_id = c.conversation_id AND s.speaker_name IS NOT m.owner_name
          AND NOT EXISTS (SELECT 1 FROM meeting_attendees a WHERE a.meeting_id = s.meeting_id AND a.name = s.speaker_name) LIMIT 1))
    END`

/** Follows conversations whose people have changed: derives their sides and their records. */
export function createConversationPeople({ prepare, waiting, crm: { contactObject } }: Deriving) {
  const conversations = createDerivedRows(prepare, {
    table: 'conversations',
    columns: ['_id', 'person_id', 'side', 'is_external', 'is_linked'],
    key: ['_id'],
    scope: '_id',
  })
  const pairs = createDerivedRows(prepare, {
    table: '_record_conversations',
    columns: ['record', 'conversation', 'how'],
    key: ['record', 'conversation'],
    scope: 'conversation',
  })
  const kinds = `SELECT c._id AS number, c.kind, c.is_readable AS isReadable, ${OTHERS} AS others FROM json_each(:keys) k CROSS JOIN conversations c ON c._id = k.value`
  const recordNumbers = createNumbers(prepare, 'record')
  const setTwoWay = prepare(SET_TWO_WAY)
  return (ids: readonly number[]) => {
    const present = rowsFor<KnownConversation>(prepare, kinds, ids)
    const people = listsBy(rowsFor<TakingPart>(prepare, TAKING_PART, ids), ({ conversation }) => conversation)
    const links = rowsFor<RecordLink>(prepare, LINKS, ids)
    const linked = new Set(
      links.flatMap(({ conversation, how }) => (how > HOW.participant ? conversation : [])),
    )
    const kindOf = new Map(present.map(({ number, kind }) => [number, kind]))
    const met: number[] = []
    const rows = present.map(({ number, kind, isReadable, others }) => {
      const own = people.get(number) ?? []
      const first = own.find(({ role }) => role === ROLES.FROM || role === ROLES.OWNER)
      const isExternal = isWithTheirs(
        [...own.map(({ side }) => side), ...(others === null ? [] : [others])],
        kind === 'mail' || isReadable === 1,
      )
      if (kind === 'meeting') {
        const isTwoWay = isExternal === 1 && own.some(({ side }) => side === 'ours') ? 1 : 0
        if (setTwoWay.run(number, isTwoWay).changes > 0) met.push(number)
      }
      return {
        _id: number,
        person_id: first?.person_id ?? null,
        side: first?.side ?? null,
        is_external: isExternal,
        is_linked: linked.has(number) ? 1 : 0,
      }
    })
    const changed = conversations.replace(ids, rows).come.map(({ _id }) => _id)
    waiting.addFrom('record', RECORDS, [...met, ...changed])
    waiting.add(
      'thread',
      changed.filter(number => kindOf.get(number) === 'mail'),
    )
    const byAddress = [...people.values()]
      .flat()
      .flatMap(({ conversation, contact_id: record_id }) =>
        record_id === null ? [] : [{ conversation, object: contactObject, record_id, how: HOW.participant }],
      )
    const strongest = new Map<string, RecordLink>()
    for (const link of [...links, ...byAddress]) {
      const key = `${link.conversation}\0${link.object}\0${link.record_id}`
      if ((strongest.get(key)?.how ?? 0) < link.how) strongest.set(key, link)
    }
    const numbers = new Map(
      [...listsBy([...strongest.values()], ({ object }) => object)].map(([object, of]) => [
        object,
        recordNumbers(
          of.map(({ record_id }) => record_id),
          object,
        ),
      ]),
    )
    const replaced = pairs.replace(
      ids,
      [...strongest.values()].map(({ conversation, object, record_id, how }) => ({
        record: numbers.get(object)?.get(record_id) ?? 0,
        conversation,
        how,
      })),
    )
    waiting.add(
      'record',
      [...replaced.gone, ...replaced.come].map(({ record }) => record),
    )
  }
}

/** 1 when a person is theirs, 0 when no one is; null when a person may be theirs. */
function isWithTheirs(sides: readonly Side[], areAllShown: boolean): 0 | 1 | null {
  if (sides.includes('theirs')) return 1
  return areAllShown && sides.length > 0 && !sides.includes('unknown') ? 0 : null
}
