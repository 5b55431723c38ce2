import { mix, mixBelow } from '../../base/random.ts'
import { SALT, type Scene } from '../../base/scene.ts'

export type CustomerObject = 'company' | 'contact' | 'deal'

export interface CustomerLinks {
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
  /** Links an appended record. */
  add(object: CustomerObject, index: number): void
}

const NONE: readonly number[] = []

export function createCustomerLinks({ seed, sizes }: Pick<Scene, 'seed' | 'sizes'>): CustomerLinks {
  const contactsOf: number[][] = []
  const dealsOf: number[][] = []
  const dealsWith: number[][] = []
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
    companyOfContact,
    contactsOfCompany: company => contactsOf[company] ?? NONE,
    originalContactsOfCompany: company => originalContactsOf[company] ?? NONE,
    companyOfDeal,
    dealsOfCompany: company => dealsOf[company] ?? NONE,
    originalDealsOfCompany: company => originalDealsOf[company] ?? NONE,
    contactsOfDeal,
    dealsOfContact: contact => dealsWith[contact] ?? NONE,
    add: (object, index) => link[object](index),
  }
}

function push(lists: number[][], key: number, value: number): void {
  if (key < 0) return
  const list = lists[key]
  if (list) list.push(value)
  else lists[key] = [value]
}
