import { groupedBy } from '../../support/grouped-by.ts'
import { countOf, distinct, earliest, hundredths, latest, mean, median, sortedBy, sum } from './counting.ts'
import { dayOf, daysBetween, lastMonths, quarterBegin } from './local-time.ts'
import { attendeesOf, heldMeetings, isExternal, isWithin, membersIn, peopleOf, type Side } from './people.ts'
import type { AnswerRow, Question } from './question.ts'
import type { Meeting, Member, World } from './world-rows.ts'

/** Questions about meetings. */

// ------------------------------------------------------------------------------------------------ leavers' meetings

const MET_WITHIN = 365

const meetingsOfLeavers: Question = {
  name: 'meetings-of-leavers',
  meaning: `Meetings in the last ${MET_WITHIN} days that a person outside attended and whose owner's address belongs
to no current member. One row for each such address. \`companies\`
counts the companies of the people outside; \`people_without_company\` counts the people whose company is
unknown. Meetings that cannot be read count nowhere. Ordered by the number of
meetings, most first, then by address.`,
  key: ['address'],
  columns: ['meetings', 'companies', 'people', 'people_without_company', 'last_day', 'address'],
  answer: leaversMeetings,
  trap: {
    overlooks: 'members who left before the first read, or whose address parley has purged',
    answer: world => {
      const former = new Set(world.formerMembers.map(({ email }) => email))
      return leaversMeetings({
        ...world,
        meetings: world.meetings.filter(({ ownerEmail }) => former.has(ownerEmail)),
      })
    },
  },
}

function leaversMeetings(world: World): AnswerRow[] {
  const meetings = heldMeetings(world).filter(
    meeting =>
      meeting.ownerEmail !== null &&
      !peopleOf(world).memberAt(meeting.ownerEmail) &&
      isWithin(world, meeting.at, MET_WITHIN) &&
      isExternal(world, meeting),
  )
  const rows = [...groupedBy(meetings, ({ ownerEmail }) => String(ownerEmail))].map(([address, own]) => {
    const outside = own.flatMap(meeting =>
      attendeesOf(world, meeting).filter(({ side }) => side === 'outside'),
    )
    const people = new Map(outside.map(person => [person.key, person]))
    return {
      meetings: own.length,
      companies: distinct(outside.flatMap(({ company }) => company?.id ?? [])).length,
      people: people.size,
      people_without_company: countOf([...people.values()], ({ company }) => company === null),
      last_day: latest(own.map(({ at }) => dayOf(at, world.settings))),
      address,
    }
  })
  return sortedBy(rows, '-meetings', 'address')
}

// ------------------------------------------------------------------------------------------------ talk ratio

const TALKED_WITHIN = 90

const talkRatio: Question = {
  name: 'talk-ratio-by-member',
  meaning: `Meetings in the last ${TALKED_WITHIN} days that the member owned or attended and that a person outside
attended. The member's share is the ratio of the speaker with the member's name in the list of
attendees; several such speakers are added up. \`without_share\` counts meetings in which no speaker has
that name or another attendee has the same one; they are in no average. Only current members with such a meeting,
ordered by the number of meetings, most first, then by id.`,
  key: ['member_id'],
  columns: ['member', 'meetings', 'median_percent', 'mean_percent', 'without_share', 'member_id'],
  answer: talkRatios,
  trap: {
    overlooks: 'that speakers who are no attendees have a share, too',
    answer: world => talkRatios({ ...world, meetings: world.meetings.map(withoutStrangers) }),
  },
}

/** The meeting as if only its attendees had spoken. */
function withoutStrangers(meeting: Meeting): Meeting {
  const listed = meeting.speakers.filter(speaker => isListed(meeting, speaker.name))
  const spoken = sum(listed.flatMap(({ ratio }) => ratio ?? []))
  return {
    ...meeting,
    speakers: listed.map(({ name, ratio }) => ({ name, ratio: ratio === null ? null : ratio / spoken })),
  }
}

const isListed = ({ attendees }: Meeting, speaker: string | null): boolean =>
  attendees.some(({ name }) => name === speaker)

