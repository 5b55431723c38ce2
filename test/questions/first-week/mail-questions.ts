import { groupedBy } from '../../support/grouped-by.ts'
import { answeredIn, conversationsOf, type Wait, waitsIn } from './conversations.ts'
import { countOf, distinct, hundredths, latest, mean, median, sortedBy } from './counting.ts'
import { dayOf, daysBetween, hoursBetween, lastMonths, workingHoursBetween } from './local-time.ts'
import { isCustomer, isWithin, peopleOf, recipientsOf } from './people.ts'
import type { AnswerRow, Question } from './question.ts'
import type { Mail, World } from './world-rows.ts'

/** Questions about e-mails with customers. */

/** A world that works day and night. */
const roundTheClock = (world: World): World => ({
  ...world,
  settings: { ...world.settings, workdays: [1, 2, 3, 4, 5, 6, 7], workFromHour: 0, workToHour: 24 },
})

/** The e-mail as if each of its threads had another one. */
function inEachThread(mail: Mail): Mail[] {
  if (mail.threadIds.length < 2) return [mail]
  return mail.threadIds.map((thread, place) => ({
    ...mail,
    id: `${mail.id} ${place}`,
    threadIds: [thread],
  }))
}

const WAIT_RULE = `A wait begins with a customer's e-mail, unless it is a group e-mail or an earlier e-mail of the conversation still
waits. It ends with the next e-mail from us in the conversation, even a group e-mail.`

// ------------------------------------------------------------------------------------------------ replies

const REPLIED_WITHIN = 90
/** A later e-mail is not counted as a reply. */
const REPLY_DAYS = 30

const replyTime: Question = {
  name: 'response-times-by-member',
  meaning: `${WAIT_RULE} The rows have the waits that ended in the last ${REPLIED_WITHIN} days, by the member who
sent the e-mail that ended them. The time is the working time from the first e-mail of the wait to the
reply, in hours. A reply more than ${REPLY_DAYS} local days after the first e-mail resumes an old
conversation and does not count. The row without \`member_id\` is for replies from our addresses
that belong to no member now. Ordered by the number of replies, most first, then by id.`,
  key: ['member_id'],
  columns: ['member', 'replies', 'median_hours', 'mean_hours', 'slowest_hours', 'member_id'],
  answer: repliesByMember,
  trap: {
    overlooks: 'that copies of one e-mail are in two threads',
    answer: world => repliesByMember({ ...world, mails: world.mails.flatMap(inEachThread) }),
  },
}

function repliesByMember(world: World): AnswerRow[] {
  const dayIn = (at: string): string => dayOf(at, world.settings)
  const replies = waitsOf(world).flatMap(({ asked: [first], answer }) => {
    if (!first || !answer || !isWithin(world, answer.mail.at, REPLIED_WITHIN)) return []
    if (daysBetween(dayIn(first.mail.at), dayIn(answer.mail.at)) > REPLY_DAYS) return []
    return {
      member: peopleOf(world).memberAt(answer.sender.address),
      hours: workingHoursBetween(first.mail.at, answer.mail.at, world.settings),
    }
  })
  const rows = distinct(replies.map(({ member }) => member)).map(member => {
    const hours = replies.filter(reply => reply.member === member).map(reply => reply.hours)
    return {
      member: member?.name ?? null,
      replies: hours.length,
      median_hours: hundredths(median(hours)),
      mean_hours: hundredths(mean(hours)),
      slowest_hours: hundredths(Math.max(...hours)),
      member_id: member?.id ?? null,
    }
  })
  return sortedBy(rows, '-replies', 'member_id')
}

// ------------------------------------------------------------------------------------------------ both sides

const responseTimes: Question = {
  name: 'response-times-by-month',
  meaning: `An answer is the first e-mail of one side after e-mails of the other side in the conversation, one side
being ours and the other one outside. It counts in the local month in which it was sent, of the twelve whole
months before this one. The time is from the first of the e-mails that it answers and that is no group e-mail.
Answers to group e-mails alone, and those more than ${REPLY_DAYS} local days later, do not count. Partners neither
ask nor answer. Ordered by month, then by side.`,
  key: ['month', 'answered_by'],
  columns: ['month', 'answered_by', 'answers', 'median_hours', 'median_work_hours'],
  answer: answersByMonth,
  trap: {
    overlooks: 'that partners are not the other side',
    answer: world => answersByMonth({ ...world, settings: { ...world.settings, partnerDomains: [] } }),
  },
}

