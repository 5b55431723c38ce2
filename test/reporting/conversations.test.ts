import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { resourceNamed } from '../../src/catalog/catalog.ts'
import { loadSettings } from '../../src/config/load-settings.ts'
import { dataFindings } from '../../src/doctor/data.ts'
import { ensureReportTables } from '../../src/store/reporting/derived-tables.ts'
import { type TemporaryStore, temporaryStore } from '../store/temporary-store.ts'
import { putOwn } from '../store/unique-texts.ts'
import { forgetDerived } from '../support/derived-content.ts'
import { reportsOf } from '../support/reports-of.ts'

const NOW = '2026-03-04T05:00:00.000Z'
const AT = '2026-03-03T16:00:00.000Z'

function workspace(env: Readonly<Record<string, string>> = {}) {
  const store = temporaryStore()
  let steps = 0
  let passedMs = 0
  const reports = reportsOf({
    ...store,
    now: () => Date.parse(NOW) + passedMs,
    attempt: work => {
      steps += 1
      return store.attempt(work)
    },
  })
  const { settings } = loadSettings({ flags: {}, env, cwd: '/', requireApi: false })
  return {
    store,
    passTime: (ms: number) => {
      passedMs += ms
    },
    /** Returns the number of transactions. */
    update: async () => {
      steps = 0
      await reports.update(settings)
      return steps
    },
  }
}

const mail = (id: string, from: string, to: string, more: object = {}) => ({
  ...{
    id,
    header_message_id: `<${id}>`,
    thread_id: 't',
    subject: `Subject ${id}`,
    received_at: AT,
    is_group_email: false,
  },
  participants: [
    { role: 'FROM', handle: from, display_name: 'Someone' },
    { role: 'TO', handle: to, display_name: 'Another' },
  ],
  ...more,
})

function putMeeting(store: TemporaryStore, id: string, access: string, fields: object): void {
  const payload = { ...(resourceNamed('meetings').example['detail'] as object), meeting_id: id, ...fields }
  store.atomically(() => putOwn(store, { table: 'meetings', payload, own: { access }, now: NOW }))
}

const guest = (name: string, email: string) => ({
  attendee_user_name: name,
  attendee_user_email: email,
  is_internal: false,
  is_workspace_member: false,
})

const MEMBERS = [
  { id: 'm1', name: 'Aiko', email: 'Aiko@own.example' },
  { id: 'm2', name: 'Ben', email: 'ben@own.example' },
]

test('an e-mail of two copies belongs to a record once, by the strongest road', async () => {
  const { store, update } = workspace()
  store.put('members', MEMBERS)
  store.put('message_copies', [
    mail('a', 'aiko@own.example', 'jo@theirs.example', { header_message_id: '<x>' }),
    mail('b', 'aiko@own.example', 'jo@theirs.example', { header_message_id: '<x>' }),
  ])
  const activity = (id: string, source: string, origin: string) => ({
    ...{ id, source_type: 'MESSAGE', source_id: source, occurred_at: AT },
    links: [{ context_type: 'deal', context_id: 'd', origin }],
  })
  store.put('activities', [activity('1', 'a', 'DERIVED'), activity('2', 'b', 'DIRECT')])
  await update()
  expect(store.all('SELECT object, record_id, conversation_id, how FROM record_conversations')).toEqual([
    { object: 'deal', record_id: 'd', conversation_id: '<x>', how: 'direct' },
  ])
  expect(store.all('SELECT mails, mails_out, mails_without_derived FROM record_activity')).toEqual([
    { mails: 1, mails_out: 1, mails_without_derived: 1 },
  ])
})

test('one person with two addresses is one party', async () => {
  const { store, update } = workspace()
  store.put('members', MEMBERS)
  const named = (id: string, address: string) =>
    mail(id, address, 'aiko@own.example', {
      participants: [
        { role: 'FROM', handle: address, contact_id: 'k' },
        { role: 'TO', handle: 'aiko@own.example' },
      ],
    })
  store.put('message_copies', [named('a', 'jo@theirs.example'), named('b', 'Jo.Private@gmail.com')])
  await update()
  expect(store.all("SELECT person_id, side FROM people WHERE party_id = 'k' ORDER BY 1")).toEqual([
    { person_id: 'jo.private@gmail.com', side: 'theirs' },
    { person_id: 'jo@theirs.example', side: 'theirs' },
  ])
})

test('a withheld meeting has the time of its activity, no title, and shows only its owner', async () => {
  const { store, update } = workspace({ PARLEY_REPORTING_TIME_ZONE: 'Asia/Tokyo' })
  store.put('members', MEMBERS)
  store.exec("INSERT INTO meetings (id, access, _first_seen_at, _synced_at) VALUES ('w', 'withheld', '', '')")
  store.put('activities', [{ id: '1', source_type: 'MEETING', source_id: 'w', occurred_at: AT, links: [] }])
  await update()
  store.exec(`INSERT INTO meeting_attendees (meeting_id, position, email) VALUES ('w', 0, 'jo@theirs.example');
    INSERT INTO meeting_speakers (meeting_id, position, speaker_name) VALUES ('w', 0, '+1 555')`)
  await update()
  expect(store.all('SELECT * FROM conversation_people')).toEqual([])
  expect(store.all('SELECT day, local_hour, title, is_external, is_readable FROM conversations')).toEqual([
    { day: '2026-03-04', local_hour: 1, title: null, is_external: null, is_readable: 0 },
  ])
})

