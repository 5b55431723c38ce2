import { oneOf } from '../declare/table.ts'
import {
  type ColumnDetails,
  type ColumnLine,
  column,
  columnsOf,
  type DescribedTable,
  NEVER_NULL,
  type Recount,
  reportTable,
  reportView,
} from './described-table.ts'

/**
 * Descriptions of the tables and views for reports about conversations: who takes part, and which CRM records they belong
 * to. `store/reporting` derives them from e-mails, meetings, activities, members, contacts and companies.
 */

const MAIL_ID = '20260304050607.1a2b3c@mail.example.com'
const ADDRESS = 'jordan@example.com'
const CONTACT_ID = '7e1d2c3b-4a59-4687-9f0e-8d7c6b5a4f3e'
const COMPANY_ID = '3b0f2a9c-58d1-4f6e-8c7b-1a2b3c4d5e6f'
const DEAL_ID = 'c2a1e6b4-0d8e-4f57-9b3a-5e7f1a2b3c4d'
const THREAD_ID = 'thread_1'
const DAY = '2026-03-04'
const INSTANT = '2026-03-04T05:06:07.123Z'

const text = (about: string, example: string, details?: ColumnDetails): ColumnLine =>
  column('text', about, example, details)

const day = (about: string, nullMeaning: string): ColumnLine => column('date', about, DAY, { nullMeaning })

const count = (about: string): ColumnLine => column('integer', about, '12', { unit: 'conversations' })

const COUNTED = {
  meetings: 'Meetings',
  mails: 'E-mails',
  mails_in: 'E-mails from them',
  mails_out: 'E-mails from us',
}

const counts = (ending: string, end: string) =>
  Object.fromEntries(
    Object.entries(COUNTED).map(([name, about]) => [`${name}${ending}`, count(`${about}${end}`)]),
  )

const flag = (about: string, nullMeaning = NEVER_NULL): ColumnLine =>
  column('boolean', about, '1', { nullMeaning })

const AS_IN_CONVERSATIONS = flag('As in `conversations`.', 'As in `conversations`.')

const percent = (whom: string): ColumnLine =>
  column('real', `Share of ${whom} in the talking time.`, '60', {
    unit: '%',
    nullMeaning: 'No share is known.',
  })

const SIDES = ['ours', 'theirs', 'partner', 'unknown']
const KINDS = ['mail', 'meeting']
const ROLES = ['FROM', 'TO', 'CC', 'BCC', 'owner', 'attendee', 'speaker']
const HOWS = {
  direct: 'its activity points at the record',
  related: 'the meeting names it',
  derived: 'inferred from another record',
  participant: 'the record is the contact of somebody who takes part',
}

const SIDE = `${oneOf(SIDES)}: by the members, then by \`reporting.internal_domains\` and \`reporting.partner_domains\`, then by what the last meeting says, then by the domain.`

const NEVER_SEEN = 'The address is in no e-mail and no meeting.'
const NO_MEMBER = 'No member has the address, or had it.'
const NO_CONTACT = 'No contact has the address, and the API names none for it.'
const NO_TIME = 'Its time is not known, or the calendar does not have it.'

/** The columns that name a person, or what belongs to a person. */
const person = (about: string, details?: ColumnDetails): ColumnLine =>
  text(about, ADDRESS, { refersTo: ['people.person_id'], resolves: true, isContent: true, ...details })
const party = (details?: ColumnDetails): ColumnLine =>
  text('The person who has the address.', CONTACT_ID, {
    refersTo: ['parties.party_id'],
    resolves: true,
    isContent: true,
    ...details,
  })
const personName = (about: string): ColumnLine =>
  text(about, 'Jordan Example', { isContent: true, nullMeaning: 'It is not known.' })
const member = (about: string, nullMeaning = NO_MEMBER): ColumnLine =>
  text(about, 'mem_1', { nullMeaning, refersTo: ['members.id'] })
const contact = (about: string, nullMeaning = NO_CONTACT): ColumnLine =>
  text(about, CONTACT_ID, { nullMeaning, refersTo: ['contacts.contact_id'] })
const company = (about: string, nullMeaning: string): ColumnLine =>
  text(about, COMPANY_ID, { nullMeaning, refersTo: ['companies.company_id'] })

