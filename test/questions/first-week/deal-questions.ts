import { cents, countOf, distinct, latest, sortedBy } from './counting.ts'
import { openDeals, ownerOf, stageOf, type Touch, touchesOfDeal, worthOf } from './deals.ts'
import { dayOf, daysBetween } from './local-time.ts'
import { isWithin, membersIn, type Person, peopleOf, senderOf, speakersOf } from './people.ts'
import type { AnswerRow, Question } from './question.ts'
import type { Deal, World } from './world-rows.ts'

/** Questions about single open deals and how they are looked after. */

// ------------------------------------------------------------------------------------------------ engaged

/** Days back in which a person was engaged. */
const ENGAGED_WITHIN = 90
const ENOUGH_PEOPLE = 2

const singleThreaded: Question = {
  name: 'deals-with-one-contact',
  meaning: `A person outside is engaged in a deal if the person wrote an e-mail or spoke in a meeting in the last
${ENGAGED_WITHIN} days that belongs to the deal. A person who only receives e-mails or is invited is not engaged.
Partners are not outside, and a person with two addresses counts once. The rows are open deals with
fewer than ${ENOUGH_PEOPLE} engaged people. Ordered by amount, largest first, then by name and id.`,
  key: ['deal_id'],
  columns: ['deal', 'stage', 'owner', 'amount_reporting', 'engaged_people', 'deal_id'],
  answer: world => tooFewPeople(world, engagedIn),
  trap: {
    overlooks: 'who really writes and attends, and counts the contacts that the CRM associates with the deal',
    answer: world =>
      tooFewPeople(world, (_, __, { id }) =>
        world.dealContacts.filter(({ dealId }) => dealId === id).map(({ contactId }) => contactId),
      ),
  },
}

function tooFewPeople(
  world: World,
  peopleIn: (world: World, touches: readonly Touch[], deal: Deal) => string[],
): AnswerRow[] {
  const rows = openDeals(world).map(deal => {
    const touches = touchesOfDeal(world, deal).filter(({ at }) => isWithin(world, at, ENGAGED_WITHIN))
    return {
      deal: deal.name,
      stage: stageOf(world, deal)?.name ?? null,
      owner: ownerOf(world, deal.ownerId).owner,
      amount_reporting: cents(worthOf(world, deal)),
      engaged_people: distinct(peopleIn(world, touches, deal)).length,
      deal_id: deal.id,
    }
  })
  const few = rows.filter(({ engaged_people }) => engaged_people < ENOUGH_PEOPLE)
  return sortedBy(few, '-amount_reporting', 'deal', 'deal_id')
}

function engagedIn(world: World, touches: readonly Touch[]): string[] {
  const people = touches.flatMap(({ mail, meeting }): (Person | null)[] =>
    mail ? [senderOf(world, mail)] : meeting ? speakersOf(world, meeting) : [],
  )
  return people.flatMap(person => (person?.side === 'outside' ? person.key : []))
}

// ------------------------------------------------------------------------------------------------ silent

const SILENT_DAYS = 14

const silentDeals: Question = {
  name: 'deals-without-activity',
  meaning: `An activity of a deal is an e-mail in either direction or a meeting that belongs to it, even if it
cannot be read. A change in the CRM is no activity. The rows are open deals whose last activity was on a
local day ${SILENT_DAYS} or more days ago, and open deals that never had one; their days are NULL.
Ordered by days, longest first, then by name and id; deals without any activity come last.`,
  key: ['deal_id'],
  columns: [
    'days_silent',
    'last_day',
    'deal',
    'stage',
    'owner',
    'owner_state',
    'amount_reporting',
    'deal_id',
  ],
  answer: world => silentSince(world, touchesOfDeal),
  trap: {
    overlooks: 'that a change of the CRM is no activity',
    answer: world =>
      silentSince(world, (_, { id }) => world.activities.filter(({ dealIds }) => dealIds.includes(id))),
  },
}

function silentSince(
  world: World,
  happenedTo: (world: World, deal: Deal) => readonly { at: string }[],
): AnswerRow[] {
  const rows = openDeals(world).map(deal => {
    const last = latest(happenedTo(world, deal).map(({ at }) => dayOf(at, world.settings)))
    const { owner, owner_state } = ownerOf(world, deal.ownerId)
    return {
      days_silent: last === null ? null : daysBetween(last, world.today),
      last_day: last,
      deal: deal.name,
      stage: stageOf(world, deal)?.name ?? null,
      owner,
      owner_state,
      amount_reporting: cents(worthOf(world, deal)),
      deal_id: deal.id,
    }
  })
  const silent = rows.filter(({ days_silent }) => days_silent === null || days_silent >= SILENT_DAYS)
  return sortedBy(silent, '-days_silent', 'deal', 'deal_id')
}

// ------------------------------------------------------------------------------------------------ quality