test('who spoke, and the share of the talking time, is that of the name in the meeting, unless two people have it', async () => {
  const { store, update } = workspace()
  putMeeting(store, 'm', 'open', {
    meeting_owner: { name: 'Aiko', email: 'aiko@own.example' },
    attendees: [guest('Jo', 'jo@a.example'), guest('Sam', 'sam@a.example'), guest('Sam', 'sam@b.example')],
    speakers: [
      { speaker_name: 'Aiko', speaker_ratio: 0.4 },
      { speaker_name: 'Jo', speaker_ratio: 0.3 },
      { speaker_name: 'Sam', speaker_ratio: 0.2 },
      { speaker_name: '+1 555', speaker_ratio: 0.1 },
    ],
  })
  await update()
  expect(
    store.all(
      'SELECT person_id, role, wrote_or_spoke, speaker_ratio FROM conversation_people ORDER BY 1, 2, 4',
    ),
  ).toEqual([
    { person_id: null, role: 'speaker', wrote_or_spoke: 1, speaker_ratio: 0.1 },
    { person_id: null, role: 'speaker', wrote_or_spoke: 1, speaker_ratio: 0.2 },
    { person_id: 'aiko@own.example', role: 'owner', wrote_or_spoke: 1, speaker_ratio: 0.4 },
    { person_id: 'jo@a.example', role: 'attendee', wrote_or_spoke: 1, speaker_ratio: 0.3 },
    { person_id: 'sam@a.example', role: 'attendee', wrote_or_spoke: 0, speaker_ratio: null },
    { person_id: 'sam@b.example', role: 'attendee', wrote_or_spoke: 0, speaker_ratio: null },
  ])
})

test('the share of a speaker whose name two people have is that of no known side', async () => {
  const { store, update } = workspace()
  store.put('members', MEMBERS)
  putMeeting(store, 'm', 'open', {
    meeting_owner: { name: 'Aiko', email: 'aiko@own.example' },
    attendees: [guest('Aiko', 'aiko@theirs.example'), guest('Jo', 'jo@theirs.example')],
    speakers: [
      { speaker_name: 'Aiko', speaker_ratio: 0.8 },
      { speaker_name: 'Jo', speaker_ratio: 0.2 },
    ],
  })
  await update()
  expect(store.all('SELECT speakers, ours_percent, theirs_percent, other_percent FROM talk_ratios')).toEqual([
    { speakers: 2, ours_percent: 0, theirs_percent: 20, other_percent: 80 },
  ])
})

test('a speaker without a share has spoken, and one with a share of 0 has not', async () => {
  const { store, update } = workspace()
  putMeeting(store, 'm', 'open', {
    meeting_owner: { name: 'Aiko', email: 'aiko@own.example' },
    attendees: [{ attendee_user_name: 'Jo', attendee_user_email: 'jo@a.example' }],
    speakers: [
      { speaker_name: 'Aiko', speaker_ratio: null },
      { speaker_name: 'Jo', speaker_ratio: 0 },
      { speaker_name: 'Room 1', speaker_ratio: null },
      { speaker_name: 'Room 2', speaker_ratio: 0 },
    ],
  })
  await update()
  expect(store.all('SELECT name, wrote_or_spoke, speaker_ratio FROM conversation_people ORDER BY 1')).toEqual(
    [
      { name: 'Aiko', wrote_or_spoke: 1, speaker_ratio: null },
      { name: 'Jo', wrote_or_spoke: 0, speaker_ratio: 0 },
      { name: 'Room 1', wrote_or_spoke: 1, speaker_ratio: null },
      { name: 'Room 2', wrote_or_spoke: 0, speaker_ratio: 0 },
    ],
  )
})

test('a meeting that is withheld later shows no share of the talking time', async () => {
  const { store, update } = workspace()
  putMeeting(store, 'm', 'open', {
    meeting_owner: { name: 'Aiko', email: 'aiko@own.example' },
    speakers: [{ speaker_name: 'Aiko', speaker_ratio: 0.4 }],
  })
  await update()
  store.exec("UPDATE meetings SET access = 'withheld'")
  await update()
  expect(store.all('SELECT person_id, speaker_ratio FROM conversation_people')).toEqual([
    { person_id: 'aiko@own.example', speaker_ratio: null },
  ])
})

