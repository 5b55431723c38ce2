import { groupedBy } from '../support/grouped-by.ts'
import { exactHours, ordered } from './counting.ts'
import type { Cells, DemoWarehouse } from './demo-warehouse.ts'
import { domainOf, type Expected, minute, ownDomains, quoted, type Recount, text, within } from './recount.ts'

const isAsked = within('2025-07-01', '2026-06-01')
const ASKED = { since: quoted('2025-07-01'), until: quoted('2026-06-01') }

export const MAIL_RECOUNTS: Readonly<Record<string, Recount>> = {
  'external-domains': { parameters: ASKED, least: 10, expected: domains },
  'response-times-in-thread': { parameters: {}, least: 3, expected: answersInThread },
  'who-talks-to-whom': { parameters: ASKED, least: 50, expected: pairs },
  'activity-by-member': { parameters: ASKED, least: 40, expected: byMember },
}

interface Mail {
  key: string
  received: string
  /** The people of every copy. */
  people: readonly Cells[]
}

/** E-mails of the requested period. */
function mails(warehouse: DemoWarehouse): Mail[] {
  return allMails(warehouse).filter(({ received }) => isAsked(received))
}

function allMails(warehouse: DemoWarehouse): Mail[] {
  const copies = copiesByMail(warehouse)
  return warehouse
    .rows('messages')
    .filter(({ received_at }) => received_at !== null)
    .map(mail => ({
      key: text(mail, 'header_message_id'),
      received: text(mail, 'received_at'),
      people: (copies.get(text(mail, 'header_message_id')) ?? []).flatMap(({ people }) => people),
    }))
}

interface Copy {
  key: string
  row: Cells
  people: readonly Cells[]
}

function copiesByMail(warehouse: DemoWarehouse): Map<string, Copy[]> {
  const people = groupedBy(warehouse.rows('message_copy_participants'), row => text(row, 'message_id'))
  const copies = warehouse.rows('message_copies').map(row => ({
    key: text(row, 'header_message_id') || `id:${row['id']}`,
    row,
    people: people.get(text(row, 'id')) ?? [],
  }))
  return groupedBy(copies, ({ key }) => key)
}

function domains(warehouse: DemoWarehouse): Expected[] {
  const own = ownDomains(warehouse)
  const companies = new Map(
    ordered(warehouse.records('company'), { by: ({ fields }) => String(fields['name']), down: true }).map(
      ({ fields }) => [fields['domain'], fields['name']],
    ),
  )
  const seen = mails(warehouse).flatMap(({ key, received, people }) =>
    people.map(person => ({
      key,
      received,
      role: person['role'],
      handle: text(person, 'handle').toLowerCase(),
    })),
  )
  const groups = groupedBy(
    seen.filter(({ handle }) => !own.has(domainOf(handle))),
    ({ handle }) => domainOf(handle),
  )
  const distinct = (all: readonly { key: string }[]) => new Set(all.map(({ key }) => key)).size
  const rows = [...groups].map(([domain, all]) => ({
    domain,
    company: String(companies.get(domain) ?? 'no company in the CRM'),
    mails: distinct(all),
    from_them: distinct(all.filter(({ role }) => role === 'FROM')),
    to_them: distinct(all.filter(({ role }) => role !== 'FROM')),
    people: new Set(all.map(({ handle }) => handle)).size,
    last_mail: minute(
      all
        .map(({ received }) => received)
        .sort()
        .at(-1),
    ),
  }))
  return ordered(rows, { by: row => row.mails, down: true }, { by: ({ domain }) => domain }).slice(0, 50)
}

interface Sent {
  key: string
  received: string
  subject: string | null
  sender: string | undefined
  side: 'ours' | 'theirs' | 'unknown'
}

/** The merged e-mails of each thread, oldest first, with who sent the first copy. */
function threads(warehouse: DemoWarehouse): Map<string, Sent[]> {
  const own = ownDomains(warehouse)
  const senders = new Map(
    warehouse
      .rows('message_copy_participants')
      .filter(({ role }) => role === 'FROM')
      .map(row => [text(row, 'message_id'), text(row, 'handle')]),
  )
  const sent = warehouse.rows('messages').filter(({ thread_id }) => thread_id !== null)
  const groups = groupedBy(sent, row => text(row, 'thread_id'))
  return new Map(
    [...groups].map(([thread, all]) => [
      thread,
      ordered(
        all.map((row): Sent => {
          const sender = senders.get(text(row, 'id'))
          const side = sender === undefined ? 'unknown' : own.has(domainOf(sender)) ? 'ours' : 'theirs'
          const subject = row['subject'] === null ? null : text(row, 'subject')
          return {
            key: text(row, 'header_message_id'),
            received: text(row, 'received_at'),
            subject,
            sender,
            side,
          }
        }),
        { by: ({ received }) => received },
        { by: ({ key }) => key },
      ),
    ]),
  )
}

/** What an e-mail answers: the e-mails of the other side before it that its own side has not answered yet. */
function unanswered<Mail extends { received: string; side: string }>(
  mail: Mail,
  thread: readonly Mail[],
): Mail[] {
  const earlier = thread.filter(({ received }) => received < mail.received)
  const ownLast = earlier
    .filter(({ side }) => side === mail.side)
    .map(({ received }) => received)
    .sort()
    .at(-1)
  return ordered(
    earlier.filter(({ side, received }) => side !== mail.side && received >= (ownLast ?? '')),
    { by: ({ received }) => received },
  )
}