const crmQuality: Question = {
  name: 'crm-quality',
  meaning: `Open deals by owner. The row without \`owner_id\` is for deals without an owner; a member who has left has
the \`owner_state\` left. A close date has passed when it is before today. A next step that is empty or
blank counts as missing; an amount of 0 is an amount. \`in_order\` counts the deals that lack nothing and
whose owner is a member. Ordered by the number of open deals, most first, then by id.`,
  key: ['owner_id'],
  columns: [
    'owner',
    'owner_state',
    'open_deals',
    'without_amount',
    'without_close_date',
    'close_date_passed',
    'without_next_step',
    'in_order',
    'owner_id',
  ],
  answer: qualityByOwner,
  trap: {
    overlooks: 'that owners leave, and takes every owner for a member',
    answer: world => {
      const former = distinct(world.deals.flatMap(({ ownerId }) => ownerId ?? [])).map(id => ({
        id,
        name: ownerOf(world, id).owner ?? '',
        email: '',
      }))
      return qualityByOwner({ ...world, members: [...world.members, ...former] })
    },
  },
}

function qualityByOwner(world: World): AnswerRow[] {
  const deals = openDeals(world)
  const lacksAmount = ({ amount }: Deal): boolean => amount === null
  const lacksDate = ({ closeDate }: Deal): boolean => closeDate === null
  const isOverdue = ({ closeDate }: Deal): boolean => closeDate !== null && closeDate < world.today
  const lacksStep = ({ nextStep }: Deal): boolean => (nextStep ?? '').trim() === ''
  const isInOrder = (deal: Deal): boolean =>
    ownerOf(world, deal.ownerId).owner_state === 'member' &&
    ![lacksAmount, lacksDate, isOverdue, lacksStep].some(lacks => lacks(deal))
  const rows = distinct(deals.map(({ ownerId }) => ownerId)).map(id => {
    const own = deals.filter(({ ownerId }) => ownerId === id)
    const { owner, owner_state, owner_id } = ownerOf(world, id)
    return {
      owner,
      owner_state,
      open_deals: own.length,
      without_amount: countOf(own, lacksAmount),
      without_close_date: countOf(own, lacksDate),
      close_date_passed: countOf(own, isOverdue),
      without_next_step: countOf(own, lacksStep),
      in_order: countOf(own, isInOrder),
      owner_id,
    }
  })
  return sortedBy(rows, '-open_deals', 'owner_id')
}

// ------------------------------------------------------------------------------------------------ left owners

/** Days back in which a member was in touch. */
const IN_TOUCH_WITHIN = 90

const dealsOfLeavers: Question = {
  name: 'deals-of-leavers',
  meaning: `Open deals whose owner is not a member now, including owners that parley never saw as members. Each deal
in fact belongs to the member who was in touch most often in the last ${IN_TOUCH_WITHIN} days. Each
e-mail that the member wrote counts once, and so does each meeting that the member owned or attended, if
it belongs to the deal; group e-mails do not count. If two members have the same number, the one who was
in touch last wins, then the one with the smaller id. The member is NULL when no member was in touch.
Ordered by amount, largest first, then by id.`,
  key: ['deal_id'],
  columns: [
    'deal',
    'amount_reporting',
    'owner',
    'member',
    'times_in_touch',
    'last_day',
    'deal_id',
    'member_id',
  ],
  answer: leaversDeals,
  trap: {
    overlooks: 'owners who left before the first read and are no former members in the warehouse',
    answer: world =>
      leaversDeals({
        ...world,
        deals: world.deals.filter(({ ownerId }) => world.formerMembers.some(({ id }) => id === ownerId)),
      }),
  },
}

function leaversDeals(world: World): AnswerRow[] {
  const left = openDeals(world).filter(({ ownerId }) => ownerOf(world, ownerId).owner_state === 'left')
  const rows = left.map(deal => {
    const touches = touchesOfDeal(world, deal).filter(({ at }) => isWithin(world, at, IN_TOUCH_WITHIN))
    const [most] = inTouch(world, touches)
    return {
      deal: deal.name,
      amount_reporting: cents(worthOf(world, deal)),
      owner: ownerOf(world, deal.ownerId).owner,
      member: most?.member ?? null,
      times_in_touch: most?.times ?? 0,
      last_day: most ? dayOf(most.last, world.settings) : null,
      deal_id: deal.id,
      member_id: most?.member_id ?? null,
    }
  })
  return sortedBy(rows, '-amount_reporting', 'deal_id')
}

/** Members by how often they were in touch, the most often first. */
function inTouch(world: World, touches: readonly Touch[]) {
  const membersOf = ({ mail, meeting }: Touch) => {
    if (meeting) return membersIn(world, meeting)
    const member = mail && !mail.isGroup && peopleOf(world).memberAt(senderOf(world, mail)?.address ?? null)
    return member ? [member] : []
  }
  const rows = world.members.flatMap(member => {
    const own = touches.filter(touch => membersOf(touch).includes(member)).map(({ at }) => at)
    const last = latest(own)
    return last === null ? [] : { member_id: member.id, member: member.name, times: own.length, last }
  })
  return sortedBy(rows, '-times', '-last', 'member_id')
}

export const DEAL_QUESTIONS: readonly Question[] = [singleThreaded, silentDeals, crmQuality, dealsOfLeavers]