function answersByMonth(world: World): AnswerRow[] {
  const { settings } = world
  const months = lastMonths(world.today, 12)
  const answers = conversationsOf(world)
    .flatMap(conversation => answeredIn(world, conversation))
    .flatMap(({ asked: [first], answer }) => {
      const at = first?.mail.at
      const month = dayOf(answer.mail.at, settings).slice(0, 7)
      if (at === undefined || !months.includes(month)) return []
      if (daysBetween(dayOf(at, settings), dayOf(answer.mail.at, settings)) > REPLY_DAYS) return []
      return {
        month,
        side: answer.sender.side === 'ours' ? 'ours' : 'theirs',
        hours: hoursBetween(at, answer.mail.at),
        workHours: workingHoursBetween(at, answer.mail.at, settings),
      }
    })
  const rows = [...groupedBy(answers, ({ month, side }) => `${month} ${side}`).values()].flatMap(own => ({
    month: own[0]?.month ?? null,
    answered_by: own[0]?.side ?? null,
    answers: own.length,
    median_hours: hundredths(median(own.map(({ hours }) => hours))),
    median_work_hours: hundredths(median(own.map(({ workHours }) => workHours))),
  }))
  return sortedBy(rows, 'month', 'answered_by')
}

const waitsOf = (world: World): Wait[] =>
  conversationsOf(world).flatMap(conversation => waitsIn(conversation, isCustomer))

// ------------------------------------------------------------------------------------------------ waiting

const WAITS_WITHIN = 30

const customersWaiting: Question = {
  name: 'customers-waiting',
  meaning: `${WAIT_RULE} The rows are the waits that have not ended and that began in the last ${WAITS_WITHIN} days.
A meeting does not end a wait. The time is the working time until now, in hours. Address, contact and
company are those of the sender of the first e-mail. \`is_in_thread\` is 0 when that e-mail is in no thread, so
an answer to it cannot be recognized. Ordered by time, longest first, then by id.`,
  key: ['asked_mail_id'],
  columns: ['work_hours', 'company', 'address', 'is_in_thread', 'contact_id', 'asked_mail_id'],
  answer: waitingNow,
  trap: {
    overlooks: 'nights and weekends: a wait since Friday evening is not three days',
    answer: world => waitingNow(roundTheClock(world)),
  },
}

function waitingNow(world: World): AnswerRow[] {
  const rows = waitsOf(world).flatMap(({ asked, answer }) => {
    const [first] = asked
    if (!first || answer || !isWithin(world, first.mail.at, WAITS_WITHIN)) return []
    const { mail, sender } = first
    return {
      work_hours: hundredths(workingHoursBetween(mail.at, world.now, world.settings)),
      company: sender.company?.name ?? null,
      address: sender.address,
      is_in_thread: Number(mail.threadIds.length > 0),
      contact_id: sender.contact?.id ?? null,
      asked_mail_id: mail.id,
    }
  })
  return sortedBy(rows, '-work_hours', 'asked_mail_id')
}

// ------------------------------------------------------------------------------------------------ opted out

const WRITTEN_WITHIN = 90

const optedOut: Question = {
  name: 'opted-out-written-to',
  meaning: `Contacts who have opted out now and who received an e-mail (TO, CC or BCC) from us in the last
${WRITTEN_WITHIN} days at either of their addresses. Group e-mails count; \`group_mails\` says how many.
Ordered by the number of e-mails, most first, then by id.`,
  key: ['contact_id'],
  columns: ['contact', 'company', 'mails', 'group_mails', 'last_day', 'contact_id'],
  answer: writtenTo,
  trap: {
    overlooks: 'that a contact has a second address, and that not every e-mail names its contact',
    answer: world =>
      writtenTo({
        ...world,
        contacts: world.contacts.map(contact => ({ ...contact, email: contact.id, secondEmail: null })),
      }),
  },
}

function writtenTo(world: World): AnswerRow[] {
  const written = conversationsOf(world).flatMap(conversation =>
    conversation.flatMap(({ mail, sender }) => {
      if (sender.side !== 'ours' || !isWithin(world, mail.at, WRITTEN_WITHIN)) return []
      return distinct(recipientsOf(world, mail).flatMap(({ contact }) => contact ?? []))
        .filter(({ hasOptedOut }) => hasOptedOut)
        .map(contact => ({ contact, mail }))
    }),
  )
  const rows = distinct(written.map(({ contact }) => contact)).map(contact => {
    const own = written.filter(each => each.contact === contact)
    return {
      contact: contact.name,
      company: world.companies.find(({ id }) => id === contact.companyId)?.name ?? null,
      mails: own.length,
      group_mails: countOf(own, ({ mail }) => mail.isGroup),
      last_day: dayOf(latest(own.map(({ mail }) => mail.at)) ?? '', world.settings),
      contact_id: contact.id,
    }
  })
  return sortedBy(rows, '-mails', 'contact_id')
}

export const MAIL_QUESTIONS: readonly Question[] = [replyTime, responseTimes, customersWaiting, optedOut]
