import { mixBelow } from '../../base/random.ts'
import { SALT, type Scene } from '../../base/scene.ts'
import type { Customers } from '../crm/customers.ts'
import type { People } from '../crm/people.ts'
import type { RelatedRecords } from '../crm/related.ts'
import {
  contactsIn,
  hasCrmItem,
  type Meeting,
  meetingRecords,
  ownerOf,
  type Surroundings,
  speakersOf,
} from './meeting.ts'
import { overviewOf } from './overview.ts'
import { summaryOf } from './summary.ts'

/** The answer of the single read. */
export function detailOf(around: Surroundings, meeting: Meeting) {
  const { scene, people, customers } = around
  const { index } = meeting
  const owner = ownerOf(scene, index)
  const records = meetingRecords(scene, customers, index)
  const crmItems = hasCrmItem(scene, records, index) ? [crmItem(customers, records.deal)] : []
  const speakers = speakersOf(around, index)
  return {
    ...summaryOf(around, meeting),
    transcript_config: { languages: index % 5 === 0 ? ['ja', 'en'] : ['en'] },
    meeting_owner: {
      name: people.originalName(owner),
      email: people.memberEmail(owner),
      teams: teamsOf(people, owner),
    },
    attendees: attendeesOf(around, index),
    crm_integrations: crmItems,
    related_objects: relatedObjects(customers, records, crmItems[0] ?? null),
    speakers: speakers.map(({ name }, speaker) => ({
      speaker_name: name,
      speaker_ratio: talkShare(scene, index, speaker, speakers.length),
    })),
    ...overviewOf(scene, meeting),
    ...(index % 17 === 4 && { sentiment: 'POSITIVE' }),
  }
}

function teamsOf(people: People, member: number): { team_id: string; name: string }[] {
  return [people.originalTeam(member)].filter(team => team !== undefined)
}

function attendeesOf(around: Surroundings, index: number) {
  const { scene, people, customers } = around
  const owner = ownerOf(scene, index)
  const contacts = contactsIn(around, index).map(contact => ({
    attendee_user_name: contact % 13 === 12 ? null : customers.contactName(contact),
    attendee_user_email: customers.contactEmail(contact),
    is_workspace_member: false,
    is_internal: contact === customers.contractor,
    teams: [],
    contact_id: customers.originalContactId(contact),
  }))
  const member = {
    attendee_user_name: people.originalName(owner),
    attendee_user_email: people.memberEmail(owner),
    is_workspace_member: true,
    is_internal: true,
    teams: teamsOf(people, owner),
    contact_id: null,
  }
  return [member, ...contacts]
}

function crmItem(customers: Customers, deal: number) {
  const id = `006${deal.toString(36).padStart(12, '0')}`
  return {
    record_id: id,
    record_name: customers.companyName(customers.companyOfDeal(deal)),
    record_url: `https://crm.example/opportunity/${id}`,
    record_object_type: 'Opportunity',
  }
}

function relatedObjects(
  customers: Customers,
  { company, contact }: RelatedRecords,
  crm: ReturnType<typeof crmItem> | null,
) {
  const companyId = customers.originalCompanyId(company)
  const contactId = customers.originalContactId(contact)
  const related = []
  if (companyId !== null) {
    related.push({
      display_name: customers.companyName(company),
      object_id: companyId,
      object_type: 'company',
      fields: { company_ids: [], is_internal: false },
      sync_crm_object: null,
    })
  }
  if (contactId !== null) {
    const of = customers.originalCompanyId(customers.companyOfContact(contact))
    related.push({
      display_name: customers.contactName(contact),
      object_id: contactId,
      object_type: 'contact',
      fields: { company_ids: of === null ? [] : [of], is_internal: false },
      sync_crm_object: crm,
    })
  }
  return related
}

/**
 * The share of one speaker of a meeting. In a tidy workspace, speaker 0, the owner, has 25 to 75 %, and the others
 * divide the rest unevenly.
 */
function talkShare({ seed, isTidy }: Scene, index: number, speaker: number, speakers: number): number {
  if (!isTidy) return speaker === 0 ? 0.4 : 0.6 / (speakers - 1)
  const weight = (number: number) => 20 + mixBelow(seed, SALT.meeting + 18, index * 31 + number, 80)
  const ownerShare = speakers === 1 ? 1 : 0.25 + mixBelow(seed, SALT.meeting + 17, index, 50) / 100
  if (speaker === 0) return Number(ownerShare.toFixed(2))
  const others = Array.from({ length: speakers - 1 }, (_, at) => weight(at + 1))
  const sum = others.reduce((total, each) => total + each, 0)
  return Number((((1 - ownerShare) * weight(speaker)) / sum).toFixed(2))
}