test('an owner who attends under another name has the share of either name', async () => {
  const { store, update } = workspace()
  putMeeting(store, 'm', 'open', {
    meeting_owner: { name: 'Aiko Tanaka', email: 'aiko@own.example' },
    attendees: [{ attendee_user_name: 'Tanaka, Aiko', attendee_user_email: 'Aiko@own.example' }],
    speakers: [
      { speaker_name: 'Aiko Tanaka', speaker_ratio: 0.4 },
      { speaker_name: 'Tanaka, Aiko', speaker_ratio: 0.1 },
    ],
  })
  await update()
  expect(store.all('SELECT person_id, role, speaker_ratio FROM conversation_people')).toEqual([
    { person_id: 'aiko@own.example', role: 'owner', speaker_ratio: 0.5 },
  ])
})

test('a planned meeting is no last day until its day has come', async () => {
  const { store, update, passTime } = workspace()
  putMeeting(store, 'past', 'open', {
    start_time: '2026-03-02T09:00:00.000Z',
    related_objects: [{ object_type: 'deal', object_id: 'd' }],
  })
  putMeeting(store, 'planned', 'open', {
    start_time: '2026-03-20T09:00:00.000Z',
    related_objects: [{ object_type: 'deal', object_id: 'd' }],
  })
  const days = () => store.all('SELECT meetings, first_meeting_day, last_day FROM record_activity')
  await update()
  expect(days()).toEqual([{ meetings: 2, first_meeting_day: '2026-03-02', last_day: '2026-03-02' }])
  passTime(20 * 86_400_000)
  await update()
  expect(days()).toEqual([{ meetings: 2, first_meeting_day: '2026-03-02', last_day: '2026-03-20' }])
})

test('a question that waits counts its working hours until the warehouse is complete', async () => {
  const { store, update } = workspace()
  store.put('members', MEMBERS)
  store.put('message_copies', [mail('a', 'jo@theirs.example', 'aiko@own.example')])
  store.exec(`INSERT INTO sync_meta VALUES ('chosen_resources', '["messages"]') ON CONFLICT DO UPDATE SET value = excluded.value;
    UPDATE sync_resources SET complete_as_of = '2026-03-05T10:30:00.000Z' WHERE resource = 'messages'`)
  await update()
  expect(store.all('SELECT hours, work_hours, answered_at FROM mail_questions')).toEqual([
    { hours: 42.5, work_hours: 12.5, answered_at: null },
  ])
})

test('a side that changes asks and answers again', async () => {
  const { store, update } = workspace()
  store.put('members', MEMBERS)
  store.put('message_copies', [
    mail('a', 'jo@theirs.example', 'kim@theirs.example'),
    mail('b', 'aiko@own.example', 'jo@theirs.example', { received_at: '2026-03-03T17:00:00.000Z' }),
  ])
  await update()
  expect(store.column('SELECT answered_mail_id FROM mail_questions ORDER BY asked_at')).toEqual(['<b>', null])
  store.put('members', [...MEMBERS, { id: 'm3', name: 'Jo', email: 'jo@theirs.example' }])
  await update()
  expect(store.all('SELECT asked_mail_id, side, answered_mail_id FROM mail_questions')).toEqual([
    { asked_mail_id: '<a>', side: 'ours', answered_mail_id: null },
  ])
})

test('an e-mail among us waits for no answer, and one that may be to them does', async () => {
  const { store, update } = workspace()
  store.put('members', MEMBERS)
  store.put('message_copies', [
    mail('a', 'aiko@own.example', 'ben@own.example', { thread_id: 't1' }),
    mail('b', 'aiko@own.example', 'jo@theirs.example', { thread_id: 't2' }),
    mail('c', 'aiko@own.example', '', { thread_id: 't3' }),
  ])
  await update()
  expect(store.column('SELECT asked_mail_id FROM mail_questions ORDER BY 1')).toEqual(['<b>', '<c>'])
  store.put('members', [...MEMBERS, { id: 'm3', name: 'Jo', email: 'jo@theirs.example' }])
  await update()
  expect(store.column('SELECT asked_mail_id FROM mail_questions ORDER BY 1')).toEqual(['<c>'])
})

test('doctor counts the questions of a thread with e-mails among us as they are derived', async () => {
  const { store, update } = workspace()
  store.put('members', MEMBERS)
  const [ours, colleague, theirs] = ['aiko@own.example', 'ben@own.example', 'jo@theirs.example'] as const
  const sent = [
    [ours, theirs],
    [ours, colleague],
    [theirs, ours],
    [ours, colleague],
    [theirs, ours],
    [ours, theirs],
    [ours, colleague],
  ] as const
  store.put(
    'message_copies',
    sent.map(([from, to], hour) =>
      mail(`${hour}`, from, to, { received_at: `2026-03-03T0${hour}:00:00.000Z` }),
    ),
  )
  await update()
  expect(store.all('SELECT asked_mail_id, answered_mail_id FROM mail_questions ORDER BY 1')).toEqual([
    { asked_mail_id: '<0>', answered_mail_id: '<2>' },
    { asked_mail_id: '<2>', answered_mail_id: '<3>' },
    { asked_mail_id: '<4>', answered_mail_id: '<5>' },
    { asked_mail_id: '<5>', answered_mail_id: null },
  ])
  const found = [...dataFindings({ db: store.db, isWritten: false })]
  expect(found.filter(({ data }) => data?.table === 'mail_questions')).toEqual([])
})