const NUMBER: ColumnLine = column(
  'integer',
  'Internal: number of the row, used by other tables of the file. It changes when the table is computed again.',
  '1',
)

const KIND = text(`${oneOf(KINDS)}.`, 'mail', { isKey: true, values: KINDS })
const CONVERSATION = text(
  'The e-mail (`messages.header_message_id`) or the meeting (`meetings.id`). Join it by `kind` and `conversation_id`.',
  MAIL_ID,
  { isKey: true, refersTo: ['messages.header_message_id', 'meetings.id'] },
)

/** The columns by which a row of another table names its conversation. */
const OF_CONVERSATION: Readonly<Record<'kind' | 'conversation_id', ColumnLine>> = {
  kind: { ...KIND, refersTo: ['conversations.kind'], resolves: true },
  conversation_id: {
    ...CONVERSATION,
    refersTo: ['conversations.conversation_id', ...(CONVERSATION.refersTo ?? [])],
    resolves: true,
  },
}

const RECORD: Readonly<Record<string, ColumnLine>> = {
  object: text('Object of the record, such as `deal` (`crm_objects.name`).', 'deal', { isKey: true }),
  record_id: text('Record (`crm_records.id`).', DEAL_ID, { isKey: true, refersTo: ['crm_records.id'] }),
}

const CONVERSATIONS_RECOUNTS: readonly Recount[] = [
  {
    about: 'it has one row for each live e-mail and each live meeting',
    key: ['kind', 'conversation_id'],
    ours: 'SELECT kind, conversation_id FROM conversations',
    base: `SELECT 'mail', header_message_id FROM messages WHERE _deleted_at IS NULL
      UNION ALL SELECT 'meeting', id FROM meetings WHERE _deleted_at IS NULL`,
  },
  {
    about: 'its days are those of the calendar',
    key: ['kind', 'conversation_id'],
    values: ['day'],
    ours: 'SELECT kind, conversation_id, day FROM conversations',
    base: `SELECT kind, conversation_id, (SELECT iif(d.utc_to > n.happened_at, d.day, NULL) FROM calendar d
        WHERE d.utc_from <= n.happened_at ORDER BY d.utc_from DESC LIMIT 1) FROM conversations n`,
  },
  {
    // What meetings say of people without an address is not counted again.
    about: 'it is external with a person of theirs, and an e-mail only then',
    key: ['kind', 'conversation_id'],
    values: ['is_external'],
    ours: 'SELECT kind, conversation_id, is_external FROM conversations',
    base: `SELECT c.kind, c.conversation_id, CASE WHEN max(p.side = 'theirs') THEN 1 WHEN c.kind = 'meeting' THEN c.is_external
        WHEN min(p.side <> 'unknown') AND NOT EXISTS (SELECT 1 FROM message_participants n
          WHERE n.header_message_id = c.conversation_id AND trim(coalesce(n.handle, '')) = '') THEN 0 END
      FROM conversations c LEFT JOIN _conversation_people x ON x.conversation = c._id LEFT JOIN people p ON p._id = x.person
      GROUP BY c._id`,
  },
]

const address = (column: string, from: string) =>
  `SELECT lower(trim(${column})) FROM ${from} AND trim(${column}) <> ''`

/** A contact may have an address that a member has exchanged for another. */
const OF_MEMBERS = `${address('email', 'members WHERE true')} UNION ALL SELECT * FROM (
  ${address('email', 'member_versions WHERE true')} EXCEPT ${address('email', 'contacts WHERE true')})`

const PEOPLE_RECOUNTS: readonly Recount[] = [
  {
    about:
      'it has one row for each address that members have or had, of contacts, live e-mails and live meetings',
    key: ['person_id'],
    ours: 'SELECT person_id FROM people',
    base: [
      address('email', 'member_versions WHERE true'),
      address('email', 'contacts WHERE true'),
      address('handle', "message_participants WHERE role IN ('FROM', 'TO', 'CC', 'BCC')"),
      address('owner_email', 'meetings WHERE _deleted_at IS NULL'),
      address(
        'a.email',
        "meeting_attendees a JOIN meetings m ON m.id = a.meeting_id WHERE m._deleted_at IS NULL AND m.access IS NOT 'withheld'",
      ),
    ].join(' UNION '),
  },
  {
    about: 'members are ours',
    key: ['person_id'],
    values: ['side'],
    ours: `SELECT person_id, side FROM people WHERE person_id IN (${OF_MEMBERS})`,
    base: `SELECT person_id, 'ours' FROM people WHERE person_id IN (${OF_MEMBERS})`,
  },
]

