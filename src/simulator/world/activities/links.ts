import { mix, mixBelow } from '../../base/random.ts'
import { SALT, type Scene } from '../../base/scene.ts'
import type { Customers } from '../crm/customers.ts'
import type { RelatedRecords } from '../crm/related.ts'
import type { ContextType, Origin } from './origins.ts'

export interface Link {
  type: ContextType
  index: number
  origin: 'DIRECT' | 'DERIVED'
}

/** The links of the activity of a changed record. */
export function changeLinks(customers: Customers, { index, record = 'deal' }: Origin): Link[] {
  const direct: Link = { type: record, index, origin: 'DIRECT' }
  if (record === 'company') return [direct]
  const company = record === 'deal' ? customers.companyOfDeal(index) : customers.companyOfContact(index)
  return [direct, { type: 'company', index: company, origin: 'DERIVED' }]
}

/** The links of the activity of a message or meeting. */
export function sourceLinks(
  { seed }: Scene,
  { company, contact, deal }: RelatedRecords,
  activity: number,
): Link[] {
  const draw = mix(seed, SALT.activity + 2, activity)
  // One in thirty has no public links.
  if (draw % 30 === 0) return []
  const links: Link[] = [
    { type: 'contact', index: contact, origin: 'DIRECT' },
    { type: 'company', index: company, origin: contact >= 0 ? 'DERIVED' : 'DIRECT' },
    { type: 'deal', index: deal, origin: draw % 3 === 0 ? 'DERIVED' : 'DIRECT' },
  ]
  // Some activities link the company twice: directly and through its contact.
  if (contact >= 0 && draw % 25 === 1) links.push({ type: 'company', index: company, origin: 'DIRECT' })
  return links
}

/**
 * The links to public records. Edits alternately add and remove a link. The draw leaves out new companies: including
 * them would alter earlier edits.
 */
export function publicLinks(
  { seed, sizes }: Scene,
  customers: Customers,
  all: readonly Link[],
  { activity, revision }: { activity: number; revision: number },
): Link[] {
  const links = all.filter(({ type, index }) => customers.items[type].isPublished(index))
  if (revision % 2 === 0 || sizes.companies === 0) return links
  const other = mixBelow(seed, SALT.activity + 3 + revision, activity, sizes.companies)
  const isKnown = links.some(({ type, index }) => type === 'company' && index === other)
  if (isKnown) links.pop()
  else if (customers.items.company.isPublished(other))
    links.push({ type: 'company', index: other, origin: 'DERIVED' })
  return links
}
