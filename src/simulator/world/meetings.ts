import { actionText, chapterItem, chapterTitle, meetingTitle, spokenLine } from '../content/meetings.ts'
import { createIds } from '../ids.ts'
import { coarsen, DAY, formatDay, formatInstant, MINUTE, SECOND } from '../instants.ts'
import { createItems, type Items } from '../items.ts'
import { at, createDraw, mix, mixBelow } from '../random.ts'
import { createTimeline, type Timeline } from '../timeline.ts'
import type { Customers } from './crm/customers.ts'
import type { RelatedRecords } from './messages.ts'
import type { People } from './people.ts'
import { SALT, type Scene, spread } from './scene.ts'

/** Item states: published is WORKSPACE_ONLY, hidden is ATTENDEES_ONLY, deleted includes unfinished meetings. */
export interface Meetings {
  items: Items
  timeline: Timeline
  endOf(index: number): number
  relatedRecords(index: number): RelatedRecords
  owner(index: number): number
  hasCrm(index: number): boolean
  isOverviewReady(index: number): boolean
  hasTranscript(index: number): boolean
  completeOverview(index: number): void
  completeTranscript(index: number): void
  listJson(index: number, idName: 'meeting_id' | 'id'): string
  detailJson(index: number): string
  /** The entries as a JSON array. */
  transcriptJson(index: number): string
  /** A meeting that is not ready has no overview and no transcript yet. */
  add(micros: number, isReady: boolean): number
}

export interface MeetingsOptions {
  /** Pending overviews become COMPLETED this many milliseconds after the service's clock started. */
  overviewsCompleteAfterMs?: number | undefined
}

const PLATFORMS = ['ZOOM', 'GOOGLE_MEET', 'TEAMS', 'IN_PERSON'] as const
const TYPES = ['Sales', 'Customer success', 'Internal', '商談'] as const