/**
 * E-mails, with the times of the next later ones of either side in their thread, and of the next one of ours that is not
 * internal.
 */
const LATER_MAILS = `SELECT happened_at, _thread, side, is_external, min(iif(side = 'ours', happened_at, NULL)) OVER later AS next_ours,
    min(iif(side = 'ours' AND is_external IS NOT 0, happened_at, NULL)) OVER later AS next_asking,
    min(iif(side = 'theirs', happened_at, NULL)) OVER later AS next_theirs
  FROM conversations WHERE kind = 'mail' AND side IN ('ours', 'theirs') AND day IS NOT NULL
  WINDOW later AS (PARTITION BY _thread ORDER BY happened_at DESC GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)`

const QUESTIONS_RECOUNTS: readonly Recount[] = [
  {
    about:
      'each e-mail that is not internal is in one run, which ends with the next e-mail of the other side',
    key: ['last_asked_at', '_thread', 'side'],
    values: ['answered_at'],
    ours: `SELECT l.happened_at, l._thread, l.side, r.happened_at FROM _mail_questions q
      JOIN conversations l ON l._id = q.last_asked LEFT JOIN conversations r ON r._id = q.answered`,
    base: `SELECT happened_at, _thread, side, answered_at FROM (SELECT happened_at, _thread, side,
        iif(side = 'ours', next_asking, next_theirs) AS next_own, iif(side = 'ours', next_theirs, next_ours) AS answered_at
        FROM (${LATER_MAILS}) WHERE is_external IS NOT 0) WHERE next_own IS NULL OR answered_at <= next_own`,
  },
]

const PAIRS_RECOUNTS: readonly Recount[] = [
  {
    about: 'its direct pairs are those of the activities',
    key: ['object', 'record_id', 'kind', 'conversation_id'],
    ours: "SELECT object, record_id, kind, conversation_id FROM record_conversations WHERE how = 'direct'",
    base: `SELECT l.context_type, l.context_id, 'mail', k.mail_id FROM activities a JOIN activity_links l ON l.activity_id = a.id
      JOIN message_copies k ON k.id = a.source_id JOIN messages m ON m.header_message_id = k.mail_id
      WHERE a._deleted_at IS NULL AND a.source_type = 'MESSAGE' AND l.origin = 'DIRECT' AND m._deleted_at IS NULL
      UNION SELECT l.context_type, l.context_id, 'meeting', m.id FROM activities a JOIN activity_links l ON l.activity_id = a.id
      JOIN meetings m ON m.id = a.source_id
      WHERE a._deleted_at IS NULL AND a.source_type = 'MEETING' AND l.origin = 'DIRECT' AND m._deleted_at IS NULL`,
  },
]

/** SQL for the local day of the latest upkeep of the tables for reports. A meeting after it is planned. */
export const FOLLOWED_DAY =
  "(SELECT json_extract(value, '$.today') FROM sync_meta WHERE key = 'report_rules')"

