import { expect, test } from 'vitest'
import { inDuckdb } from './duckdb-answers.ts'
import { only, type SmallWorkspace, smallWorkspace } from './small-workspace.ts'

const YEAR = { since: "'2025-01-01'", until: "'2026-01-01'" }
const at = (day: number, hour = 12) =>
  `2025-03-${String(day).padStart(2, '0')}T${String(hour).padStart(2, '0')}:00:00Z`

/** One member with a capital letter in the address, and one who left and had an address elsewhere. */
function withMembers(): SmallWorkspace {
  const workspace = smallWorkspace()
  workspace.members(
    { id: 'aiko', name: 'Aiko', email: 'Aiko@Our.example' },
    { id: 'left', name: 'Left', email: 'left@former.example' },
  )
  workspace.tombstone('members', 'left')
  return workspace
}

test('a domain counts an e-mail once, whatever its copies, roles and letter case', () => {
  const workspace = withMembers()
  const people = [
    'FROM aiko@our.example',
    'TO one@Theirs.example',
    'CC left@former.example',
    'BCC two@theirs.EXAMPLE',
  ]
  workspace.mail({ id: 'a', header: '<1>', at: at(1), people })
  workspace.mail({ id: 'b', header: '<1>', at: at(2), people })
  workspace.mail({
    id: 'c',
    header: '',
    at: at(3),
    people: ['FROM ONE@theirs.example', 'TO aiko@our.example'],
  })
  workspace.mail({ id: 'd', header: '', at: at(4), people: ['FROM nobody', 'BCC three@theirs.example'] })
  workspace.records('company', [
    { id: 'c1', name: 'Another', domain: 'THEIRS.example' },
    { id: 'c2', name: 'Theirs', domain: 'theirs.example' },
  ])
  workspace.records('contact', [{ id: 'p1', name: 'A person', domain: 'theirs.example' }])
  expect(workspace.ask('external-domains', YEAR)).toEqual([
    {
      domain: 'theirs.example',
      company: 'Another',
      mails: 3,
      from_them: 1,
      to_them: 2,
      people: 3,
      last_mail: '2025-03-04T12:00',
    },
  ])
})

test('an e-mail answers the e-mails of the other side that wait, from the first and from the last', () => {
  const workspace = withMembers()
  const send = (
    id: string,
    day: number,
    hour: number,
    people: readonly string[],
    thread: string | null = 't',
  ) => workspace.mail({ id, thread, at: at(day, hour), people })
  send('1', 1, 0, ['FROM one@theirs.example'])
  send('2', 1, 4, ['FROM one@theirs.example'])
  send('3', 1, 7, ['FROM AIKO@our.example', 'FROM one@theirs.example'])
  send('4', 1, 8, ['FROM left@former.example'])
  send('5', 1, 9, ['FROM not-an-address'])
  send('6', 1, 10, ['TO one@theirs.example'])
  send('7', 1, 13, ['FROM one@theirs.example'])
  send('8', 1, 20, ['FROM one@theirs.example'], null)
  send('9', 1, 21, ['FROM aiko@our.example'], null)
  expect(workspace.ask('response-times-by-month', YEAR)).toEqual([
    march({ ours: [1, 7, 3], theirs: [1, 6, 5] }),
  ])
  const columns = ['received', 'side', 'hours_from_first', 'hours_from_last']
  expect(only(workspace.ask('response-times-in-thread'), ...columns)).toEqual(
    [
      ['00', 'theirs', null, null],
      ['04', 'theirs', null, null],
      ['07', 'ours', 7, 3],
      ['08', 'ours', null, null],
      ['09', 'unknown', null, null],
      ['10', 'unknown', null, null],
      ['13', 'theirs', 6, 5],
    ].map(([hour, side, hours_from_first, hours_from_last]) => ({
      received: `2025-03-01T${hour}:00`,
      side,
      hours_from_first,
      hours_from_last,
    })),
  )
})

