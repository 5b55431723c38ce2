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
import { addDays, dayOf, daysBetween, mondayOf } from './local-time.ts'
import {
  attendeesOf,
  heldMeetings,
  isExternal,
  isWithin,
  membersIn,
  peopleOf,
  recipientsOf,
  senderOf,
} from './people.ts'
import type { AnswerRow, Question } from './question.ts'
import type { Meeting, Member, World } from './world-rows.ts'

/** Questions about the work of our people. */

// ------------------------------------------------------------------------------------------------ activity

const FULL_WEEKS = 6

const repActivity: Question = {
  name: 'rep-activity-by-week',
  question: 'What did each rep do in each of the last six weeks, by team, and who did nothing?',
  meaning: `The last ${FULL_WEEKS} full weeks, with one row for each current member of each team and each week,
including zeros. A member of two teams is in both; a member of no team has rows without a team. \`mails\`
counts the e-mails of the member with a recipient outside, each once, including group e-mails.
\`meetings\` counts the meetings that the member owned or attended and that a person outside attended.
\`unread_meetings\` counts meetings that cannot be read and whose activity names the member as its actor;
they may have been external. Ordered by team, member and week.`,
  columns: ['team_id', 'team', 'member_id', 'member', 'week', 'mails', 'meetings', 'unread_meetings'],
  answer: activityByWeek,
  trap: {
    overlooks: 'that an e-mail has several copies, and counts each',
    answer: world =>
      activityByWeek({
        ...world,
        mails: world.mails.flatMap(mail => mail.copyIds.map(id => ({ ...mail, id, copyIds: [id] }))),
      }),
  },
}

function activityByWeek(world: World): AnswerRow[] {
  const thisWeek = mondayOf(world.today)
  const weeks = Array.from({ length: FULL_WEEKS }, (_, number) =>
    addDays(thisWeek, 7 * (number - FULL_WEEKS)),
  )
  const weekOf = (at: string): string => mondayOf(dayOf(at, world.settings))
  const key = (member: Member, at: string): string => `${member.id} ${weekOf(at)}`
  const mails = world.mails
    .filter(mail => recipientsOf(world, mail).some(({ side }) => side === 'outside'))
    .flatMap(mail => {
      const member = peopleOf(world).memberAt(senderOf(world, mail)?.address ?? null)
      return member ? key(member, mail.at) : []
    })
  const meetings = heldMeetings(world)
    .filter(meeting => isExternal(world, meeting))
    .flatMap(meeting => membersIn(world, meeting).map(member => key(member, meeting.at)))
  const unread = world.activities
    .filter(({ sourceType, sourceId }) => sourceType === 'MEETING' && world.withheldMeetings.has(sourceId))
    .map(({ actorId, at }) => `${actorId} ${weekOf(at)}`)
  const rows = world.members.flatMap(member => {
    const teams = world.teams.filter(({ memberIds }) => memberIds.includes(member.id))
    return (teams.length > 0 ? teams : [undefined]).flatMap(team =>
      weeks.map(week => ({
        team_id: team?.id ?? null,
        team: team?.name ?? null,
        member_id: member.id,
        member: member.name,
        week,
        mails: countOf(mails, each => each === `${member.id} ${week}`),
        meetings: countOf(meetings, each => each === `${member.id} ${week}`),
        unread_meetings: countOf(unread, each => each === `${member.id} ${week}`),
      })),
    )
  })
  return sortedBy(rows, 'team_id', 'member_id', 'week')
}

// ------------------------------------------------------------------------------------------------ leavers' meetings

const MET_WITHIN = 180

const meetingsOfLeavers: Question = {
  name: 'meetings-of-leavers',
  question: 'Which external meetings did people have who have left, so that others must take over?',
  meaning: `Meetings in the last ${MET_WITHIN} days that a person outside attended and whose owner's address belongs
to no current member. One row for each such address, with the name in the latest meeting. \`companies\`
counts the companies of the people outside; \`people_without_company\` counts the people whose company is
unknown. Meetings that cannot be read have no known owner and count nowhere. Ordered by the number of
meetings, most first, then by address.`,
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
  question: 'How much of the time do our reps talk in meetings with customers?',
  meaning: `Meetings in the last ${TALKED_WITHIN} days that the member owned or attended and that a person outside
attended. The member's share is the ratio of the speaker with the member's name in the list of
attendees; several such speakers are added up. \`without_share\` counts meetings in which no speaker has
that name or another attendee has the same one; they are in no average. \`with_strangers\` counts meetings
with a speaker who is no attendee, such as a room, a telephone number or a guest; their share may belong
to any person. Only current members with such a meeting, ordered by id.`,
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

// ------------------------------------------------------------------------------------------------ action items

const overdueItems: Question = {
  name: 'overdue-action-items',
  question: 'Which owners have overdue action items from their meetings?',
  meaning: `An action item has no assignee, so it counts for the owner of the meeting. It is overdue when it is not
completed and its due date is before today. \`without_due_date\` counts items that are not completed and
have no due date. The rows are all owners with an item of either kind, by address, whether they are
members or have left; the name is that in the latest meeting with such an item. Ordered by the number of
overdue items, most first, then by address.`,
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

export const TEAM_QUESTIONS: readonly Question[] = [repActivity, meetingsOfLeavers, talkRatio, overdueItems]