const RECORD_ACTIVITY_RECOUNTS: readonly Recount[] = (() => {
  const key = ['object', 'record_id']
  const counts = {
    meetings: "c.kind = 'meeting'",
    mails: "c.kind = 'mail'",
    mails_in: "c.kind = 'mail' AND c.side = 'theirs'",
    mails_out: "c.kind = 'mail' AND c.side = 'ours'",
  }
  const last = (is: string) => `max(CASE WHEN c.day <= ${FOLLOWED_DAY} AND ${is} THEN c.day END)`
  const sums: Readonly<Record<string, string>> = {
    ...Object.fromEntries(
      Object.entries(counts).flatMap(([name, is]) => [
        [name, `count(CASE WHEN ${is} THEN 1 END)`],
        [`${name}_without_derived`, `count(CASE WHEN ${is} AND r.how <> 'derived' THEN 1 END)`],
      ]),
    ),
    first_meeting_day: `min(CASE WHEN c.day <= ${FOLLOWED_DAY} AND c.kind = 'meeting' THEN c.day END)`,
    last_day: last('true'),
    last_theirs_day: last("(c.side = 'theirs' OR (c.kind = 'meeting' AND c.is_external = 1))"),
    last_two_way_day: last('c._is_two_way = 1'),
  }
  const values = Object.keys(sums)
  return [
    {
      about: 'its counts are those of record_conversations',
      key,
      values,
      ours: `SELECT object, record_id, ${values.join(', ')} FROM record_activity`,
      base: `SELECT r.object, r.record_id, ${Object.values(sums).join(', ')}
        FROM record_conversations r JOIN conversations c USING (kind, conversation_id) GROUP BY r.object, r.record_id`,
    },
    {
      about: 'its engaged people are those of record_people',
      key,
      values: ['engaged_people'],
      ours: 'SELECT object, record_id, engaged_people FROM record_activity WHERE engaged_people > 0',
      base: `SELECT object, record_id, count(DISTINCT party_id) FROM record_people
        WHERE side = 'theirs' AND wrote_or_spoke = 1 GROUP BY object, record_id`,
    },
  ]
})()

