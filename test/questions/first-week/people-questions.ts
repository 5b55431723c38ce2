import { groupedBy } from '../../support/grouped-by.ts'
import { countOf, distinct, latest, sortedBy } from './counting.ts'
import { openDeals, ownerOf, stageOf, touchesIn } from './deals.ts'
import { dayOf, daysBetween, lastMonths } from './local-time.ts'
import {
  attendeesOf,
  heldMeetings,
  isWithin,
  membersIn,
  type Person,
  peopleOf,
  recipientsOf,
  senderOf,
} from './people.ts'
import type { AnswerRow, Question } from './question.ts'
import type { Contact, Mail, World } from './world-rows.ts'

/** Questions about who talks with whom. */

const RECENT = 90

const everyoneIn = (world: World, mail: Mail): Person[] =>
  [senderOf(world, mail), ...recipientsOf(world, mail)].flatMap(person => person ?? [])

const withoutSecondAddresses = (world: World): World => ({
  ...world,
  contacts: world.contacts.map(contact => ({ ...contact, secondEmail: null })),
  mails: world.mails.map(mail => ({
    ...mail,
    participants: mail.participants.map(each => ({ ...each, contactId: null })),
  })),
})

// ------------------------------------------------------------------------------------------------ domains

const externalDomains: Question = {
  name: 'external-domains',
  meaning: `E-mails of the last ${RECENT} days with an address at the domain that is not ours; an e-mail counts once for a
domain. People are counted as persons: two addresses of one contact are one. The company is the one with the domain.
The first fifty, ordered by the number of e-mails, most first, then by domain.`,
  key: ['domain'],
  columns: ['domain', 'side', 'company', 'mails', 'from_them', 'to_them', 'people', 'last_day'],
  answer: domains,
  trap: {
    overlooks: 'that the domain of a partner is one',
    answer: world => domains({ ...world, settings: { ...world.settings, partnerDomains: [] } }),
  },
}

function domains(world: World): AnswerRow[] {
  const seen = world.mails
    .filter(mail => isWithin(world, mail.at, RECENT))
    .flatMap(mail =>
      everyoneIn(world, mail).map((person, place) => ({
        mail,
        person,
        isSender: place === 0 && senderOf(world, mail) !== null,
      })),
    )
    .filter(({ person }) => person.side !== 'ours')
  const groups = groupedBy(seen, ({ person }) => person.address.replace(/^[^@]*@/, ''))
  const rows = [...groups].map(([domain, own]) => ({
    domain,
    side: own[0]?.person.side === 'partner' ? 'partner' : 'theirs',
    company: world.companies.find(company => company.domain === domain)?.name ?? null,
    mails: distinct(own.map(({ mail }) => mail)).length,
    from_them: distinct(own.filter(({ isSender }) => isSender).map(({ mail }) => mail)).length,
    to_them: distinct(own.filter(({ isSender }) => !isSender).map(({ mail }) => mail)).length,
    people: distinct(own.map(({ person }) => person.key)).length,
    last_day: latest(own.map(({ mail }) => dayOf(mail.at, world.settings))),
  }))
  return sortedBy(rows, '-mails', 'domain').slice(0, 50)
}

// ------------------------------------------------------------------------------------------------ pairs

const whoTalks: Question = {
  name: 'who-talks-to-whom',
  meaning: `Members and contacts outside with a talk in the last ${RECENT} days: an e-mail that one of them sent to the
other, or a meeting to which both were invited, owners included. A contact has both of its addresses. The first
hundred, ordered by the number of talks, most first, then by day, newest first, and by ids.`,
  key: ['member_id', 'contact_id'],
  columns: ['member', 'contact', 'company', 'mails', 'meetings', 'last_day', 'member_id', 'contact_id'],
  answer: pairs,
  trap: {
    overlooks: 'that one person has two addresses',
    answer: world => pairs(withoutSecondAddresses(world)),
  },
}

function pairs(world: World): AnswerRow[] {
  const { memberAt } = peopleOf(world)
  const contactsIn = (people: readonly Person[]) =>
    distinct(people.flatMap(({ side, contact }) => (side === 'outside' ? (contact ?? []) : [])))
  const membersOf = (people: readonly Person[]) =>
    distinct(people.flatMap(({ address }) => memberAt(address) ?? []))
  const mails = world.mails.flatMap(mail => {
    const sender = [senderOf(world, mail)].flatMap(person => person ?? [])
    const others = recipientsOf(world, mail)
    return [
      { isMail: true, at: mail.at, id: mail.id, members: membersOf(sender), contacts: contactsIn(others) },
      { isMail: true, at: mail.at, id: mail.id, members: membersOf(others), contacts: contactsIn(sender) },
    ]
  })
  const meetings = heldMeetings(world).map(meeting => ({
    isMail: false,
    at: meeting.at,
    id: meeting.id,
    members: membersIn(world, meeting),
    contacts: contactsIn(attendeesOf(world, meeting)),
  }))
  const talks = [...mails, ...meetings]
    .filter(({ at }) => isWithin(world, at, RECENT))
    .flatMap(({ members, contacts, ...talk }) =>
      members.flatMap(member => contacts.map(contact => ({ ...talk, member, contact }))),
    )
  const groups = groupedBy(talks, ({ member, contact }) => `${member.id} ${contact.id}`)
  const rows = [...groups.values()].flatMap(own => {
    const [first] = own
    if (!first) return []
    const mailIds = distinct(own.filter(({ isMail }) => isMail).map(({ id }) => id)).length
    const meetingIds = distinct(own.filter(({ isMail }) => !isMail).map(({ id }) => id)).length
    return {
      talks: mailIds + meetingIds,
      member: first.member.name,
      contact: first.contact.name,
      company: companyOf(world, first.contact),
      mails: mailIds,
      meetings: meetingIds,
      last_day: latest(own.map(({ at }) => dayOf(at, world.settings))),
      member_id: first.member.id,
      contact_id: first.contact.id,
    }
  })
  return sortedBy(rows, '-talks', '-last_day', 'member_id', 'contact_id')
    .slice(0, 100)
    .map(({ talks: _, ...row }) => row)
}