function answersInThread(warehouse: DemoWarehouse): Expected[] {
  const long = [...threads(warehouse).values()].flatMap(all => {
    const third = all
      .filter(mail => all.filter(({ received }) => received < mail.received).length >= 2)
      .at(-1)
    return third ? [{ all, newest: third.received }] : []
  })
  const [newest] = ordered(long, { by: each => each.newest, down: true })
  const all = newest?.all ?? []
  const known = all.filter(({ side }) => side !== 'unknown')
  return all.map(mail => {
    const { received, side, sender, subject, key } = mail
    const isSaidBefore = known.some(
      other => other.side === side && other.received === received && other.key < key,
    )
    const asked = side === 'unknown' || isSaidBefore ? [] : unanswered(mail, known)
    const hoursFrom = (first: Sent | undefined) => (first ? exactHours(first.received, received) : null)
    return {
      received: minute(received),
      side,
      sender: sender ?? null,
      hours_from_first: hoursFrom(asked[0]),
      hours_from_last: hoursFrom(asked.at(-1)),
      subject: subject ?? '(no subject, or hidden)',
    }
  })
}

interface Talk {
  member: string
  contact: string
  talk: string
  at: string
}

function pairs(warehouse: DemoWarehouse): Expected[] {
  const members = new Map(warehouse.rows('members').map(row => [text(row, 'email').toLowerCase(), row]))
  const memberOf = (row: Cells, column: string) => members.get(text(row, column).toLowerCase())
  const written = mails(warehouse).flatMap(({ key, received, people }): Talk[] =>
    people.flatMap(us =>
      people.flatMap(them => {
        const member = memberOf(us, 'handle')
        const isPair = (us['role'] === 'FROM') !== (them['role'] === 'FROM')
        if (!member || !isPair || them['contact_id'] === null || memberOf(them, 'handle')) return []
        return {
          member: text(member, 'id'),
          contact: text(them, 'contact_id'),
          talk: `mail ${key}`,
          at: received,
        }
      }),
    ),
  )
  const attendees = groupedBy(warehouse.rows('meeting_attendees'), row => text(row, 'meeting_id'))
  const held = warehouse
    .rows('meetings')
    .filter(({ access, start_time }) => access === 'open' && isAsked(start_time))
    .flatMap((meeting): Talk[] => {
      const people = attendees.get(text(meeting, 'id')) ?? []
      const at = text(meeting, 'start_time')
      return people.flatMap(us =>
        people.flatMap(them => {
          const member = memberOf(us, 'email')
          if (!member || them['contact_id'] === null || memberOf(them, 'email')) return []
          const talk = `meeting ${meeting['id']}`
          return { member: text(member, 'id'), contact: text(them, 'contact_id'), talk, at }
        }),
      )
    })
  const names = new Map(warehouse.rows('members').map(row => [text(row, 'id'), text(row, 'name')]))
  const contacts = new Map(warehouse.records('contact').map(({ id, fields }) => [id, String(fields['name'])]))
  const groups = groupedBy([...written, ...held], ({ member, contact }) => `${member} ${contact}`)
  const rows = [...groups.values()].map(all => {
    const distinct = [...new Set(all.map(({ talk }) => talk))]
    const [first] = all
    return {
      member: names.get(first?.member ?? '') ?? '',
      contact: contacts.get(first?.contact ?? '') ?? 'contact not published',
      mails: distinct.filter(talk => talk.startsWith('mail ')).length,
      meetings: distinct.filter(talk => talk.startsWith('meeting ')).length,
      last_talk: minute(
        all
          .map(({ at }) => at)
          .sort()
          .at(-1),
      ),
      contact_id: first?.contact ?? '',
    }
  })
  return ordered(
    rows,
    { by: row => row.mails + row.meetings, down: true },
    { by: row => row.last_talk, down: true },
    { by: ({ member }) => member },
    { by: ({ contact_id }) => contact_id },
  ).slice(0, 100)
}

function byMember(warehouse: DemoWarehouse): Expected[] {
  const members = new Map(warehouse.rows('members').map(row => [text(row, 'email').toLowerCase(), row]))
  const sent = mails(warehouse).flatMap(({ received, people }) => {
    const from = people.filter(({ role }) => role === 'FROM').map(row => text(row, 'handle').toLowerCase())
    return [...new Set(from)].map(email => ({ email, at: received, isMail: true }))
  })
  const held = warehouse.rows('meetings').flatMap(({ access, owner_email, start_time }) => {
    return access === 'open' && isAsked(start_time)
      ? [{ email: owner_email, at: String(start_time), isMail: false }]
      : []
  })
  const known = [...sent, ...held].flatMap(({ email, at, isMail }) => {
    const member = members.get(String(email).toLowerCase())
    return member ? [{ member, month: at.slice(0, 7), isMail }] : []
  })
  const groups = groupedBy(known, ({ member, month }) => `${month} ${member['id']}`)
  const rows = [...groups.values()].map(all => ({
    month: all[0]?.month ?? '',
    member: text(all[0]?.member, 'name'),
    mails_sent: all.filter(({ isMail }) => isMail).length,
    meetings_held: all.filter(({ isMail }) => !isMail).length,
  }))
  return ordered(
    rows,
    { by: ({ month }) => month, down: true },
    { by: row => row.mails_sent + row.meetings_held, down: true },
    { by: ({ member }) => member },
  )
}
