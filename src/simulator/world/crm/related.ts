import type { Customers } from './customers.ts'

/** The CRM records that an e-mail or meeting is about; -1 for none. */
export interface RelatedRecords {
  company: number
  contact: number
  deal: number
}

export const NO_RECORDS: RelatedRecords = { company: -1, contact: -1, deal: -1 }

/** A company with one of its contacts and, except in `withoutDeal` of ten draws, one of its deals. */
export function recordsOfCompany(
  customers: Customers,
  company: number,
  draw: number,
  withoutDeal: number,
): RelatedRecords {
  const contacts = customers.originalContactsOfCompany(company)
  const deals = customers.originalDealsOfCompany(company)
  return {
    company,
    contact: contacts[draw % contacts.length] ?? -1,
    deal: draw % 10 < withoutDeal ? -1 : (deals[(draw >>> 8) % deals.length] ?? -1),
  }
}