const companyOf = (world: World, { companyId }: Contact): string | null =>
  world.companies.find(({ id }) => id === companyId)?.name ?? null

// ------------------------------------------------------------------------------------------------ silent contacts

const SILENT_DAYS = 30

const silentContacts: Question = {
  name: 'contacts-not-spoken-to',
  meaning: `Contacts that the CRM associates with an open deal, for each such deal, whose last e-mail or meeting was on a local
day ${SILENT_DAYS} or more days ago, or who never had one. An e-mail or a meeting is the contact's when it names one of
the contact's addresses, or when an activity of it links to the contact, even if it cannot be read. Ordered by days,
longest first, then by the names of contact and deal; contacts without any come last.`,
  key: ['contact_id', 'deal_id'],
  columns: ['days_silent', 'last_day', 'contact', 'deal', 'stage', 'owner', 'contact_id', 'deal_id'],
  answer: silent,
  trap: {
    overlooks: 'that one person has two addresses',
    answer: world => silent(withoutSecondAddresses(world)),
  },
}

function silent(world: World): AnswerRow[] {
  const named = [
    ...world.mails.map(mail => ({ at: mail.at, people: everyoneIn(world, mail) })),
    ...world.meetings.map(meeting => ({ at: meeting.at, people: attendeesOf(world, meeting) })),
  ].flatMap(({ at, people }) => people.flatMap(({ contact }) => (contact ? { id: contact.id, at } : [])))
  const linked = world.activities.flatMap(activity => {
    const [touch] = touchesIn(world, [activity])
    return touch && (touch.mail || touch.isMeeting)
      ? activity.contactIds.map(id => ({ id, at: touch.at }))
      : []
  })
  const talks = groupedBy([...named, ...linked], ({ id }) => id)
  const rows = openDeals(world).flatMap(deal =>
    world.dealContacts
      .filter(({ dealId }) => dealId === deal.id)
      .flatMap(({ contactId }) => {
        const contact = world.contacts.find(({ id }) => id === contactId)
        const last = latest((talks.get(contactId) ?? []).map(({ at }) => dayOf(at, world.settings)))
        const days = last === null ? null : daysBetween(last, world.today)
        if (!contact || (days !== null && days < SILENT_DAYS)) return []
        return {
          days_silent: days,
          last_day: last,
          contact: contact.name,
          deal: deal.name,
          stage: stageOf(world, deal)?.name ?? null,
          owner: ownerOf(world, deal.ownerId).owner,
          contact_id: contactId,
          deal_id: deal.id,
        }
      }),
  )
  return sortedBy(rows, '-days_silent', 'contact', 'deal', 'contact_id', 'deal_id')
}

// ------------------------------------------------------------------------------------------------ members

const memberActivity: Question = {
  name: 'activity-by-member',
  meaning: `E-mails that a current member sent, to whomever, and meetings that the member owned and that can be read, by
local month, in the twelve whole months before this one. \`with_customers\` counts those with a person outside. A
month in which a member did nothing has no row. Ordered by month, newest first, then by name and id.`,
  key: ['month', 'member_id'],
  columns: ['month', 'member', 'mails_sent', 'meetings_held', 'with_customers', 'member_id'],
  answer: byMember,
  trap: {
    overlooks: 'the local time zone',
    answer: world => byMember({ ...world, settings: { ...world.settings, utcOffsetHours: 0 } }),
  },
}

function byMember(world: World): AnswerRow[] {
  const { memberAt } = peopleOf(world)
  const months = lastMonths(world.today, 12)
  const isOutside = ({ side }: Person): boolean => side === 'outside'
  const mails = world.mails.map(mail => ({
    isMail: true,
    at: mail.at,
    member: memberAt(senderOf(world, mail)?.address ?? null),
    isExternal: everyoneIn(world, mail).some(isOutside),
  }))
  const meetings = heldMeetings(world).map(meeting => ({
    isMail: false,
    at: meeting.at,
    member: memberAt(meeting.ownerEmail),
    isExternal: attendeesOf(world, meeting).some(isOutside),
  }))
  const done = [...mails, ...meetings].flatMap(({ at, member, ...each }) => {
    const month = dayOf(at, world.settings).slice(0, 7)
    return member && months.includes(month) ? { ...each, month, member } : []
  })
  const groups = groupedBy(done, ({ month, member }) => `${month} ${member.id}`)
  const rows = [...groups.values()].flatMap(own => {
    const [first] = own
    if (!first) return []
    return {
      month: first.month,
      member: first.member.name,
      mails_sent: countOf(own, ({ isMail }) => isMail),
      meetings_held: countOf(own, ({ isMail }) => !isMail),
      with_customers: countOf(own, each => each.isExternal),
      member_id: first.member.id,
    }
  })
  return sortedBy(rows, '-month', 'member', 'member_id')
}

export const PEOPLE_QUESTIONS: readonly Question[] = [
  externalDomains,
  whoTalks,
  silentContacts,
  memberActivity,
]