function talkRatios(world: World): AnswerRow[] {
  const meetings = heldMeetings(world).filter(
    meeting => isWithin(world, meeting.at, TALKED_WITHIN) && isExternal(world, meeting),
  )
  const rows = world.members.flatMap(member => {
    const own = meetings.filter(meeting => membersIn(world, meeting).includes(member))
    if (own.length === 0) return []
    const shares = own.flatMap(meeting => shareOf(world, member, meeting) ?? [])
    return {
      member: member.name,
      meetings: own.length,
      median_percent: hundredths(median(shares.map(share => 100 * share))),
      mean_percent: hundredths(mean(shares.map(share => 100 * share))),
      without_share: own.length - shares.length,
      member_id: member.id,
    }
  })
  return sortedBy(rows, '-meetings', 'member_id')
}

/** Null where it is not known. */
function shareOf(
  world: World,
  member: Member,
  { ownerEmail, ownerName, attendees, speakers }: Meeting,
): number | null {
  const isMember = (address: string | null): boolean => peopleOf(world).memberAt(address) === member
  const listed = attendees.find(({ email }) => isMember(email))
  const name = listed ? listed.name : isMember(ownerEmail) ? ownerName : null
  const others = attendees.filter(each => each !== listed && each.name === name)
  const ratios = speakers.filter(speaker => speaker.name === name).map(({ ratio }) => ratio)
  if (name === null || others.length > 0 || ratios.length === 0 || ratios.includes(null)) return null
  return sum(ratios.map(Number))
}

const talkRatioByMonth: Question = {
  name: 'talk-ratio-by-month',
  meaning: `Meetings that a person outside attended, by local month, in the twelve whole months before this one. In a
meeting the share of a side is that of the speakers who are named like one attendee of that side, or like the
owner. A speaker whose name no one has, or two people have, and a partner, is of another side.
Percentages are of all shares in the meeting, and each meeting counts alike; those
without any share are not in \`with_speakers\`. Ordered by month.`,
  key: ['month'],
  columns: ['month', 'meetings', 'with_speakers', 'ours_percent', 'theirs_percent', 'other_percent'],
  answer: ratiosByMonth,
  trap: {
    overlooks: 'that speakers who are no attendees have a share, too',
    answer: world => ratiosByMonth({ ...world, meetings: world.meetings.map(withoutStrangers) }),
  },
}

function ratiosByMonth(world: World): AnswerRow[] {
  const monthOf = (meeting: Meeting): string => dayOf(meeting.at, world.settings).slice(0, 7)
  const external = world.meetings.filter(meeting => isExternal(world, meeting))
  return lastMonths(world.today, 12).flatMap(month => {
    const own = external.filter(meeting => monthOf(meeting) === month)
    const shares = own.flatMap(meeting => sidesOf(world, meeting) ?? [])
    const meanOf = (side: Side | 'other') => hundredths(mean(shares.map(each => each[side] ?? 0)))
    const row = { month, meetings: own.length, with_speakers: shares.length }
    return own.length === 0
      ? []
      : {
          ...row,
          ours_percent: meanOf('ours'),
          theirs_percent: meanOf('outside'),
          other_percent: meanOf('other'),
        }
  })
}

/** The percentages of the sides in a meeting; undefined without any share. */
function sidesOf(world: World, meeting: Meeting): Partial<Record<Side | 'other', number>> | undefined {
  const named = [
    { name: meeting.ownerName, address: meeting.ownerEmail },
    ...meeting.attendees.map(({ name, email }) => ({ name, address: email })),
  ]
  const spoken = meeting.speakers.flatMap(({ name, ratio }) => {
    const addresses = distinct(named.filter(each => each.name === name).map(({ address }) => address))
    const [address] = addresses
    if (ratio === null) return []
    const side = address && addresses.length === 1 ? peopleOf(world).sideOf(address) : 'other'
    return { side: side === 'partner' ? ('other' as const) : side, ratio }
  })
  const all = sum(spoken.map(({ ratio }) => ratio))
  if (all === 0) return undefined
  const sides = groupedBy(spoken, ({ side }) => side)
  return Object.fromEntries(
    [...sides].map(([side, own]) => [side, (100 * sum(own.map(({ ratio }) => ratio))) / all]),
  )
}

// ------------------------------------------------------------------------------------------------ action items

const overdueItems: Question = {
  name: 'action-items-past-due',
  meaning: `Action items of the meetings of the last calendar quarter that are not completed and whose due day is before
today. An action item has no assignee, so its owner is that of the meeting, who may have left. Items without a
due day, and of meetings that cannot be read, are left out. Ordered by due day.`,
  key: ['action_item_id'],
  parameters: { period: "'last quarter'" },
  columns: ['days_late', 'due_day', 'owner_state', 'met_on', 'action_item_id'],
  answer: overdue,
  trap: {
    overlooks: 'items of owners who have left',
    answer: world =>
      overdue({
        ...world,
        meetings: world.meetings.filter(({ ownerEmail }) => peopleOf(world).memberAt(ownerEmail)),
      }),
  },
}

