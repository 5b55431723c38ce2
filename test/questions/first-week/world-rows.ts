import type { CompanySettings } from './settings.ts'

/**
 * What the API publishes at the last read, as plain rows, and what only earlier reads had: deleted stages, former members
 * and changes of deals. Only the former members come from the warehouse, since parley removes their names after a time.
 */
export interface World {
  settings: CompanySettings
  now: string
  /** The local day of `now`. */
  today: string
  pipelines: readonly Pipeline[]
  stages: readonly Stage[]
  deals: readonly Deal[]
  dealChanges: readonly DealChange[]
  companies: readonly Company[]
  contacts: readonly Contact[]
  /** Deal and contact that the CRM associates. */
  dealContacts: readonly { dealId: string; contactId: string }[]
  renewalOrders: readonly RenewalOrder[]
  members: readonly Member[]
  formerMembers: readonly FormerMember[]
  teams: readonly Team[]
  mails: readonly Mail[]
  meetings: readonly Meeting[]
  /** Ids of meetings that the API does not open to this key. */
  withheldMeetings: ReadonlySet<string>
  activities: readonly Activity[]
}

export interface Pipeline {
  id: string
  name: string
  position: number
}

export interface Stage {
  id: string
  name: string
  pipelineId: string
  position: number
  /** As in the CRM: per cent in one pipeline, a fraction in the other. */
  probability: number
  /** The CRM has deleted it. The values are those of the last read that had it. */
  isDeleted: boolean
}

export interface Deal {
  id: string
  name: string
  companyId: string | null
  pipelineId: string | null
  stageId: string | null
  ownerId: string | null
  amount: number | null
  currency: string | null
  closeDate: string | null
  isClosed: boolean
  nextStep: string | null
  forecast: string | null
  createdAt: string | null
  /** The instant of the first read that had it. */
  firstSeenAt: string
}

/** A change of a deal's field between two reads. */
export interface DealChange {
  dealId: string
  field: string
  before: unknown
  after: unknown
  /** The instant of the read that had the new value. */
  observedAt: string
}

export interface Company {
  id: string
  name: string
  domain: string
}

export interface Contact {
  id: string
  name: string
  companyId: string | null
  email: string
  secondEmail: string | null
  hasOptedOut: boolean
}

/** A record of an object that looks like a deal and is none. */
export interface RenewalOrder {
  id: string
  amount: number | null
  currency: string | null
  dealId: string | null
}

export interface Member {
  id: string
  name: string
  email: string
}

/** Name and address are null when parley has purged them. */
export interface FormerMember {
  id: string
  name: string | null
  email: string | null
}

export interface Team {
  id: string
  name: string
  memberIds: readonly string[]
}

export interface Participant {
  role: string
  handle: string
  contactId: string | null
}

/** An e-mail, whose copies are merged. Its time is that of its earliest copy. */
export interface Mail {
  id: string
  copyIds: readonly string[]
  /** Thread ids of all copies. */
  threadIds: readonly string[]
  at: string
  isGroup: boolean
  participants: readonly Participant[]
}

export interface Attendee {
  name: string | null
  email: string | null
  contactId: string | null
}

export interface Meeting {
  id: string
  at: string
  ownerName: string | null
  ownerEmail: string | null
  attendees: readonly Attendee[]
  speakers: readonly { name: string | null; ratio: number | null }[]
  /** Whether the API links it to a record of the CRM. */
  isLinked: boolean
  actionItems: readonly { id: string; dueDay: string | null; isCompleted: boolean }[]
}

export interface Activity {
  id: string
  sourceType: string
  sourceId: string
  at: string
  actorId: string | null
  dealIds: readonly string[]
  companyIds: readonly string[]
  contactIds: readonly string[]
}
