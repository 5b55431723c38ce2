import { mix } from '../../base/random.ts'
import { quote, quoteOrNull, SALT, type Scene } from '../../base/scene.ts'
import type { Customers } from '../crm/customers.ts'
import { compare, type People, WORKSPACE_DOMAIN } from '../crm/people.ts'
import { isGroupMail, isSentBy, type MailMessage, threadMember } from './message.ts'

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

const strangerParty = (thread: number): Party => ({
  handle: `"alex.morgan${thread % 97}@mail.example"`,
  name: 'Alex Morgan',
  contact: -1,
})

/** Returns a function that gives a message's participants as elements of a JSON array. It caches repeated addresses. */
export function createParticipants(
  scene: Scene,
  people: People,
  customers: Customers,
): (message: MailMessage) => string {
  const { seed } = scene
  const contactHandles: string[] = []
  const memberHandles: string[] = []
  const contactParty = (contact: number): Party => {
    contactHandles[contact] ??= quote(customers.contactEmail(contact))
    const isNameless = mix(seed, SALT.contact + 30, contact) % 10 === 0
    return {
      handle: contactHandles[contact],
      name: isNameless ? null : customers.contactName(contact),
      contact,
    }
  }
  const memberParty = (member: number): Party => {
    memberHandles[member] ??= quote(people.memberEmail(member))
    return { handle: memberHandles[member], name: people.originalName(member), contact: -1 }
  }
  const contactParties = ({ thread, draw, records: { company, contact } }: MailMessage): Party[] => {
    const parties = contact >= 0 ? [contactParty(contact)] : [strangerParty(thread)]
    for (const other of company < 0 ? [] : customers.originalContactsOfCompany(company)) {
      if (other !== contact && mix(draw, 1, other) % 3 === 0 && parties.length < 4)
        parties.push(contactParty(other))
    }
    return parties
  }

  return message => {
    const hidesContactIds = mix(seed, SALT.message + 2, message.index) % 20 === 0
    const member = memberParty(message.member)
    const copied = message.draw % 4 === 1 ? memberParty(threadMember(scene, message.thread, 1)) : undefined
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

/** The first contact writes to the member, or the member to all contacts. */
function rolesOf(
  { draw, copy }: MailMessage,
  member: Party,
  copiedMember: Party | undefined,
  contacts: readonly Party[],
): [role: string, Party][] {
  const isSent = isSentBy(draw)
  const [sender = member, ...otherContacts] = isSent ? [member] : contacts
  const to = isSent ? [...contacts] : [member]
  if (isGroupMail(draw)) to.push(MAILING_LIST)
  const copied = [...otherContacts, ...(copiedMember ? [copiedMember] : [])]
  const rows: [string, Party][] = [['FROM', sender]]
  for (const party of sortedParties(to)) rows.push(['TO', party])
  for (const party of sortedParties(copied)) if (party.handle !== member.handle) rows.push(['CC', party])
  if (isSent && copy === 0 && draw % 25 === 3) rows.push(['BCC', ARCHIVE])
  return rows
}

function sortedParties(parties: Party[]): Party[] {
  return parties.length < 2 ? parties : parties.sort((a, b) => compare(a.handle, b.handle))
}