export function createMeetings(
  scene: Scene,
  people: People,
  customers: Customers,
  { overviewsCompleteAfterMs }: MeetingsOptions,
): Meetings {
  const { seed, sizes } = scene
  const items = createItems({
    seed,
    salt: SALT.meeting,
    shape: 'hex24',
    count: sizes.meetings,
    initial: index => {
      const part = mix(seed, SALT.meeting + 1, index) % 100
      return part < 7 ? 'hidden' : part < 9 ? 'deleted' : 'published'
    },
  })
  const times = Float64Array.from({ length: sizes.meetings }, (_, index) => {
    const part = (index + (mix(seed, SALT.meeting + 2, index) % 1_000) / 1_000) / (sizes.meetings + 1)
    const micros = spread(scene, part)
    // A third of the meetings start on a quarter of an hour, so that many share an instant.
    return index % 3 === 0 ? micros - (micros % (15 * MINUTE)) : coarsen(micros, index)
  })
  const timeline = createTimeline(times)
  const overviews = new Map<number, boolean>()
  const transcripts = new Map<number, boolean>()
  const actionIds = createIds(seed, SALT.meeting + 3, 'uuid')

  const duration = (index: number): number => 600 + mixBelow(seed, SALT.meeting + 4, index, 3_000)
  const owner = (index: number): number => mixBelow(seed, SALT.meeting + 5, index, sizes.members)
  const relatedRecords = (index: number): RelatedRecords => {
    if (sizes.companies === 0) return { company: -1, contact: -1, deal: -1 }
    const company = mixBelow(seed, SALT.meeting + 6, index, sizes.companies)
    const contacts = customers.originalContactsOfCompany(company)
    const deals = customers.originalDealsOfCompany(company)
    const draw = mix(seed, SALT.meeting + 7, index)
    return {
      company,
      contact: contacts.length === 0 ? -1 : (contacts[draw % contacts.length] ?? -1),
      deal: deals.length === 0 || draw % 10 < 3 ? -1 : (deals[(draw >>> 8) % deals.length] ?? -1),
    }
  }
  const isCompletionTimeOver = (): boolean =>
    overviewsCompleteAfterMs !== undefined && scene.now() >= scene.end + overviewsCompleteAfterMs * 1_000
  const isOverviewReady = (index: number): boolean =>
    (overviews.get(index) ?? mix(seed, SALT.meeting + 8, index) % 100 >= 6) || isCompletionTimeOver()
  const hasTranscript = (index: number): boolean =>
    transcripts.get(index) ?? mix(seed, SALT.meeting + 9, index) % 100 >= 5
  const hasCrm = (index: number): boolean =>
    relatedRecords(index).deal >= 0 && mix(seed, SALT.meeting + 10, index) % 100 < 60
  const companyName = (index: number): string => {
    const { company } = relatedRecords(index)
    return company < 0 ? 'Independent' : customers.companyName(company)
  }
  const title = (index: number): string => {
    const revision = items.revision(index)
    const base = meetingTitle(createDraw(seed, SALT.meeting + 11, index), companyName(index))
    return revision > 0 ? `${base} (renamed ${revision})` : base
  }
  const endOf = (index: number): number => timeline.timeOf(index) + duration(index) * SECOND
  const teamsOf = (member: number): { team_id: string; name: string }[] => {
    const team = people.originalTeam(member)
    return team ? [team] : []
  }
  const contactsIn = (index: number): number[] => {
    const { company, contact } = relatedRecords(index)
    if (company < 0) return []
    const more = customers
      .originalContactsOfCompany(company)
      .filter(each => each !== contact && mix(seed, SALT.meeting + 12, index * 31 + each) % 4 === 0)
    return contact < 0 ? [] : [contact, ...more.slice(0, 3)]
  }
  const speakers = (index: number): { name: string; contact: number }[] => [
    { name: people.originalName(owner(index)), contact: -1 },
    ...contactsIn(index).map(contact => ({ name: customers.contactName(contact), contact })),
  ]
  const crmItem = (deal: number) => ({
    record_id: `006${deal.toString(36).padStart(12, '0')}`,
    record_name: customers.companyName(customers.companyOfDeal(deal)),
    record_url: `https://crm.example/opportunity/006${deal.toString(36).padStart(12, '0')}`,
    record_object_type: 'Opportunity',
  })
  const instant = (index: number, micros: number): string =>
    formatInstant(micros, mix(seed, SALT.meeting + 13, index))

  const summary = (index: number) => ({
    meeting_id: items.ids.of(index),
    service_meeting_url: `https://app.parley-demo.example/meetings/${items.ids.of(index)}`,
    workspace_id: scene.workspaceId,
    title: title(index),
    platform: at(PLATFORMS, mix(seed, SALT.meeting + 14, index)),
    start_time: instant(index, timeline.timeOf(index)),
    end_time: instant(index, endOf(index)),
    recording_duration: duration(index),
    base_type: index % 4 === 0 ? 'INTERNAL' : 'EXTERNAL',
    recording_source: index % 6 === 5 ? 'UPLOAD' : 'BOT',
    overview_status: isOverviewReady(index) ? 'COMPLETED' : index % 2 === 0 ? 'PROCESSING' : 'WAITING',
    crm_type: 'SALESFORCE',
    meeting_type_name: index % 11 === 10 ? null : at(TYPES, mix(seed, SALT.meeting + 15, index)),
  })

  /** The share of one speaker. Speaker 0 is the owner, with 25 to 75 %; the others divide the rest unevenly. */
  function talkShare(index: number, speaker: number, speakers: number): number {
    const weight = (number: number) => 20 + mixBelow(seed, SALT.meeting + 18, index * 31 + number, 80)
    const ownerShare = speakers === 1 ? 1 : 0.25 + mixBelow(seed, SALT.meeting + 17, index, 50) / 100
    if (speaker === 0) return Number(ownerShare.toFixed(2))
    const others = Array.from({ length: speakers - 1 }, (_, at) => weight(at + 1))
    const sum = others.reduce((total, each) => total + each, 0)
    return Number((((1 - ownerShare) * weight(speaker)) / sum).toFixed(2))
  }

  function attendees(index: number) {
    const member = owner(index)
    const memberAttendee = {
      attendee_user_name: people.originalName(member),
      attendee_user_email: people.memberEmail(member),
      is_workspace_member: true,
      is_internal: true,
      teams: teamsOf(member),
      contact_id: null,
    }
    const contactAttendees = contactsIn(index).map(contact => ({
      attendee_user_name: contact % 13 === 12 ? null : customers.contactName(contact),
      attendee_user_email: customers.contactEmail(contact),
      is_workspace_member: false,
      is_internal: false,
      teams: [],
      contact_id: customers.originalContactId(contact),
    }))
    return [memberAttendee, ...contactAttendees]
  }

  function relatedObjects(index: number) {
    const { company, contact } = relatedRecords(index)
    const related = []
    const companyId = customers.originalCompanyId(company)
    const contactId = customers.originalContactId(contact)
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
        sync_crm_object: hasCrm(index) ? crmItem(relatedRecords(index).deal) : null,
      })
    }
    return related
  }

  function overview(index: number) {
    if (!isOverviewReady(index)) return { summaries: [], action_items: [] }
    const draw = createDraw(seed, SALT.meeting + 16, index)
    const revision = items.revision(index)
    const length = duration(index)
    const chapters = Array.from({ length: 2 + draw.below(4) }, (_, chapter) => ({
      chapter_title: chapterTitle(draw),
      chapter_items: Array.from({ length: 1 + draw.below(4) }, () => ({
        item: chapterItem(draw),
        time: Math.floor((chapter * length) / 6) + draw.below(120),
      })),
    }))
    const actions = Array.from({ length: draw.below(4) + revision }, (_, number) => ({
      id: actionIds.of(index * 64 + number),
      text: actionText(draw),
      detail: number % 3 === 2 ? null : chapterItem(draw),
      due_date: number % 4 === 3 ? null : formatDay(endOf(index) + (3 + number) * DAY),
      time: draw.below(length),
      completed: revision > 0 && number === 0 ? true : draw.chance(0.4),
    }))
    return { summaries: chapters, action_items: actions }
  }

  function detail(index: number) {
    const member = owner(index)
    const meetingSpeakers = speakers(index)
    return {
      ...summary(index),
      transcript_config: { languages: index % 5 === 0 ? ['ja', 'en'] : ['en'] },
      meeting_owner: {
        name: people.originalName(member),
        email: people.memberEmail(member),
        teams: teamsOf(member),
      },
      attendees: attendees(index),
      crm_integrations: hasCrm(index) ? [crmItem(relatedRecords(index).deal)] : [],
      related_objects: relatedObjects(index),
      speakers: meetingSpeakers.map((speaker, n) => ({
        speaker_name: speaker.name,
        speaker_ratio: scene.isTidy
          ? talkShare(index, n, meetingSpeakers.length)
          : n === 0
            ? 0.4
            : 0.6 / (meetingSpeakers.length - 1),
      })),
      ...overview(index),
      ...(index % 17 === 4 && { sentiment: 'POSITIVE' }),
    }
  }

  return {
    items,
    timeline,
    endOf,
    relatedRecords,
    owner,
    hasCrm,
    isOverviewReady,
    hasTranscript,
    completeOverview: index => overviews.set(index, true),
    completeTranscript: index => transcripts.set(index, true),
    listJson: (index, idName) => {
      const { meeting_id, ...rest } = summary(index)
      return JSON.stringify({ [idName]: meeting_id, ...rest })
    },
    detailJson: index => JSON.stringify(detail(index)),
    transcriptJson: index => (hasTranscript(index) ? transcriptJson(index) : '[]'),
    add: (micros, isReady) => {
      const index = items.add(micros)
      timeline.place(index, micros)
      overviews.set(index, isReady)
      transcripts.set(index, isReady)
      return index
    },
  }

  function transcriptJson(index: number): string {
    const draw = createDraw(seed, SALT.transcript, index)
    const voices = speakers(index)
    const turns = Math.max(
      1,
      Math.ceil(sizes.transcriptTurns / 4) + draw.below(Math.ceil((sizes.transcriptTurns * 3) / 4)),
    )
    const entries: string[] = []
    let clock = 1.5
    for (let turn = 0; turn < turns; turn++) {
      const number = turn % 2 === 0 ? 0 : draw.below(voices.length)
      const speaker = at(voices, number)
      const text = spokenLine(draw)
      const words: string[] = []
      const begin = clock
      for (const word of text.split(' ')) {
        const end = clock + 0.12 + word.length * 0.05
        words.push(
          `{"text":${JSON.stringify(word)},"start_time":${clock.toFixed(2)},"end_time":${end.toFixed(2)}}`,
        )
        clock = end + 0.04
      }
      clock += 0.6
      const contact = customers.originalContactId(speaker.contact)
      entries.push(
        `{"speaker_id":"speaker_${number}","speaker_name":${JSON.stringify(speaker.name)},"contact_id":${contact === null ? 'null' : `"${contact}"`}` +
          `,"text":${JSON.stringify(text)},"elapsed_seconds":${begin.toFixed(2)},"words":[${words.join(',')}]}`,
      )
    }
    return `[${entries.join(',')}]`
  }
}