test.each([
  ['one of theirs', { attendee_user_email: 'jo@theirs.example' }, 1],
  ['one of theirs without an address', { attendee_user_email: null, is_internal: false }, 1],
  ['somebody without an address', { attendee_user_email: null, is_internal: null }, null],
  ['one of ours without an address', { attendee_user_email: null, is_internal: true }, 0],
  ['only us', { attendee_user_email: 'ben@own.example' }, 0],
])('whether a meeting is external, with %s', async (_, attendee, isExternal) => {
  const { store, update } = workspace()
  store.put('members', MEMBERS)
  putMeeting(store, 'm', 'open', {
    meeting_owner: { name: 'Aiko', email: 'aiko@own.example' },
    attendees: [{ attendee_user_name: 'Jo', is_workspace_member: false, is_internal: null, ...attendee }],
    speakers: [],
  })
  await update()
  expect(store.column('SELECT is_external FROM conversations')).toEqual([isExternal])
})

test('an e-mail with a mistaken date hides no last day', async () => {
  const { store, update } = workspace()
  store.put('message_copies', [
    mail('a', 'jo@theirs.example', 'aiko@own.example'),
    mail('b', 'jo@theirs.example', 'aiko@own.example', { received_at: '9999-01-01T00:00:00.000Z' }),
  ])
  await update()
  expect(store.column("SELECT last_seen_day FROM parties WHERE party_id = 'jo@theirs.example'")).toEqual([
    '2026-03-03',
  ])
})

test('nothing is written while nothing changes', async () => {
  const { store, update } = workspace()
  store.put('message_copies', [mail('a', 'jo@theirs.example', 'aiko@own.example')])
  await update()
  const before = store.db.pragma('data_version')
  const changes = store.column('SELECT total_changes()')
  expect(await update()).toBe(0)
  expect([store.db.pragma('data_version'), store.column('SELECT total_changes()')]).toEqual([before, changes])
})

test('titles, names and addresses leave the file with the rows that have them', async () => {
  const { store, update } = workspace()
  store.put('message_copies', [mail('a', 'secret-jo@theirs.example', 'secret-sam@own.example')])
  putMeeting(store, 'm', 'open', {
    title: 'secret title',
    meeting_owner: { name: 'secret owner', email: 'secret@own.example' },
  })
  await update()
  const bytes = () => {
    store.db.pragma('wal_checkpoint(TRUNCATE)')
    return readFileSync(store.path).toString('latin1')
  }
  for (const text of ['secret-jo@theirs.example', 'secret title', 'Subject a'])
    expect(bytes()).toContain(text)
  store.atomically(() => {
    store.tombstone('message_copies', [['a']], NOW)
    store.tombstone('meetings', [['m']], NOW)
  })
  store.atomically(() => store.purger.purge({ before: '9999', limit: 100, now: NOW }))
  await update()
  expect(bytes()).not.toMatch(/secret|Subject a/)
})

test('a meeting belongs to the record of an object that parley reads only later', async () => {
  const { store, update } = workspace()
  putMeeting(store, 'm', 'open', { related_objects: [{ object_type: 'Projekt', object_id: 'x' }] })
  await update()
  store.put('crm_objects', [{ name: 'Projekt', label: 'Projekt', is_custom: true }], { requested: 'Projekt' })
  await update()
  expect(store.column('SELECT object FROM record_conversations')).toEqual(['Projekt'])
})

test('a member who is a contact too belongs to the company of the contact, also after it changes', async () => {
  const { store, update } = workspace()
  const contact = (company_id: string, now: string) =>
    store.put(
      'crm_records',
      [{ id: 'k', object: 'contact', fields: { name: 'Ben', email: 'ben@own.example', company_id } }],
      { requested: 'contact', now },
    )
  const field = (name: string, relation?: object) => ({
    ...{ name, label: name, type: relation ? 'RELATION' : 'TEXT', is_active: true },
    ...(relation && { relation }),
  })
  const company = { type: 'MANY_TO_ONE', target_object: 'company', target_resource: null }
  for (const [name, fields] of [
    ['contact', [field('name'), field('email'), field('company_id', company)]],
    ['company', [field('name')]],
  ] as const)
    store.put('crm_objects', [{ name, label: name, fields, is_custom: false }], { requested: name })
  store.put('members', MEMBERS)
  contact('c1', AT)
  await update()
  contact('c2', NOW)
  await update()
  expect(store.column("SELECT company_id FROM parties WHERE party_id = 'm2'")).toEqual(['c2'])
})

