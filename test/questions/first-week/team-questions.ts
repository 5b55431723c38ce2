import { countOf, earliest, sortedBy } from './counting.ts'
import { addDays, dayOf, daysBetween, mondayOf } from './local-time.ts'
import { heldMeetings, isExternal, membersIn, peopleOf, recipientsOf, senderOf } from './people.ts'
import type { AnswerRow, Question } from './question.ts'
import type { Member, World } from './world-rows.ts'

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

// ------------------------------------------------------------------------------------------------ new members

const RAMP = { startedWithin: 365, days: 90 }

const ramp: Question = {
  name: 'ramp-of-new-members',
  meaning: `Current members whose first e-mail or meeting was in the last ${RAMP.startedWithin} days, and not in the first
days of all that are left out: here none are, since every member was there at once. E-mails of the member with a recipient outside, and meetings that the member owned or
attended and that a person outside attended, in three times 30 days from that day on; \`meetings\` are those of all 90
days. Ordered by first day, newest first, then by id.`,
  key: ['member_id'],
  columns: [
    'member',
    'first_day',
    'days_here',
    'days_1_to_30',
    'days_31_to_60',
    'days_61_to_90',
    'meetings',
    'member_id',
  ],
  parameters: { leave_out: '0' },
  answer: world => rampOfMembers(world, 0),
  trap: {
    overlooks: 'that the first days of all are no first days of members',
    answer: world => rampOfMembers(world, 30),
  },
}

function rampOfMembers(world: World, leaveOut: number): AnswerRow[] {
  const dayIn = (at: string): string => dayOf(at, world.settings)
  const people = [
    ...world.mails.flatMap(mail =>
      [senderOf(world, mail), ...recipientsOf(world, mail)].map(person => ({
        day: dayIn(mail.at),
        address: person?.address,
      })),
    ),
    ...world.meetings.flatMap(meeting =>
      [meeting.ownerEmail, ...meeting.attendees.map(({ email }) => email)].map(address => ({
        day: dayIn(meeting.at),
        address,
      })),
    ),
  ]
  const begin = earliest(people.map(({ day }) => day)) ?? ''
  const done = doneWithCustomers(world)
  const rows = world.members.flatMap((member): AnswerRow[] => {
    const own = people.filter(({ address }) => peopleOf(world).memberAt(address ?? null) === member)
    const first = earliest(own.map(({ day }) => day))
    const isNew =
      first !== null &&
      first >= addDays(world.today, 1 - RAMP.startedWithin) &&
      daysBetween(begin, first) >= leaveOut
    if (!isNew) return []
    const days = done
      .filter(({ members }) => members.includes(member))
      .map(({ day, kind }) => ({ kind, number: daysBetween(first, day) }))
      .filter(({ number }) => number < RAMP.days)
    const within = (from: number) => countOf(days, ({ number }) => number >= from && number < from + 30)
    return [
      {
        member: member.name,
        first_day: first,
        days_here: daysBetween(first, world.today),
        days_1_to_30: within(0),
        days_31_to_60: within(30),
        days_61_to_90: within(60),
        meetings: countOf(days, ({ kind }) => kind === 'meeting'),
        member_id: member.id,
      },
    ]
  })
  return sortedBy(rows, '-first_day', 'member_id')
}

export const TEAM_QUESTIONS: readonly Question[] = [teamActivity, ramp]
