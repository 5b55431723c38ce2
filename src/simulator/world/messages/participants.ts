import { at, mix } from '../../base/random.ts'
import { quote, quoteOrNull, SALT, type Scene } from '../../base/scene.ts'
import { FREE_MAIL_DOMAINS } from '../../content/people.ts'
import type { Customers } from '../crm/customers.ts'
import { compare, type People, WORKSPACE_DOMAIN } from '../crm/people.ts'
import { isGroupMail, isLargeGroupMail, isSentBy, type MailMessage, threadMember } from './message.ts'

interface Party {
  /** The address as JSON text. */
  handle: string
  name: string | null
  /** -1 when the party is no contact. */
  contact: number
}

const MAILING_LIST: Party = {
  handle: `"sales-team@${WORKSPACE_DOMAIN}"`,
  name: 'Sales team',
  contact: -1,
}
const ARCHIVE: Party = { handle: `"archive@${WORKSPACE_DOMAIN}"`, name: null, contact: -1 }

const strangerParty = (thread: number, { isRealistic }: Scene): Party => ({
  handle: `"alex.morgan${thread % 97}@${isRealistic ? at(FREE_MAIL_DOMAINS, thread) : 'mail.example'}"`,
  name: 'Alex Morgan',
  contact: -1,
})

/** Returns a function that gives a message's participants as elements of a JSON array. It caches repeated addresses. */
export function createParticipants(
  scene: Scene,
  people: People,
  customers: Customers,
): (message: MailMessage) => string {
  const { seed, sizes } = scene
  const contactHandles: string[] = []
  const memberHandles: string[] = []
  const contactParty = (contact: number, draw: number): Party => {
    contactHandles[contact] ??= quote(customers.contactEmail(contact))
    const second = draw % 3 === 0 ? customers.secondEmail(contact) : undefined
    const isNameless = mix(seed, SALT.contact + 30, contact) % 10 === 0
    return {
      handle: second === undefined ? contactHandles[contact] : quote(second),
      name: isNameless ? null : customers.contactName(contact),
      contact,
    }
  }
  const memberParty = (member: number): Party => {
    memberHandles[member] ??= quote(people.memberEmail(member))
    return { handle: memberHandles[member], name: people.originalName(member), contact: -1 }
  }
  const contactParties = ({ thread, draw, records: { company, contact } }: MailMessage): Party[] => {
    const parties = contact >= 0 ? [contactParty(contact, draw)] : [strangerParty(thread, scene)]
    if (isLargeGroupMail(scene, draw) && contact >= 0)
      return nextOf(contact, sizes.contacts).map(each => contactParty(each, draw))
    for (const other of company < 0 ? [] : customers.originalContactsOfCompany(company)) {
      if (other !== contact && mix(draw, 1, other) % 3 === 0 && parties.length < 4)
        parties.push(contactParty(other, draw))
    }
    return parties
  }

  return message => {
    const hidesContactIds = mix(seed, SALT.message + 2, message.index) % 20 === 0
    const member = memberParty(message.member)
    const copied = isLargeGroupMail(scene, message.draw)
      ? nextOf(message.member, sizes.members).map(memberParty)
      : message.draw % 4 === 1
        ? [memberParty(threadMember(scene, message.thread, 1))]
        : []
    let json = ''
    for (const [role, { handle, name, contact }] of rolesOf(
      message,
      member,
      copied,
      contactParties(message),
    )) {
      const id = hidesContactIds ? null : customers.originalContactId(contact)
      json += `${json === '' ? '' : ','}{"handle":${handle},"display_name":${quoteOrNull(name)},"role":"${role}","contact_id":${id === null ? 'null' : `"${id}"`}}`
    }
    return json
  }
}

/** The person with this number and those with the next numbers, of `count`. */
const nextOf = (first: number, count: number): number[] =>
  Array.from({ length: Math.min(count, LARGE_GROUP) }, (_, number) => (first + number) % count)

const LARGE_GROUP = 7

/** The first contact writes to the member, or the member to all contacts. */
function rolesOf(
  { draw, copy }: MailMessage,
  member: Party,
  copiedMembers: readonly Party[],
  contacts: readonly Party[],
): [role: string, Party][] {
  const isSent = isSentBy(draw)
  const [sender = member, ...otherContacts] = isSent ? [member] : contacts
  const to = isSent ? [...contacts] : [member]
  if (isGroupMail(draw)) to.push(MAILING_LIST)
  const copied = [...otherContacts, ...copiedMembers]
  const rows: [string, Party][] = [['FROM', sender]]
  for (const party of sortedParties(to)) rows.push(['TO', party])
  for (const party of sortedParties(copied)) if (party.handle !== member.handle) rows.push(['CC', party])
  if (isSent && copy === 0 && draw % 25 === 3) rows.push(['BCC', ARCHIVE])
  return rows
}

function sortedParties(parties: Party[]): Party[] {
  return parties.length < 2 ? parties : parties.sort((a, b) => compare(a.handle, b.handle))
}