/** The tables in an order in which each explains the next. */
export const PEOPLE_TABLES: readonly DescribedTable[] = [
  reportTable(
    {
      name: 'conversations',
      onDelete: 'row removed',
      recounts: CONVERSATIONS_RECOUNTS,
      about: 'One live e-mail, or one live meeting, withheld ones too.',
      sortable: ['kind', 'happened_at'],
      newestBy: 'happened_at',
      label: 'title',
    },
    {
      _id: NUMBER,
      _thread: column('integer', 'Internal: the same number for e-mails that threads connect.', '1', {
        nullMeaning: 'It is a meeting.',
      }),
      _is_two_way: flag('Internal: 1 for an e-mail that answers the other side, and for a meeting of both.'),
      kind: KIND,
      conversation_id: CONVERSATION,
      happened_at: column(
        'timestamp',
        'When the e-mail was sent or received, or the meeting began. Where a meeting has no such time, that of its activity.',
        INSTANT,
        { nullMeaning: 'It is not known.' },
      ),
      day: day('Local day.', NO_TIME),
      local_hour: column('integer', 'Hour of the local day, from 0 to 23.', '14', {
        unit: 'hours',
        nullMeaning: NO_TIME,
      }),
      title: text('Subject, or title.', 'First call', {
        isContent: true,
        nullMeaning: 'It has none, it is hidden or withheld, or it has not been read yet.',
      }),
      person_id: person('Sender of the e-mail, or owner of the meeting (`people.person_id`).', {
        nullMeaning: 'It is not known.',
      }),
      side: text('Side of the sender or owner, as in `people`.', 'theirs', {
        nullMeaning: '`person_id` is NULL.',
      }),
      is_external: flag(
        '1 with a person of theirs, 0 without.',
        'The side of somebody is unknown, or not all people are known.',
      ),
      is_linked: flag(
        '1 when it belongs to a CRM record by more than the contacts who take part: `record_conversations.how` is not `participant`.',
      ),
      is_group_email: flag('1 for mailing lists and group addresses; 0 for a meeting.', 'No copy says so.'),
      is_readable: flag(
        '1 when the text of the e-mail is known or the meeting is open; 0 when they are hidden, empty, gone or withheld.',
        'It has not been read yet.',
      ),
      minutes: column('integer', 'From the start of the meeting to its end.', '45', {
        unit: 'minutes',
        nullMeaning: 'It is an e-mail, a time is not known, or the end is before the start.',
      }),
    },
  ),
  reportTable(
    {
      name: 'people',
      onDelete: 'recomputed',
      recounts: PEOPLE_RECOUNTS,
      about:
        'One address: of a member, of a contact, or of somebody in an e-mail or a meeting. Count persons by `party_id`.',
      sortable: ['person_id', 'party_id', 'domain', 'contact_id'],
      label: 'name',
    },
    {
      _id: NUMBER,
      person_id: text('The address, in lower case.', ADDRESS, { isKey: true, isContent: true }),
      party_id: party(),
      name: personName('Name of the member, else of the contact, else as last seen.'),
      domain: text('Domain of the address.', 'example.com', { nullMeaning: 'The address has none.' }),
      side: text(SIDE, 'theirs', { values: SIDES }),
      member_id: member('Member who has the address, or had it (`members.id`).'),
      is_member_now: flag('1 while the member is in the workspace, also under another address.'),
      contact_id: contact(
        'Contact with the address, of several the first by id, else the one that the API named last for it.',
      ),
      first_seen_day: day('Local day of the first conversation with it, in any role.', NEVER_SEEN),
      last_seen_day: day('Local day of the last conversation with it.', NEVER_SEEN),
    },
  ),
  reportTable(
    {
      name: 'parties',
      onDelete: 'recomputed',
      about:
        'One person: a member, else a contact, else an address. A contact without an address is only in `contacts`.',
      sortable: ['party_id'],
      label: 'name',
    },
    {
      party_id: text('Id of the member, else of the contact, else the address.', CONTACT_ID, {
        isKey: true,
        isContent: true,
      }),
      name: personName('Name of the person.'),
      side: text(
        'Side of the person: of several addresses, the first of `ours`, `partner` and `theirs`.',
        'theirs',
      ),
      member_id: member('The member.', 'The person is no member, and was none.'),
      contact_id: contact('The contact.', 'The person is no contact.'),
      company_id: company(
        'Company of the contact, else the only one with the domain of the address.',
        'It is not known. Domains at which anybody can have an address belong to no company.',
      ),
      company_how: text('Where `company_id` is from: `contact` or `domain`.', 'contact', {
        values: ['contact', 'domain'],
        nullMeaning: '`company_id` is NULL.',
      }),
      first_seen_day: day(
        'Local day of the first conversation with the person, in any role.',
        'There is none.',
      ),
      last_seen_day: day('Local day of the last conversation with the person.', 'There is none.'),
    },
  ),
  reportTable(
    {
      name: 'record_activity',
      onDelete: 'recomputed',
      recounts: RECORD_ACTIVITY_RECOUNTS,
      about:
        'What happened with one CRM record that has conversations. A record without any has no row, so join it with LEFT JOIN.',
      sortable: ['object'],
    },
    {
      _id: NUMBER,
      ...RECORD,
      ...counts('', '.'),
      meetings: count('Meetings, planned ones included.'),
      ...counts('_without_derived', ', but those that are only `derived`.'),
      engaged_people: column(
        'integer',
        'Persons of theirs who wrote an e-mail or spoke in a meeting, the `derived` ones included.',
        '3',
        { unit: 'persons' },
      ),
      first_meeting_day: day(
        'Local day of the first meeting. A planned meeting is none yet.',
        'There is none with a known time, or only planned ones.',
      ),
      last_day: day(
        'Local day of the last conversation of the record. A planned meeting is none yet.',
        'There is none with a known time, or only planned meetings.',
      ),
      last_theirs_day: day(
        'Local day on which they last wrote, or last were in a meeting.',
        'They never did, or no time is known.',
      ),
      last_two_way_day: day(
        'Local day of the last meeting of both sides, or of the last e-mail that answers the other side, if neither it nor the question is a group e-mail.',
        'There is none, or no time is known.',
      ),
    },
  ),
]

const MEMBER_CONVERSATIONS: DescribedTable = reportView(
  {
    name: 'member_conversations',
    about:
      'One e-mail that a member wrote, or one meeting that a member owns or was invited to, once for each member. Members of now.',
  },
  {
    member_id: text('The member.', 'mem_1', { isKey: true, refersTo: ['members.id'], resolves: true }),
    member: text('Name of the member.', 'Aiko Tanaka', {
      isContent: true,
      nullMeaning: 'The API sent none.',
    }),
    ...OF_CONVERSATION,
    happened_at: column('timestamp', 'As in `conversations`.', INSTANT, { nullMeaning: 'It is not known.' }),
    day: day('Local day.', NO_TIME),
    role: text('`FROM` of an e-mail; `owner` or `attendee` of a meeting.', 'owner', {
      values: ['FROM', 'owner', 'attendee'],
    }),
    is_external: AS_IN_CONVERSATIONS,
    is_group_email: AS_IN_CONVERSATIONS,
    is_readable: AS_IN_CONVERSATIONS,
    days_since_first: column(
      'integer',
      'Days from the first conversation of the member, in any role (`parties.first_seen_day`), to this one.',
      '42',
      { unit: 'days', nullMeaning: NO_TIME },
    ),
    talk_percent: column(
      'real',
      "The member's share of the talking time in the meeting, under all addresses of the member.",
      '60',
      {
        unit: '%',
        nullMeaning:
          'It is an e-mail, the meeting is withheld, no speaker has the name, another person has it too, or the API gives no share.',
      },
    ),
  },
)