function overdue(world: World): AnswerRow[] {
  const [from, to] = [quarterBegin(world.today, -1), quarterBegin(world.today)]
  const metOn = ({ at }: Meeting) => dayOf(at, world.settings)
  const rows = heldMeetings(world)
    .filter(meeting => metOn(meeting) >= from && metOn(meeting) < to)
    .flatMap(({ id, at, ownerEmail, ownerName, actionItems }) =>
      actionItems.flatMap(({ id: item, isCompleted, dueDay }) =>
        isCompleted || dueDay === null || dueDay >= world.today
          ? []
          : {
              meeting: id,
              owner: ownerName,
              days_late: daysBetween(dueDay, world.today),
              due_day: dueDay,
              owner_state:
                ownerEmail === null ? 'none' : peopleOf(world).memberAt(ownerEmail) ? 'member' : 'left',
              met_on: dayOf(at, world.settings),
              action_item_id: item,
            },
      ),
    )
  return sortedBy(rows, 'due_day', 'owner', 'meeting', 'action_item_id').map(
    ({ meeting: _, owner: __, ...row }) => row,
  )
}

// ------------------------------------------------------------------------------------------------ single meetings

const RECENT = 90

const ratioByMeeting: Question = {
  name: 'talk-ratio-by-meeting',
  meaning: `Meetings in the last ${RECENT} days that a person outside attended and that have speakers, each with the
percentages of both sides, counted as by month. Ordered by time, newest first, then by id.`,
  key: ['meeting_id'],
  columns: ['happened_at', 'ours_percent', 'theirs_percent', 'other_percent', 'meeting_id'],
  answer: ratiosByMeeting,
  trap: {
    overlooks: 'that speakers who are no attendees have a share, too',
    answer: world => ratiosByMeeting({ ...world, meetings: world.meetings.map(withoutStrangers) }),
  },
}

const recentWithCustomers = (world: World): Meeting[] =>
  heldMeetings(world).filter(meeting => isWithin(world, meeting.at, RECENT) && isExternal(world, meeting))

function ratiosByMeeting(world: World): AnswerRow[] {
  const rows = recentWithCustomers(world).map(meeting => {
    const shares = sidesOf(world, meeting)
    const of = (side: Side | 'other') => (shares ? hundredths(shares[side] ?? 0) : null)
    return {
      happened_at: meeting.at,
      ours_percent: of('ours'),
      theirs_percent: of('outside'),
      other_percent: of('other'),
      meeting_id: meeting.id,
    }
  })
  return sortedBy(rows, '-happened_at', 'meeting_id')
}

const unlinkedMeetings: Question = {
  name: 'meetings-without-crm-link',
  meaning: `Meetings in the last ${RECENT} days that a person outside attended and that the API links to no record of the
CRM. \`outsiders\` counts the persons outside; \`company\` is the first of their companies by name. Meetings that cannot
be read have unknown links and are left out. Ordered by time, newest first, then by id.`,
  key: ['meeting_id'],
  columns: ['happened_at', 'outsiders', 'company', 'meeting_id'],
  answer: unlinked,
  trap: {
    overlooks: 'that partners are no customers',
    answer: world => unlinked({ ...world, settings: { ...world.settings, partnerDomains: [] } }),
  },
}

function unlinked(world: World): AnswerRow[] {
  const rows = recentWithCustomers(world)
    .filter(({ isLinked }) => !isLinked)
    .map(meeting => {
      const outside = attendeesOf(world, meeting).filter(({ side }) => side === 'outside')
      return {
        happened_at: meeting.at,
        outsiders: distinct(outside.map(({ key }) => key)).length,
        company: earliest(outside.flatMap(({ company }) => company?.name ?? [])),
        meeting_id: meeting.id,
      }
    })
  return sortedBy(rows, '-happened_at', 'meeting_id')
}

export const MEETING_QUESTIONS: readonly Question[] = [
  meetingsOfLeavers,
  talkRatio,
  talkRatioByMonth,
  overdueItems,
  ratioByMeeting,
  unlinkedMeetings,
]
