import { companyName, personName } from '../../content/people.ts'
import { createItems, type Items } from '../../items.ts'
import { mix, mixBelow } from '../../random.ts'
import { SALT, type Scene } from '../scene.ts'

/** Companies, contacts and deals, and the links between them. */
export interface Customers {
  companies: Items
  contacts: Items
  deals: Items
  companyName(index: number): string
  companyDomain(index: number): string
  contactName(index: number): string
  contactEmail(index: number): string
  /** The id that messages and meetings contain: null for a record that was restricted from the start. */
  originalContactId(index: number): string | null
  originalCompanyId(index: number): string | null
  /** -1 when the contact belongs to no company. */
  companyOfContact(contact: number): number
  contactsOfCompany(company: number): readonly number[]
  /** Without appended contacts, so that a new contact does not alter existing messages and meetings. */
  originalContactsOfCompany(company: number): readonly number[]
  companyOfDeal(deal: number): number
  dealsOfCompany(company: number): readonly number[]
  /** Without appended deals, so that a new deal does not alter existing messages and meetings. */
  originalDealsOfCompany(company: number): readonly number[]
  contactsOfDeal(deal: number): readonly number[]
  dealsOfContact(contact: number): readonly number[]
  /** Appends a record with its links. */
  add(object: 'company' | 'contact' | 'deal', micros: number): number
}

const NONE: readonly number[] = []

export function createCustomers({ seed, sizes }: Scene): Customers {
  const isRestricted = (salt: number, index: number): boolean => mix(seed, salt + 50, index) % 100 < 3
  const items = (salt: number, count: number): Items =>
    createItems({
      seed,
      salt,
      shape: 'uuid',
      count,
      initial: index => (isRestricted(salt, index) ? 'hidden' : 'published'),
    })
  const companies = items(SALT.company, sizes.companies)
  const contacts = items(SALT.contact, sizes.contacts)
  const deals = items(SALT.deal, sizes.deals)
  const contactsOf: number[][] = []
  const dealsOf: number[][] = []
  const dealsWith: number[][] = []
  const contactNames: string[] = []
  const companyNames: { name: string; domain: string }[] = []

  const nameAndDomain = (index: number) => {
    companyNames[index] ??= companyName(seed, SALT.company + 10, index)
    return companyNames[index]
  }
  const companyOfContact = (contact: number): number =>
    mix(seed, SALT.contact + 20, contact) % 100 < 3 ? -1 : contact % Math.max(1, sizes.companies)
  const companyOfDeal = (deal: number): number =>
    mixBelow(seed, SALT.deal + 20, deal, Math.max(1, sizes.companies))
  const contactsOfDeal = (deal: number): readonly number[] => {
    const all = contactsOf[companyOfDeal(deal)] ?? NONE
    const count = 1 + mixBelow(seed, SALT.deal + 21, deal, 3)
    return all.slice(0, sizes.contacts === 0 ? 0 : count).filter(contact => contact < sizes.contacts)
  }
  const link = {
    company: () => undefined,
    contact: (contact: number) => push(contactsOf, companyOfContact(contact), contact),
    deal: (deal: number) => {
      push(dealsOf, companyOfDeal(deal), deal)
      for (const contact of contactsOfDeal(deal)) push(dealsWith, contact, deal)
    },
  }
  for (let contact = 0; contact < sizes.contacts; contact++) link.contact(contact)
  for (let deal = 0; deal < sizes.deals; deal++) link.deal(deal)
  const originalContactsOf = contactsOf.map(contacts => [...contacts])
  const originalDealsOf = dealsOf.map(deals => [...deals])

  return {
    companies,
    contacts,
    deals,
    companyName: index => nameAndDomain(index).name,
    companyDomain: index => nameAndDomain(index).domain,
    contactName: index => {
      contactNames[index] ??= personName(seed, SALT.contact + 10, index).name
      return contactNames[index]
    },
    contactEmail: index => {
      const { local } = personName(seed, SALT.contact + 10, index)
      const company = companyOfContact(index)
      return `${local}${index}@${company < 0 ? 'mail.example' : nameAndDomain(company).domain}`
    },
    originalContactId: index =>
      index < 0 || isRestricted(SALT.contact, index) ? null : contacts.ids.of(index),
    originalCompanyId: index =>
      index < 0 || isRestricted(SALT.company, index) ? null : companies.ids.of(index),
    companyOfContact,
    contactsOfCompany: company => contactsOf[company] ?? NONE,
    originalContactsOfCompany: company => originalContactsOf[company] ?? NONE,
    companyOfDeal,
    dealsOfCompany: company => dealsOf[company] ?? NONE,
    originalDealsOfCompany: company => originalDealsOf[company] ?? NONE,
    contactsOfDeal,
    dealsOfContact: contact => dealsWith[contact] ?? NONE,
    add: (object, micros) => {
      const index = { company: companies, contact: contacts, deal: deals }[object].add(micros)
      link[object](index)
      return index
    },
  }
}

function push(lists: number[][], key: number, value: number): void {
  if (key < 0) return
  const list = lists[key]
  if (list) list.push(value)
  else lists[key] = [value]
}