/** A row of response-times-by-month: number, hours from the first and from the last, of each side. */
function march({ ours, theirs }: Record<'ours' | 'theirs', [number, number | null, number | null]>) {
  return {
    month: '2025-03',
    our_answers: ours[0],
    our_hours_from_first: ours[1],
    our_hours_from_last: ours[2],
    their_answers: theirs[0],
    their_hours_from_first: theirs[1],
    their_hours_from_last: theirs[2],
  }
}

test.each([
  ['as they are', ['a', 'b', 'c', 'd']],
  ['with their Message-IDs in the opposite order', ['d', 'c', 'b', 'a']],
])(
  'e-mails of one second do not answer each other, %s',
  async (_, [first = '', second = '', third = '', fourth = '']) => {
    const workspace = withMembers()
    const send = (id: string, hour: number, from: string) =>
      workspace.mail({ id, thread: 't', at: at(1, hour), people: [`FROM ${from}`] })
    send(first, 1, 'one@theirs.example')
    send(second, 1, 'aiko@our.example')
    send(third, 5, 'aiko@our.example')
    send(fourth, 5, 'one@theirs.example')
    for (const ask of [workspace.ask, await inDuckdb(workspace)]) {
      expect(await ask('response-times-by-month', YEAR)).toEqual([
        march({ ours: [1, 4, 4], theirs: [1, 4, 4] }),
      ])
      const hours = await ask('response-times-in-thread', { thread: "'t'" })
      expect(hours.map(({ side, hours_from_first }) => `${side} ${hours_from_first}`).sort()).toEqual([
        'ours 4',
        'ours null',
        'theirs 4',
        'theirs null',
      ])
    }
  },
)

test('several e-mails of one second are one answer, and a reminder makes nobody faster', async () => {
  const workspace = withMembers()
  const send = (id: string, hour: number, from: string) =>
    workspace.mail({ id, thread: 't', at: at(1, hour), people: [`FROM ${from}`] })
  send('question', 1, 'one@theirs.example')
  send('reminder', 9, 'one@theirs.example')
  send('answer', 11, 'aiko@our.example')
  send('attachment', 11, 'left@former.example')
  send('addition', 12, 'aiko@our.example')
  for (const ask of [workspace.ask, await inDuckdb(workspace)]) {
    expect(await ask('response-times-by-month', YEAR)).toEqual([
      march({ ours: [1, 10, 2], theirs: [0, null, null] }),
    ])
  }
})

test('an answer counts in the month in which it was received, however long before the period the question came', async () => {
  const workspace = withMembers()
  const send = (id: string, at: string, from: string) =>
    workspace.mail({ id, thread: 't', at, people: [`FROM ${from}`] })
  send('question', '2025-02-28T22:00:00Z', 'one@theirs.example')
  send('answer', '2025-03-01T02:00:00Z', 'aiko@our.example')
  send('later', '2025-04-01T02:00:00Z', 'one@theirs.example')
  const march2025 = { since: "'2025-03-01'", until: "'2025-04-01'" }
  for (const ask of [workspace.ask, await inDuckdb(workspace)]) {
    expect(await ask('response-times-by-month', march2025)).toEqual([
      march({ ours: [1, 4, 4], theirs: [0, null, null] }),
    ])
  }
})

test('an e-mail answers the latest one before it, in any thread of any mailbox', () => {
  const workspace = withMembers()
  const send = (id: string, header: string, thread: string, minutes: string, from: string) =>
    workspace.mail({ id, header, thread, at: `2025-03-01T${minutes}:00Z`, people: [`FROM ${from}`] })
  send('1', '<first>', 'mailbox A', '00:00', 'one@theirs.example')
  send('2', '<first>', 'mailbox B', '00:01', 'one@theirs.example')
  send('3', '<second>', 'mailbox B', '01:00', 'one@theirs.example')
  send('4', '<answer>', 'mailbox A', '02:00', 'aiko@our.example')
  send('5', '<answer>', 'mailbox B', '02:09', 'aiko@our.example')
  send('6', '<thanks>', 'mailbox B', '05:00', 'one@theirs.example')
  send('7', '<thanks>', 'mailbox C', '05:01', 'one@theirs.example')
  expect(workspace.ask('response-times-by-month', YEAR)).toEqual([
    march({ ours: [1, 2, 1], theirs: [1, 3, 3] }),
  ])
})