const DEAL_CONVERSATIONS: DescribedTable = reportView(
  {
    name: 'deal_conversations',
    about: 'One e-mail or meeting of one deal, each pair once: `record_conversations` of deals.',
    label: 'title',
  },
  {
    deal_id: text('The deal.', DEAL_ID, { isKey: true, refersTo: ['deals.deal_id', 'crm_records.id'] }),
    ...OF_CONVERSATION,
    happened_at: column('timestamp', 'As in `conversations`.', INSTANT, { nullMeaning: 'It is not known.' }),
    day: day('Local day.', NO_TIME),
    title: text('Subject, or title.', 'First call', {
      isContent: true,
      nullMeaning: 'As in `conversations`.',
    }),
    name: personName('Name of the sender or owner.'),
    is_external: AS_IN_CONVERSATIONS,
    is_group_email: AS_IN_CONVERSATIONS,
    how: text('How it belongs to the deal, as in `record_conversations`.', 'direct', {
      values: Object.keys(HOWS),
    }),
  },
)

const TALK_RATIOS: DescribedTable = (() => {
  const ratios = reportView(
    {
      name: 'talk_ratios',
      about:
        'One meeting of `conversations`, and how much of the talking each side did. The percentages are of the sum of its shares, since the API states no unit for them. A speaker whose name no one of the meeting has, or two people have, may be of any side and counts in `other_percent`.',
      label: 'title',
    },
    {
      owner: personName('Name of the owner.'),
      speakers: column('integer', 'Speakers with a known share.', '3', { unit: 'speakers' }),
      ours_percent: percent('us'),
      theirs_percent: percent('them'),
      other_percent: percent('partners, and of speakers of no known side'),
    },
  )
  const names = ['conversation_id', 'happened_at', 'day', 'title', 'is_external']
  return { ...ratios, columns: [...columnsOf(PEOPLE_TABLES, 'conversations', names), ...ratios.columns] }
})()

