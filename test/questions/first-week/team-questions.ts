import { groupedBy } from '../../support/grouped-by.ts'
import {
  countOf,
  distinct,
  earliest,
  hundredths,
  latest,
  mean,
  median,
  share,
  sortedBy,
  sum,
} from './counting.ts'
import { addDays, dayOf, daysBetween, lastMonths, mondayOf } from './local-time.ts'
import {
  attendeesOf,
  heldMeetings,
  isExternal,
  isWithin,
  membersIn,
  peopleOf,
  recipientsOf,
  type Side,
  senderOf,
} from './people.ts'
import type { AnswerRow, Question } from './question.ts'
import type { Meeting, Member, World } from './world-rows.ts'

/** Questions about the work of our people. */

// ------------------------------------------------------------------------------------------------ activity

const FULL_WEEKS = 12

const teamActivity: Question = {
  name: 'activity-by-team-and-week',
  meaning: `The last ${FULL_WEEKS} full weeks, with one row for each team and each week, including zeros. \`mails\`
counts the e-mails of current members of the team with a recipient outside, each once, including group e-mails.
\`meetings\` counts the meetings that a member of the team owned or attended and that a person outside attended,
each once for a team. A member of two teams is in both. Ordered by team and week.`,
  key: ['team_id', 'week'],
  columns: ['team', 'week', 'mails', 'meetings', 'team_id'],
  answer: activityByWeek,
  trap: {
    overlooks: 'that several members of a team attend the same meeting',
    answer: world =>
      activityByWeek({
        ...world,
        meetings: world.meetings.flatMap(meeting =>
          meeting.attendees.map((attendee, place) => ({
            ...meeting,
            id: `${meeting.id} ${place}`,
            attendees: [attendee, ...meeting.attendees.filter(each => each !== attendee)],
          })),
        ),
      }),
  },
}

/** An e-mail to a customer, or a meeting with one, and the members who wrote it or were invited. */
interface Done {
  kind: 'mail' | 'meeting'
  day: string
  members: readonly Member[]
}

function doneWithCustomers(world: World): Done[] {
  const day = (at: string): string => dayOf(at, world.settings)
  const mails = world.mails
    .filter(mail => recipientsOf(world, mail).some(({ side }) => side === 'outside'))
    .map((mail): Done => {
      const member = peopleOf(world).memberAt(senderOf(world, mail)?.address ?? null)
      return { kind: 'mail', day: day(mail.at), members: member ? [member] : [] }
    })
  const meetings = heldMeetings(world)
    .filter(meeting => isExternal(world, meeting))
    .map((meeting): Done => ({ kind: 'meeting', day: day(meeting.at), members: membersIn(world, meeting) }))
  return [...mails, ...meetings]
}

function activityByWeek(world: World): AnswerRow[] {
  const thisWeek = mondayOf(world.today)
  const weeks = Array.from({ length: FULL_WEEKS }, (_, number) =>
    addDays(thisWeek, 7 * (number - FULL_WEEKS)),
  )
  const done = doneWithCustomers(world)
  const rows = world.teams.flatMap(team =>
    weeks.map(week => {
      const own = done.filter(
        ({ day, members }) => mondayOf(day) === week && members.some(({ id }) => team.memberIds.includes(id)),
      )
      return {
        team: team.name,
        week,
        mails: countOf(own, ({ kind }) => kind === 'mail'),
        meetings: countOf(own, ({ kind }) => kind === 'meeting'),
        team_id: team.id,
      }
    }),
  )
  return sortedBy(rows, 'team', 'team_id', 'week')
}

// ------------------------------------------------------------------------------------------------ leavers' meetings

const MET_WITHIN = 180

const meetingsOfLeavers: Question = {
  name: 'meetings-of-leavers',
  meaning: `Meetings in the last ${MET_WITHIN} days that a person outside attended and whose owner's address belongs
to no current member. One row for each such address, with the name in the latest meeting. \`companies\`
counts the companies of the people outside; \`people_without_company\` counts the people whose company is
unknown. Meetings that cannot be read have no known owner and count nowhere. Ordered by the number of
meetings, most first, then by address.`,
  key: ['address'],
  columns: ['address', 'name', 'meetings', 'companies', 'people', 'people_without_company', 'last_day'],
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
      address,
      name: own.at(-1)?.ownerName ?? null,
      meetings: own.length,
      companies: distinct(outside.flatMap(({ company }) => company?.id ?? [])).length,
      people: people.size,
      people_without_company: countOf([...people.values()], ({ company }) => company === null),
      last_day: latest(own.map(({ at }) => dayOf(at, world.settings))),
    }
  })
  return sortedBy(rows, '-meetings', 'address')
}