test('the median of an even number of answers is the mean of the middle two', () => {
  const workspace = withMembers()
  for (const [place, hours] of [1, 2, 6, 20].entries()) {
    workspace.mail({
      id: `q${place}`,
      thread: `t${place}`,
      at: at(1, 0),
      people: ['FROM one@theirs.example'],
    })
    workspace.mail({
      id: `a${place}`,
      thread: `t${place}`,
      at: at(1, hours),
      people: ['FROM aiko@our.example'],
    })
  }
  expect(only(workspace.ask('response-times-by-month', YEAR), 'our_answers', 'our_hours_from_last')).toEqual([
    { our_answers: 4, our_hours_from_last: 4 },
  ])
})

test('the e-mails and meetings of a member are found in any letter case, and copies count once', () => {
  const workspace = withMembers()
  workspace.mail({
    id: 'a',
    header: '<1>',
    at: at(1),
    people: ['FROM AIKO@our.example', 'TO x@theirs.example'],
  })
  workspace.mail({
    id: 'b',
    header: '<1>',
    at: at(1),
    people: ['FROM AIKO@our.example', 'TO x@theirs.example'],
  })
  workspace.mail({ id: 'c', at: at(2), people: ['FROM left@former.example'] })
  // Its first copy hides the sender.
  workspace.mail({ id: 'd', header: '<2>', at: at(2), people: ['TO x@theirs.example'] })
  workspace.mail({
    id: 'e',
    header: '<2>',
    at: at(3),
    people: ['FROM aiko@our.example', 'FROM Aiko@our.example'],
  })
  workspace.meeting({ id: 'm', at: at(3), more: { meeting_owner: { email: 'aiko@OUR.example' } } })
  expect(workspace.ask('activity-by-member', YEAR)).toEqual([
    { month: '2025-03', member: 'Aiko', mails_sent: 2, meetings_held: 1 },
  ])
})

test('a member talks to an outside contact by e-mails between the two, and by meetings that both attend', () => {
  const workspace = withMembers()
  workspace.members({ id: 'ben', name: 'Ben', email: 'ben@our.example' })
  workspace.records('contact', [{ id: 'p1', name: 'Priya' }])
  workspace.records('company', [{ id: 'p2', name: 'No contact' }])
  const people = ['FROM one@theirs.example p1', 'TO aiko@our.example', 'CC two@theirs.example p2']
  workspace.mail({ id: 'a', header: '<1>', at: at(1), people })
  workspace.mail({ id: 'b', header: '<1>', at: at(2), people })
  workspace.mail({ id: 'c', at: at(3), people: ['FROM aiko@our.example', 'TO BEN@our.example p2'] })
  // One mailbox knows the member by the address, the other one the contact.
  workspace.mail({ id: 'd', header: '<2>', at: at(1), people: ['FROM ben@our.example'] })
  workspace.mail({ id: 'e', header: '<2>', at: at(2), people: ['TO one@theirs.example p1'] })
  const attendees = [
    { attendee_user_email: 'AIKO@our.example', contact_id: null },
    { attendee_user_email: 'two@theirs.example', contact_id: 'p2' },
    { attendee_user_email: 'ben@our.example', contact_id: 'p1' },
  ]
  workspace.meeting({ id: 'm', at: at(4), more: { attendees } })
  workspace.meeting({ id: 'hidden', at: at(5), access: 'withheld', more: { attendees } })
  const met = {
    contact: 'contact not published',
    mails: 0,
    meetings: 1,
    last_talk: '2025-03-04T12:00',
    contact_id: 'p2',
  }
  const wrote = { contact: 'Priya', mails: 1, meetings: 0, last_talk: '2025-03-01T12:00', contact_id: 'p1' }
  expect(workspace.ask('who-talks-to-whom', YEAR)).toEqual([
    { member: 'Aiko', ...met },
    { member: 'Ben', ...met },
    { member: 'Aiko', ...wrote },
    { member: 'Ben', ...wrote },
  ])
})
