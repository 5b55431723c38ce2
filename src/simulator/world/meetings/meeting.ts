import { coarsen, MINUTE } from '../../base/instants.ts'
import { at, mix, mixBelow } from '../../base/random.ts'
import { SALT, type Scene, spread } from '../../base/scene.ts'
import { OTHER_SPEAKERS } from '../../content/meetings.ts'
import type { Customers } from '../crm/customers.ts'
import type { People } from '../crm/people.ts'
import { NO_RECORDS, type RelatedRecords, recordsOfCompany } from '../crm/related.ts'

/** The parts of the workspace that a meeting names. */
export interface Surroundings {
  scene: Scene
  people: People
  customers: Customers
}

/** What the content of a meeting depends on. */
export interface Meeting {
  index: number
  id: string
  /** The number of edits. */
  revision: number
  startsAt: number
  endsAt: number
  isOverviewReady: boolean
}

export function startTimes(scene: Scene): Float64Array {
  const count = scene.sizes.meetings
  return Float64Array.from({ length: count }, (_, index) => {
    const part = (index + (mix(scene.seed, SALT.meeting + 2, index) % 1_000) / 1_000) / (count + 1)
    const micros = spread(scene, part)
    // A third of the meetings start on a quarter of an hour, so that many share an instant.
    return index % 3 === 0 ? micros - (micros % (15 * MINUTE)) : coarsen(micros, index)
  })
}

/** In seconds. */
export function durationOf({ seed }: Scene, index: number): number {
  return 600 + mixBelow(seed, SALT.meeting + 4, index, 3_000)
}

export function ownerOf({ seed, sizes }: Scene, index: number): number {
  return mixBelow(seed, SALT.meeting + 5, index, sizes.members)
}

export function meetingRecords({ seed, sizes }: Scene, customers: Customers, index: number): RelatedRecords {
  if (sizes.companies === 0) return NO_RECORDS
  const company = mixBelow(seed, SALT.meeting + 6, index, sizes.companies)
  return recordsOfCompany(customers, company, mix(seed, SALT.meeting + 7, index), 3)
}

/** Whether the meeting is written to an external CRM. */
export function hasCrmItem({ seed }: Scene, { deal }: RelatedRecords, index: number): boolean {
  return deal >= 0 && mix(seed, SALT.meeting + 10, index) % 100 < 60
}

/** The contacts who attend: the related one first. */
export function contactsIn({ scene, customers }: Surroundings, index: number): number[] {
  const { company, contact } = meetingRecords(scene, customers, index)
  if (contact < 0) return []
  const more = customers
    .originalContactsOfCompany(company)
    .filter(each => each !== contact && mix(scene.seed, SALT.meeting + 12, index * 31 + each) % 4 === 0)
  const contacts = [contact, ...more.slice(0, 3)]
  const { contractor } = customers
  const isHelped = contractor >= 0 && index % 10 === 4 && !contacts.includes(contractor)
  return isHelped ? [...contacts, contractor] : contacts
}

/** The owner, whose `contact` is -1, then the contacts, then a voice that belongs to no attendee. */
export function speakersOf(around: Surroundings, index: number): { name: string; contact: number }[] {
  const { scene, people, customers } = around
  return [
    { name: people.originalName(ownerOf(scene, index)), contact: -1 },
    ...contactsIn(around, index).map(contact => ({ name: customers.contactName(contact), contact })),
    ...(scene.isRealistic && index % 8 === 3 ? [{ name: at(OTHER_SPEAKERS, index), contact: -1 }] : []),
  ]
}
