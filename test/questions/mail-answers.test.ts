import { expect, test } from 'vitest'
import { type SmallWorkspace, smallWorkspace } from './small-workspace.ts'

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