test('of two contacts with one address, the second by id has only the conversations for which the API names it', async () => {
  const { store, update } = workspace()
  const fields = ['name', 'email'].map(name => ({ name, label: name, type: 'TEXT', is_active: true }))
  store.put('crm_objects', [{ name: 'contact', label: 'contact', fields, is_custom: false }], {
    requested: 'contact',
  })
  const contacts = ['k1', 'k2'].map(id => ({
    ...{ id, object: 'contact', visibility: 'workspace' },
    fields: { name: id, email: 'jo@theirs.example' },
  }))
  store.put('crm_records', contacts, { requested: 'contact' })
  store.put('members', MEMBERS)
  const named = [
    { role: 'FROM', handle: 'jo@theirs.example', contact_id: 'k2' },
    { role: 'TO', handle: 'aiko@own.example' },
  ]
  store.put('message_copies', [
    mail('a', 'jo@theirs.example', 'aiko@own.example'),
    mail('b', 'jo@theirs.example', 'aiko@own.example', { participants: named }),
  ])
  await update()
  expect(store.all('SELECT contact_id, mails FROM contact_facts ORDER BY 1')).toEqual([
    { contact_id: 'k1', mails: 2 },
    { contact_id: 'k2', mails: 1 },
  ])
})

test.each([
  ['two people', false, false, '2026-03-03'],
  ['a group', true, false, null],
  ['two people by a group e-mail', false, true, null],
])('whether an answer to an e-mail to %s is of both sides', async (_, asked, answer, lastDay) => {
  const { store, update } = workspace()
  store.put('members', MEMBERS)
  store.put('message_copies', [
    mail('a', 'aiko@own.example', 'jo@theirs.example', { is_group_email: asked }),
    mail('b', 'jo@theirs.example', 'aiko@own.example', {
      received_at: '2026-03-03T17:00:00.000Z',
      is_group_email: answer,
    }),
  ])
  const activity = { id: '1', source_type: 'MESSAGE', source_id: 'b', occurred_at: AT }
  const links = [{ context_type: 'deal', context_id: 'd', origin: 'DIRECT' }]
  store.put('activities', [{ ...activity, links }])
  await update()
  expect(store.column('SELECT last_two_way_day FROM record_activity')).toEqual([lastDay])
})

test('an answer of a playbook is a number where it is one alone', async () => {
  const { store, update } = workspace()
  const answers = [
    '120000',
    '12.5',
    '-5',
    '-0.5',
    '5-',
    '--5',
    '1.2.3',
    '12 000',
    'about 5',
    '',
    '9'.repeat(400),
  ]
  putMeeting(store, 'm', 'open', {})
  store.put(
    'playbook_results',
    [
      {
        ...{ id: 'r', meeting_id: 'm', playbook_id: 'p', playbook_name: 'Qualification' },
        talk_point_results: answers.map((answer, index) => ({
          id: `a${index}`,
          question: 'How much?',
          answer,
        })),
      },
    ],
    { requested: 'm' },
  )
  putMeeting(store, 'm', 'open', {})
  await update()
  expect(
    store.column('SELECT answer_number FROM playbook_answers ORDER BY length(answer_id), answer_id'),
  ).toEqual([...[120000, 12.5, -5, -0.5], ...answers.slice(4).map(() => null)])
})

test.each([
  ['by default', {}, ['answered', 'answered', 'unanswered', 'unanswered', 'unanswered', 'missing']],
  [
    'by the settings',
    { PARLEY_REPORTING_NO_ANSWERS: 'None, keine angabe' },
    ['unanswered', 'unanswered', 'answered', 'unanswered', 'answered', 'missing'],
  ],
])('a question of a playbook is answered, unanswered or missing in a result, %s', async (_, env, states) => {
  const { store, update } = workspace(env)
  const answers = ['None', ' Keine Angabe.', 'Not discussed.', null, '不明。']
  const questions = [...answers.keys(), answers.length].map(index => ({ id: `q${index}`, question: 'Why?' }))
  putMeeting(store, 'm', 'open', {})
  store.put('playbooks', [{ id: 'p', name: 'New name', updated_at: AT, talk_points: questions }], {
    requested: 'p',
  })
  store.put(
    'playbook_results',
    [
      {
        ...{ id: 'r', meeting_id: 'm', playbook_id: 'p', playbook_name: 'Old name', created_at: NOW },
        talk_point_results: answers.map((answer, index) => ({
          ...{ id: `a${index}`, talk_point_id: `q${index}`, question: 'Old words?', answer },
        })),
      },
    ],
    { requested: 'm' },
  )
  putMeeting(store, 'm', 'open', {})
  await update()
  expect(store.column('SELECT state FROM playbook_answers ORDER BY answer_id')).toEqual(states)
  expect(store.all('SELECT DISTINCT playbook, question FROM playbook_answers')).toEqual([
    { playbook: 'New name', question: 'Why?' },
  ])
})

