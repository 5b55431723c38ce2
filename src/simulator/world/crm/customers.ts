import { createItems, type Items } from '../../base/items.ts'
import { at, mix } from '../../base/random.ts'
import { SALT, type Scene } from '../../base/scene.ts'
import { companyName, FREE_MAIL_DOMAINS, personName } from '../../content/people.ts'
import { type CustomerLinks, type CustomerObject, createCustomerLinks } from './links.ts'

/** Companies, contacts and deals, and the links between them. */
export interface Customers extends Omit<CustomerLinks, 'add'> {
  items: Record<CustomerObject, Items>
  companyName(index: number): string
  companyDomain(index: number): string
  contactName(index: number): string
  contactEmail(index: number): string
  /** Another address of the same person, who writes from both. */
  secondEmail(index: number): string | undefined
  /** The contact of a partner who works for the workspace: among attendees, this person is internal. -1 for none. */
  contractor: number
  /** The id that messages and meetings contain: null for a record that was restricted from the start. */
  originalContactId(index: number): string | null
  originalCompanyId(index: number): string | null
  /** Appends a record with its links. */
  add(object: CustomerObject, micros: number): number
}

export function createCustomers({ seed, sizes, isRealistic }: Scene): Customers {
  const counts = { company: sizes.companies, contact: sizes.contacts, deal: sizes.deals }
  /** A single record is never restricted, since its object would have no records. */
  const isRestricted = (object: CustomerObject, index: number): boolean =>
    counts[object] > 1 && mix(seed, SALT[object] + 50, index) % 100 < 3
  const itemsOf = (object: CustomerObject): Items =>
    createItems({
      seed,
      salt: SALT[object],
      shape: 'uuid',
      count: counts[object],
      initial: index => (isRestricted(object, index) ? 'hidden' : 'published'),
    })
  const items = {
    company: itemsOf('company'),
    contact: itemsOf('contact'),
    deal: itemsOf('deal'),
  }
  const originalId = (object: CustomerObject, index: number): string | null =>
    index < 0 || isRestricted(object, index) ? null : items[object].ids.of(index)
  const links = createCustomerLinks({ seed, sizes })
  const contactNames: string[] = []
  const companyNames: { name: string; domain: string }[] = []
  const nameAndDomain = (index: number) => {
    companyNames[index] ??= companyName(seed, SALT.company + 10, index)
    return companyNames[index]
  }

  const contacts = Array.from({ length: isRealistic ? sizes.contacts : 0 }, (_, contact) => contact)

  return {
    ...links,
    contractor: contacts.find(contact => links.companyOfContact(contact) >= 0) ?? -1,
    items,
    companyName: index => nameAndDomain(index).name,
    companyDomain: index => nameAndDomain(index).domain,
    contactName: index => {
      contactNames[index] ??= personName(seed, SALT.contact + 10, index).name
      return contactNames[index]
    },
    contactEmail: index => {
      const { local } = personName(seed, SALT.contact + 10, index)
      const company = links.companyOfContact(index)
      const noCompany = isRealistic ? at(FREE_MAIL_DOMAINS, index) : 'mail.example'
      return `${local}${index}@${company < 0 ? noCompany : nameAndDomain(company).domain}`
    },
    secondEmail: index => {
      const company = links.companyOfContact(index)
      if (!isRealistic || company < 0 || index % 6 !== 2) return undefined
      const { local } = personName(seed, SALT.contact + 10, index)
      return `${local}${index}@${index % 12 === 2 ? FREE_MAIL_DOMAINS[0] : `group.${nameAndDomain(company).domain}`}`
    },
    originalContactId: index => originalId('contact', index),
    originalCompanyId: index => originalId('company', index),
    add: (object, micros) => {
      const index = items[object].add(micros)
      links.add(object, index)
      return index
    },
  }
}