// ------------------------------------------------------------------------------------------------ talk ratio

const TALKED_WITHIN = 90

const talkRatio: Question = {
  name: 'talk-ratio',
  meaning: `Meetings in the last ${TALKED_WITHIN} days that the member owned or attended and that a person outside
attended. The member's share is the ratio of the speaker with the member's name in the list of
attendees; several such speakers are added up. \`without_share\` counts meetings in which no speaker has
that name or another attendee has the same one; they are in no average. \`with_strangers\` counts meetings
with a speaker who is no attendee, such as a room, a telephone number or a guest; their share may belong
to any person. Only current members with such a meeting, ordered by id.`,
  key: ['member_id'],
  columns: [
    'member_id',
    'member',
    'meetings',
    'median_share',
    'mean_share',
    'without_share',
    'with_strangers',
  ],
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
      member_id: member.id,
      member: member.name,
      meetings: own.length,
      median_share: share(median(shares)),
      mean_share: share(mean(shares)),
      without_share: own.length - shares.length,
      with_strangers: countOf(own, hasStranger),
    }
  })
  return sortedBy(rows, 'member_id')
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

const hasStranger = (meeting: Meeting): boolean =>
  meeting.speakers.some(({ name }) => name !== null && !isListed(meeting, name))

const talkRatioByMonth: Question = {
  name: 'talk-ratio-by-month',
  meaning: `Meetings that a person outside attended, by local month, in the twelve whole months before this one. In a
meeting the share of a side is that of the speakers who are named like one attendee of that side, or like the
owner. A speaker who is named like nobody, and a partner, is of another side; one who is named like two
people is left out. Percentages are of all other shares in the meeting, and each meeting counts alike; those
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
    if (addresses.length > 1 || ratio === null) return []
    const side = address ? peopleOf(world).sideOf(address) : 'other'
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
  name: 'overdue-action-items',
  meaning: `An action item has no assignee, so it counts for the owner of the meeting. It is overdue when it is not
completed and its due date is before today. \`without_due_date\` counts items that are not completed and
have no due date. The rows are all owners with an item of either kind, by address, whether they are
members or have left; the name is that in the latest meeting with such an item. Ordered by the number of
overdue items, most first, then by address.`,
  key: ['address'],
  columns: [
    'address',
    'owner',
    'owner_state',
    'overdue',
    'oldest_due_day',
    'mean_days_late',
    'without_due_date',
  ],
  answer: overdueByOwner,
  trap: {
    overlooks: 'items of owners who have left',
    answer: world =>
      overdueByOwner({
        ...world,
        meetings: world.meetings.filter(({ ownerEmail }) => peopleOf(world).memberAt(ownerEmail)),
      }),
  },
}

function overdueByOwner(world: World): AnswerRow[] {
  const items = heldMeetings(world).flatMap(({ ownerEmail, ownerName, actionItems }) =>
    actionItems
      .filter(({ isCompleted, dueDay }) => !isCompleted && (dueDay === null || dueDay < world.today))
      .map(({ dueDay }) => ({ address: ownerEmail ?? '', name: ownerName, dueDay })),
  )
  const rows = [...groupedBy(items, ({ address }) => address)].map(([address, own]) => {
    const due = own.flatMap(({ dueDay }) => dueDay ?? [])
    return {
      address: address === '' ? null : address,
      owner: own.at(-1)?.name ?? null,
      owner_state: address === '' ? 'none' : peopleOf(world).memberAt(address) ? 'member' : 'left',
      overdue: due.length,
      oldest_due_day: earliest(due),
      mean_days_late: hundredths(mean(due.map(day => daysBetween(day, world.today)))),
      without_due_date: own.length - due.length,
    }
  })
  return sortedBy(rows, '-overdue', 'address')
}

export const TEAM_QUESTIONS: readonly Question[] = [
  teamActivity,
  meetingsOfLeavers,
  talkRatio,
  talkRatioByMonth,
  overdueItems,
]