test('a member has each e-mail that the member wrote, and each meeting as owner or attendee, once', async () => {
  const { store, update } = workspace()
  store.put('members', MEMBERS)
  store.put('message_copies', [
    mail('a', 'AIKO@own.example', 'ben@own.example'),
    mail('b', 'jo@theirs.example', 'aiko@own.example'),
  ])
  putMeeting(store, 'm', 'open', {
    ...{ start_time: '2026-03-05T16:00:00.000Z', meeting_owner: { name: 'Aiko', email: 'aiko@own.example' } },
    attendees: [{ attendee_user_email: 'Aiko@own.example' }, { attendee_user_email: 'ben@own.example' }],
  })
  await update()
  expect(
    store.all(
      'SELECT member, conversation_id, role, days_since_first FROM member_conversations ORDER BY 1, 2',
    ),
  ).toEqual([
    { member: 'Aiko', conversation_id: '<a>', role: 'FROM', days_since_first: 0 },
    { member: 'Aiko', conversation_id: 'm', role: 'owner', days_since_first: 2 },
    { member: 'Ben', conversation_id: 'm', role: 'attendee', days_since_first: 2 },
  ])
})

const january = (day: number) => ({ now: new Date(Date.UTC(2026, 0, day)).toISOString() })

test('a member who changes address keeps what is under the earlier address', async () => {
  const { store, update } = workspace()
  const paul = { id: 'm3', name: 'Paul', email: 'Paul.Private@gmail.com' }
  store.put('members', [...MEMBERS, paul], january(1))
  store.put('message_copies', [
    mail('a', 'paul.private@gmail.com', 'jo@theirs.example'),
    mail('b', 'paul.private@gmail.com', 'aiko@own.example', { thread_id: 'u' }),
  ])
  const said = () => ({
    conversations: store.all('SELECT conversation_id, side, is_external FROM conversations ORDER BY 1'),
    own: store.all(
      "SELECT member, conversation_id, role FROM member_conversations WHERE member_id = 'm3' ORDER BY 2",
    ),
    parties: store.all(
      'SELECT party_id, name, side, member_id, first_seen_day FROM parties WHERE first_seen_day IS NOT NULL ORDER BY 1',
    ),
    asked: store.all('SELECT asked_mail_id, side FROM mail_questions ORDER BY 1'),
  })
  await update()
  const before = said()
  expect(before.own).toHaveLength(2)
  store.put('members', [{ ...paul, email: 'paul@own.example' }], january(2))
  await update()
  expect(said()).toEqual(before)
  const addresses =
    "SELECT person_id, party_id, name, side, is_member_now FROM people WHERE member_id = 'm3' ORDER BY 1"
  const all = { party_id: 'm3', name: 'Paul', side: 'ours', is_member_now: 1 }
  expect(store.all(addresses)).toEqual([
    { person_id: 'paul.private@gmail.com', ...all },
    { person_id: 'paul@own.example', ...all },
  ])
  store.put('members', [{ ...paul, name: 'Paul Rossi', email: 'paul@own.example' }], january(3))
  store.atomically(() => store.tombstone('members', [['m3']], january(4).now))
  await update()
  const former = { ...all, name: 'Paul Rossi', is_member_now: 0 }
  expect(store.all(addresses)).toEqual([
    { person_id: 'paul.private@gmail.com', ...former },
    { person_id: 'paul@own.example', ...former },
  ])
})

test('the address of a purged member stays on our side while a conversation has it', async () => {
  const { store, update } = workspace()
  store.put('members', [...MEMBERS, { id: 'm3', name: 'Paul', email: 'paul@gmail.com' }], january(1))
  store.put('message_copies', [
    mail('a', 'paul@gmail.com', 'jo@theirs.example'),
    mail('b', 'paul@gmail.com', 'aiko@own.example', { thread_id: 'u' }),
  ])
  const sides = () => store.all('SELECT conversation_id, side, is_external FROM conversations ORDER BY 1')
  await update()
  const before = sides()
  store.atomically(() => store.tombstone('members', [['m3']], january(2).now))
  store.atomically(() => store.purger.purge({ before: NOW, limit: 100, now: NOW }))
  await update()
  forgetDerived(store.db)
  await update()
  expect(sides()).toEqual(before)
  expect(store.all("SELECT party_id, side, member_id FROM people WHERE domain = 'gmail.com'")).toEqual([
    { party_id: 'paul@gmail.com', side: 'ours', member_id: null },
  ])
  store.atomically(() => store.tombstone('message_copies', [['a'], ['b']], NOW))
  store.atomically(() => store.purger.purge({ before: '9999', limit: 100, now: NOW }))
  await update()
  expect(store.column("SELECT person_id FROM people WHERE domain = 'gmail.com'")).toEqual([])
  expect(store.column('SELECT address FROM _former_addresses')).toEqual([])
})

