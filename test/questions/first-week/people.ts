import { addDays, dayOf } from './local-time.ts'
import type { Attendee, Company, Contact, Mail, Meeting, Member, Participant, World } from './world-rows.ts'

/** Which side an address is on, which person it belongs to, and the person's company. */

export type Side = 'ours' | 'partner' | 'outside'

export interface Person {
  /** The contact's id, else the address. */
  key: string
  side: Side
  address: string
  contact: Contact | null
  company: Company | null
}

export interface People {
  sideOf(address: string): Side
  person(address: string, contactId: string | null): Person
  /** Null when the attendee has neither an address nor a known contact. */
  attendee(attendee: Attendee): Person | null
  /** The member with this address; undefined when there is none now. */
  memberAt(address: string | null): Member | undefined
}

const cache = new WeakMap<World, People>()

export function peopleOf(world: World): People {
  const known = cache.get(world) ?? createPeople(world)
  cache.set(world, known)
  return known
}

const normal = (address: string): string => address.trim().toLowerCase()
const domainOf = (address: string): string => normal(address).replace(/^[^@]*@/, '')

function createPeople({ members, formerMembers, contacts, companies, settings }: World): People {
  const memberByAddress = new Map(members.map(member => [normal(member.email), member]))
  const ourAddresses = new Set(
    [...members, ...formerMembers].flatMap(({ email }) => (email ? normal(email) : [])),
  )
  const ourDomains = new Set(
    [...ourAddresses].map(domainOf).filter(domain => !settings.freeMailDomains.includes(domain)),
  )
  const contactById = new Map(contacts.map(contact => [contact.id, contact]))
  const contactByAddress = new Map(
    contacts.flatMap(contact =>
      [contact.email, contact.secondEmail].flatMap(address =>
        address === null ? [] : [[normal(address), contact] as const],
      ),
    ),
  )
  const companyById = new Map(companies.map(company => [company.id, company]))
  const companyByDomain = new Map(companies.map(company => [company.domain, company]))

  const sideOf = (address: string): Side => {
    const domain = domainOf(address)
    if (ourAddresses.has(normal(address)) || ourDomains.has(domain)) return 'ours'
    return settings.partnerDomains.includes(domain) ? 'partner' : 'outside'
  }
  const person = (address: string, contactId: string | null): Person => {
    const contact = contactByAddress.get(normal(address)) ?? contactById.get(contactId ?? '') ?? null
    const company =
      companyById.get(contact?.companyId ?? '') ?? companyByDomain.get(domainOf(address)) ?? null
    return {
      key: contact?.id ?? normal(address),
      side: sideOf(address),
      address: normal(address),
      contact,
      company,
    }
  }
  return {
    sideOf,
    person,
    attendee: ({ email, contactId }) => {
      if (email !== null) return person(email, contactId)
      const contact = contactById.get(contactId ?? '')
      return contact ? person(contact.email, contact.id) : null
    },
    memberAt: address => (address === null ? undefined : memberByAddress.get(normal(address))),
  }
}

export const isCustomer = ({ side, contact, company }: Person): boolean =>
  side === 'outside' && (contact !== null || company !== null)

const RECIPIENTS = ['TO', 'CC', 'BCC']

/** The sender; null when the e-mail names none. */
export function senderOf(world: World, { participants }: Mail): Person | null {
  const [from] = participants.filter(({ role }) => role === 'FROM')
  return from ? personOf(world, from) : null
}

export const recipientsOf = (world: World, { participants }: Mail): Person[] =>
  participants.filter(({ role }) => RECIPIENTS.includes(role)).map(each => personOf(world, each))

const personOf = (world: World, { handle, contactId }: Participant): Person =>
  peopleOf(world).person(handle, contactId)

export const attendeesOf = (world: World, { attendees }: Meeting): Person[] =>
  attendees.flatMap(each => peopleOf(world).attendee(each) ?? [])

/** Those of the attendees who spoke; no one where two have the name of a speaker. */
export const speakersOf = (world: World, { attendees, speakers, ownerName, ownerEmail }: Meeting): Person[] =>
  attendees.flatMap(each => {
    const namesakes = attendees.filter(({ name }) => name === each.name)
    const isOwnersName = each.name === ownerName && each.email !== ownerEmail
    const hasSpoken = speakers.some(({ name, ratio }) => name === each.name && (ratio ?? 0) > 0)
    return hasSpoken && namesakes.length === 1 && !isOwnersName ? (peopleOf(world).attendee(each) ?? []) : []
  })

/** Meetings that have begun, in the order of time. */
export const heldMeetings = (world: World): Meeting[] =>
  world.meetings.filter(({ at }) => at <= world.now).sort((a, b) => (a.at < b.at ? -1 : 1))

/** Members who own the meeting or attend it. */
export function membersIn(world: World, { ownerEmail, attendees }: Meeting): Member[] {
  const addresses = [ownerEmail, ...attendees.map(({ email }) => email)]
  return [...new Set(addresses.flatMap(address => peopleOf(world).memberAt(address) ?? []))]
}

export const isExternal = (world: World, meeting: Meeting): boolean =>
  attendeesOf(world, meeting).some(({ side }) => side === 'outside')

/** Whether the local day of an instant is among the last days, and the instant not after now. */
export function isWithin(world: World, instant: string, days: number): boolean {
  return instant <= world.now && dayOf(instant, world.settings) >= addDays(world.today, 1 - days)
}