export const CONVERSATION_VIEWS: readonly DescribedTable[] = [
  reportView(
    {
      name: 'conversation_threads',
      about: 'One thread of one live e-mail. Copies of an e-mail may be in several threads.',
    },
    {
      conversation_id: text('The e-mail.', MAIL_ID, {
        isKey: true,
        refersTo: ['messages.header_message_id', 'conversations.conversation_id'],
      }),
      thread_id: text('The thread.', THREAD_ID, { isKey: true }),
    },
  ),
  reportView(
    {
      name: 'record_conversations',
      recounts: PAIRS_RECOUNTS,
      about:
        'One conversation of one CRM record, each pair once. A contact whose address another contact has too, with an id before its own, has only the conversations for which the API names it.',
    },
    {
      ...RECORD,
      ...OF_CONVERSATION,
      day: day('Local day.', NO_TIME),
      how: text(`How it belongs to the record, the strongest first: ${oneOf(HOWS)}.`, 'direct', {
        values: Object.keys(HOWS),
      }),
    },
  ),
  reportView(
    {
      name: 'conversation_people',
      about:
        'One person in one role of one conversation. A person who owns a meeting and attends it is its `owner`. A speaker whose name none of them has, or two have, has a row without `person_id`, with the role `speaker`. Several addresses that a member has or had are one person: the greatest has the share of their common name.',
    },
    {
      kind: { ...OF_CONVERSATION.kind, isKey: false },
      conversation_id: { ...OF_CONVERSATION.conversation_id, isKey: false },
      day: day('Local day.', NO_TIME),
      person_id: person('Address (`people.person_id`).', {
        nullMeaning: 'It is a speaker whose name no one of the meeting has, or two people have.',
      }),
      party_id: party({ nullMeaning: '`person_id` is NULL.' }),
      name: personName('Name of the person, or of the speaker.'),
      side: text('Side, as in `people`; `unknown` for a speaker without `person_id`.', 'theirs', {
        values: SIDES,
      }),
      member_id: member('Member who has the address, or had it.'),
      contact_id: contact('Contact.'),
      company_id: company('Company of the person, as in `parties`.', 'It is not known.'),
      role: text(
        '`FROM`, `TO`, `CC` or `BCC` of an e-mail; `owner`, `attendee` or `speaker` of a meeting.',
        'attendee',
        { values: ROLES },
      ),
      is_external: AS_IN_CONVERSATIONS,
      is_group_email: AS_IN_CONVERSATIONS,
      is_readable: AS_IN_CONVERSATIONS,
      wrote_or_spoke: flag(
        '1 for who wrote the e-mail or spoke in the meeting. A speaker without a share of the talking time counts, one with a share of 0 does not. Being invited is no evidence of having been there, and neither is the name of a speaker that several people have.',
      ),
      speaker_ratio: column('real', 'Share of the talking time in the meeting.', '0.6', {
        unit: 'not stated',
        nullMeaning:
          'It is an e-mail, the meeting is withheld, no speaker has the name, another person has it too, the share is in the row of another address of the member, or the API gives no share.',
      }),
    },
  ),
  reportView(
    {
      name: 'record_people',
      selectBy: 'record_id',
      about:
        'One person in one role of one conversation of one CRM record. Count persons by `party_id`. Always select records: the view is as long as all conversations of all records.',
    },
    {
      ...RECORD,
      ...OF_CONVERSATION,
      day: day('Local day.', NO_TIME),
      person_id: person('Address (`people.person_id`).', { isKey: true }),
      party_id: party(),
      side: text('Side, as in `people`.', 'theirs', { values: SIDES }),
      contact_id: contact('Contact.'),
      role: text('Role, as in `conversation_people`.', 'attendee', { isKey: true, values: ROLES }),
      wrote_or_spoke: flag('1 for who wrote the e-mail or spoke in the meeting.'),
    },
  ),
  MEMBER_CONVERSATIONS,
  DEAL_CONVERSATIONS,
  TALK_RATIOS,
  reportView(
    {
      name: 'promises',
      about: 'One action item of one live meeting that can be read.',
      label: 'promise',
    },
    {
      meeting_id: text('The meeting.', 'mtg_1', { isKey: true, refersTo: ['meetings.id'] }),
      action_item_id: text('The action item.', 'act_1', {
        isKey: true,
        refersTo: ['meeting_action_items.id'],
      }),
      promise: text('What was agreed on.', 'Send the offer', {
        isContent: true,
        nullMeaning: 'The API sent none.',
      }),
      day: day('Local day of the meeting.', NO_TIME),
      due_day: day('Day on which it is due.', 'It has none.'),
      is_completed: flag('1 when it is completed.', 'The API does not say.'),
      is_overdue: flag('1 when it is not completed and was due before `periods.today`.'),
      person_id: person('Owner of the meeting: an action item names no person.', {
        nullMeaning: 'It is not known.',
      }),
      owner: text('Name of the owner.', 'Aiko Tanaka', { isContent: true, nullMeaning: 'It is not known.' }),
      member_id: member('The owner, if a member.'),
      owner_state: text(
        '`member`; `left`: no member now; `none`: the owner is not known; `unknown`: members were not read yet.',
        'member',
        {
          values: ['member', 'left', 'none', 'unknown'],
        },
      ),
    },
  ),
  reportView(
    {
      name: 'playbook_answers',
      about:
        'One question of a playbook for one live meeting that can be read, with its answer, if there is one. A question that a result leaves out is in it if the result is newer than the last change of the playbook.',
    },
    {
      meeting_id: text('The meeting.', 'mtg_1', { refersTo: ['meetings.id'] }),
      playbook_result_id: text('The result.', 'res_1', { isKey: true, refersTo: ['playbook_results.id'] }),
      answer_id: text('The answer; the question, where the result leaves it out.', 'ans_1', {
        isKey: true,
        refersTo: ['talk_point_results.id', 'playbook_talk_points.id'],
      }),
      playbook: text(
        'Name of the playbook, as it is called now if the playbook is still there.',
        'Qualification',
        {
          nullMeaning: 'It is not known.',
        },
      ),
      question: text(
        'The question, in its present words if the playbook still asks it.',
        'What budget is available?',
        {
          nullMeaning: 'The API sent none.',
        },
      ),
      answer: text('The answer.', '120000', { isContent: true, nullMeaning: 'The API sent none.' }),
      answer_number: column('real', 'The answer where it is a number alone.', '120000', {
        unit: 'not stated',
        nullMeaning: 'It is no number.',
      }),
      state: text(
        '`answered`; `unanswered`: the answer is blank, or one of `reporting.no_answers`; `missing`: the result leaves the question out.',
        'answered',
        { values: ['answered', 'unanswered', 'missing'] },
      ),
      day: day('Local day of the meeting.', NO_TIME),
      person_id: person('Owner of the meeting.', { nullMeaning: 'It is not known.' }),
      member_id: member('The owner, if a member.'),
    },
  ),
  reportView(
    {
      name: 'mail_questions',
      recounts: QUESTIONS_RECOUNTS,
      about:
        'One run of e-mails of one side that the other has not answered yet, in the e-mails that threads connect. An e-mail in which no one of theirs takes part (`conversations.is_external` is 0) is no question. An e-mail of the same instant is no answer. Whoever gets it, an e-mail of the other side is one, such as a forward to a colleague.',
      newestBy: 'asked_at',
    },
    {
      asked_mail_id: text('First e-mail of the run that is not to a group, else its first.', MAIL_ID, {
        isKey: true,
        refersTo: ['messages.header_message_id', 'conversations.conversation_id'],
      }),
      thread_id: text('Thread of that e-mail.', THREAD_ID, {
        nullMeaning: 'It is in no thread, so an answer to it cannot be recognised.',
      }),
      asked_at: column('timestamp', 'When it was sent or received.', INSTANT),
      last_asked_at: column('timestamp', 'The same of the last e-mail of the run.', INSTANT),
      answered_mail_id: text('First e-mail of the other side after it.', MAIL_ID, {
        nullMeaning: 'It waits for an answer.',
        refersTo: ['messages.header_message_id', 'conversations.conversation_id'],
      }),
      answered_at: column('timestamp', 'When it was answered.', INSTANT, {
        nullMeaning: 'It waits for an answer.',
      }),
      answered_day: day('Local day of the answer.', 'It waits for an answer.'),
      answered_member_id: member(
        'Member who answered.',
        'It waits, or no member has the address, or had it.',
      ),
      day: day('Local day on which it was asked.', NO_TIME),
      subject: text('Subject of the first e-mail.', 'First call', {
        isContent: true,
        nullMeaning: 'It has none.',
      }),
      person_id: person('Who asked (`people.person_id`).'),
      name: personName('Name of the person.'),
      contact_id: contact('The contact, as in `parties`.', 'The person is no contact.'),
      company_id: company('Company of the person, as in `parties`.', 'It is not known.'),
      company: text('Name of the company.', 'Example Ltd', {
        nullMeaning: 'It is not known.',
      }),
      side: text('Side of who asked: `ours` or `theirs`.', 'theirs', { values: ['ours', 'theirs'] }),
      is_customer: flag(
        '1 for a person of theirs who is a contact of the CRM or belongs to one of its companies.',
      ),
      hours: column(
        'real',
        'From the e-mail to the answer, or while it waits to the instant up to which the warehouse is complete.',
        '26.5',
        { unit: 'hours' },
      ),
      work_hours: column(
        'real',
        'The same in working hours, by `reporting.work_from`, `reporting.work_to`, `reporting.workdays` and `reporting.holidays`.',
        '6.5',
        { unit: 'hours', nullMeaning: 'The calendar does not have one of the instants.' },
      ),
      is_counted: flag(
        '0 for e-mails to groups only, and for an answer after more than `reporting.reply_limit_days`, which takes up an old conversation. 1 for an e-mail that waits, however long: choose a period.',
      ),
    },
  ),
]