test.each([
  ['the member was purged', false, true],
  ['the e-mail was purged', true, false],
])(
  'the address of a purged member is kept while needed, and no longer, when the tables are created again after %s',
  async (_, followsMember, followsMail) => {
    const { store, update } = workspace()
    store.put('members', [...MEMBERS, { id: 'm3', name: 'Paul', email: 'paul@gmail.com' }], january(1))
    store.put('message_copies', [mail('a', 'paul@gmail.com', 'jo@theirs.example')])
    await update()
    const createAgain = async (isFollowed: boolean) => {
      if (isFollowed) await update()
      store.db.exec('DROP TABLE _mail_questions')
      ensureReportTables(store.db)
      await update()
    }
    store.atomically(() => store.tombstone('members', [['m3']], january(2).now))
    store.atomically(() => store.purger.purge({ before: NOW, limit: 100, now: NOW }))
    await createAgain(followsMember)
    expect(store.column("SELECT side FROM people WHERE domain = 'gmail.com'")).toEqual(['ours'])
    store.atomically(() => store.tombstone('message_copies', [['a']], NOW))
    store.atomically(() => store.purger.purge({ before: '9999', limit: 100, now: NOW }))
    await createAgain(followsMail)
    expect(store.column('SELECT address FROM _former_addresses')).toEqual([])
    expect(store.column('SELECT person_id FROM people ORDER BY 1')).toEqual([
      'aiko@own.example',
      'ben@own.example',
    ])
  },
)

test('an earlier address that a contact has is that of the contact, since it may have been a mistake', async () => {
  const { store, update } = workspace()
  const fields = ['name', 'email'].map(name => ({ name, label: name, type: 'TEXT', is_custom: false }))
  store.put('crm_objects', [{ name: 'contact', label: 'contact', fields, is_custom: false }], {
    requested: 'contact',
  })
  const jo = { id: 'jo', object: 'contact', fields: { name: 'Jo', email: 'jo@theirs.example' } }
  store.put('crm_records', [jo], { requested: 'contact' })
  store.put('members', [...MEMBERS, { id: 'm3', name: 'Paul', email: 'jo@theirs.example' }], january(1))
  store.put('message_copies', [mail('a', 'jo@theirs.example', 'aiko@own.example')])
  const whose = () => store.all("SELECT party_id, side FROM people WHERE person_id = 'jo@theirs.example'")
  await update()
  expect(whose()).toEqual([{ party_id: 'm3', side: 'ours' }])
  store.put('members', [{ id: 'm3', name: 'Paul', email: 'paul@own.example' }], january(2))
  await update()
  expect(whose()).toEqual([{ party_id: 'jo', side: 'theirs' }])
})

test('an address that several members had belongs to its holder, else to its last holder', async () => {
  const { store, update } = workspace()
  const one = { id: 'm3', name: 'One', email: 'sales@own.example' }
  const other = { id: 'm4', name: 'Other', email: 'sales@own.example' }
  const holder = async () => {
    await update()
    return store.column("SELECT member_id FROM people WHERE person_id = 'sales@own.example'")
  }
  store.put('members', [...MEMBERS, one], january(1))
  expect(await holder()).toEqual(['m3'])
  store.put('members', [{ ...one, email: 'one@own.example' }], january(2))
  expect(await holder()).toEqual(['m3'])
  store.put('members', [other], january(3))
  expect(await holder()).toEqual(['m4'])
  store.atomically(() => store.tombstone('members', [['m4']], january(4).now))
  expect(await holder()).toEqual(['m4'])
  store.put('members', [one], january(5))
  expect(await holder()).toEqual(['m3'])
})

test('a member who takes part in a meeting under two addresses has it once, as its owner', async () => {
  const { store, update } = workspace()
  store.put('members', [{ id: 'm1', name: 'Aiko', email: 'aiko@old.example' }], january(1))
  store.put('members', MEMBERS, january(2))
  putMeeting(store, 'm', 'open', {
    meeting_owner: { name: 'Aiko', email: 'aiko@own.example' },
    attendees: [{ attendee_user_email: 'aiko@old.example' }, { attendee_user_email: 'ben@own.example' }],
  })
  await update()
  expect(store.all('SELECT member, role FROM member_conversations ORDER BY 1')).toEqual([
    { member: 'Aiko', role: 'owner' },
    { member: 'Ben', role: 'attendee' },
  ])
})

const speakers = (...shares: readonly [string, number][]) =>
  shares.map(([speaker_name, speaker_ratio]) => ({ speaker_name, speaker_ratio }))

test('a member has the share of the talking time under all addresses that the member has or had', async () => {
  const { store, update } = workspace()
  store.put('members', [{ id: 'm1', name: 'Aiko', email: 'aiko@old.example' }], january(1))
  store.put('members', MEMBERS, january(2))
  const attendees = [
    { attendee_user_name: 'Aiko', attendee_user_email: 'aiko@own.example' },
    { attendee_user_name: 'Jo', attendee_user_email: 'jo@theirs.example' },
  ]
  const meeting_owner = { name: 'Aiko M', email: 'aiko@old.example' }
  putMeeting(store, 'a', 'open', {
    ...{ meeting_owner, attendees },
    speakers: speakers(['Aiko', 0.75], ['Jo', 0.25]),
  })
  putMeeting(store, 'b', 'open', {
    ...{ meeting_owner, attendees },
    speakers: speakers(['Aiko', 0.25], ['Aiko M', 0.5], ['Jo', 0.25]),
  })
  await update()
  expect(
    store.all('SELECT conversation_id, role, talk_percent FROM member_conversations ORDER BY 1'),
  ).toEqual([
    { conversation_id: 'a', role: 'owner', talk_percent: 75 },
    { conversation_id: 'b', role: 'owner', talk_percent: 75 },
  ])
})

test('a speaker whose name stands at two addresses is one person while one member has or had both', async () => {
  const { store, update } = workspace()
  const aiko = (email: string, now: { now: string }) =>
    store.put('members', [{ id: 'm1', name: 'Aiko', email }], now)
  aiko('aiko@new.example', january(1))
  putMeeting(store, 'm', 'open', {
    meeting_owner: { name: 'Aiko', email: 'aiko@new.example' },
    attendees: [
      { attendee_user_name: 'Aiko', attendee_user_email: 'aiko@old.example' },
      { attendee_user_name: 'Jo', attendee_user_email: 'jo@theirs.example' },
    ],
    speakers: speakers(['Aiko', 0.75], ['Jo', 0.25]),
  })
  const said = async () => {
    await update()
    const people = 'SELECT person_id, wrote_or_spoke, speaker_ratio FROM conversation_people ORDER BY 1, 2'
    return {
      people: store.all(people).map(row => Object.values(row)),
      percent: store.column('SELECT talk_percent FROM member_conversations'),
      shares: store.all('SELECT ours_percent, other_percent FROM talk_ratios'),
    }
  }
  const two = {
    people: [
      [null, 1, 0.75],
      ['aiko@new.example', 0, null],
      ['aiko@old.example', 0, null],
      ['jo@theirs.example', 1, 0.25],
    ],
    shares: [{ ours_percent: 0, other_percent: 75 }],
  }
  const one = {
    people: [
      ['aiko@new.example', 1, null],
      ['aiko@old.example', 1, 0.75],
      ['jo@theirs.example', 1, 0.25],
    ],
    percent: [75],
    shares: [{ ours_percent: 75, other_percent: 0 }],
  }
  expect(await said()).toEqual({ ...two, percent: [null] })
  aiko('aiko@old.example', january(2))
  expect(await said()).toEqual(one)
  aiko('aiko@new.example', january(3))
  expect(await said()).toEqual(one)
  store.atomically(() => store.tombstone('members', [['m1']], january(4).now))
  expect(await said()).toEqual({ ...one, percent: [] })
  store.atomically(() => store.purger.purge({ before: NOW, limit: 100, now: NOW }))
  expect(await said()).toEqual({ ...two, percent: [] })
})

test('a company has the withheld meetings since the last contact of both sides, and is that of a partner or not', async () => {
  const { store, update } = workspace({ PARLEY_REPORTING_PARTNER_DOMAINS: 'partner.example' })
  const field = (name: string) => ({ name, label: name, type: 'TEXT', is_active: true })
  const companies = [
    { id: 'c', object: 'company', fields: { name: 'Theirs', domain: 'theirs.example' } },
    { id: 'p', object: 'company', fields: { name: 'Partner', domain: 'partner.example' } },
  ]
  store.put(
    'crm_objects',
    [{ name: 'company', label: 'Company', fields: [field('name'), field('domain')], is_custom: false }],
    { requested: 'company' },
  )
  store.put('crm_records', companies, { requested: 'company' })
  store.put('members', MEMBERS)
  store.put('message_copies', [mail('a', 'aiko@own.example', 'jo@partner.example')])
  const meetings = [
    ['before', '2026-03-01T10:00:00.000Z', 'withheld'],
    ['contact', '2026-03-02T10:00:00.000Z', 'open'],
    ['after', '2026-03-03T10:00:00.000Z', 'withheld'],
  ] as const
  for (const [id, start_time, access] of meetings)
    putMeeting(store, id, access, {
      ...{ start_time, meeting_owner: { name: 'Aiko', email: 'aiko@own.example' } },
      attendees: [{ attendee_user_email: 'jo@theirs.example' }],
    })
  store.put(
    'activities',
    meetings.map(([id, occurred_at]) => ({
      ...{ id, source_type: 'MEETING', source_id: id, occurred_at },
      links: [{ context_type: 'company', context_id: 'c', origin: 'DIRECT' }],
    })),
  )
  await update()
  const columns = 'company, last_two_way_day, withheld_meetings, is_partner'
  expect(store.all(`SELECT ${columns} FROM company_facts ORDER BY company_id`)).toEqual([
    { company: 'Theirs', last_two_way_day: '2026-03-02', withheld_meetings: 1, is_partner: 0 },
    { company: 'Partner', last_two_way_day: null, withheld_meetings: 0, is_partner: 1 },
  ])
})
