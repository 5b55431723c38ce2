import { type Conversation, conversationsOf } from './conversations.ts'
import { cents, countOf, distinct, earliest, latest, sortedBy, sum } from './counting.ts'
import { openDeals, ownerOf, stageOf, touchesIn, worthOf } from './deals.ts'
import { addDays, dayOf, daysBetween, fiscalQuarterOf } from './local-time.ts'
import { attendeesOf, heldMeetings, type Person, recipientsOf } from './people.ts'
import type { AnswerRow, Question } from './question.ts'
import type { Company, World } from './world-rows.ts'

/** Questions about customers: companies and the people in them. */

/** Companies of the CRM that are no partners. */
const accountsOf = ({ companies, settings }: World): Company[] =>
  companies.filter(({ domain }) => !settings.partnerDomains.includes(domain))

// ------------------------------------------------------------------------------------------------ health

/** An account is good up to this number of days after the last contact, then cooling, then cold. */
const GOOD_DAYS = 14
const COOLING_DAYS = 30

const accountHealth: Question = {
  name: 'account-health',
  meaning: `Every company in the CRM except partners. A two-way contact is a meeting that a person of the company
and one of ours attended, or an e-mail that answers the other side. An e-mail answers the other side if
the e-mail before it in its conversation is from the other side, one of them from us and one from
outside; group e-mails and e-mails from partners are left out first. It counts for the company of the
sender outside. The health is good up to ${GOOD_DAYS} days after the last two-way contact, cooling up to
${COOLING_DAYS} days, and cold after that or without any. \`withheld\` counts meetings of the
company after that contact that cannot be read. Ordered by days, longest first, then by id; companies
without any contact come first.`,
  key: ['company_id'],
  columns: [
    'company',
    'health',
    'days_since',
    'last_two_way_day',
    'open_deals',
    'open_amount',
    'withheld',
    'company_id',
  ],
  answer: world => healthOf(world, answersIn),
  trap: {
    overlooks: 'that an e-mail without an answer is no two-way contact',
    answer: world =>
      healthOf(world, (_, conversation) =>
        conversation.flatMap(({ mail, sender }) =>
          [sender, ...recipientsOf(world, mail)].flatMap(({ company }) =>
            company ? { company, at: mail.at } : [],
          ),
        ),
      ),
  },
}

interface Contacted {
  company: Company
  at: string
}

function healthOf(
  world: World,
  contactsIn: (world: World, conversation: Conversation) => Contacted[],
): AnswerRow[] {
  const contacts = [
    ...conversationsOf(world).flatMap(conversation => contactsIn(world, conversation)),
    ...companiesMet(world),
  ]
  const rows = accountsOf(world).map(company => {
    const last = latest(contacts.filter(each => each.company.id === company.id).map(({ at }) => at))
    const days = last === null ? null : daysBetween(dayOf(last, world.settings), world.today)
    const deals = openDeals(world).filter(({ companyId }) => companyId === company.id)
    const touches = touchesIn(
      world,
      world.activities.filter(({ companyIds }) => companyIds.includes(company.id)),
    )
    return {
      company: company.name,
      health: days === null || days > COOLING_DAYS ? 'cold' : days > GOOD_DAYS ? 'cooling' : 'good',
      days_since: days,
      last_two_way_day: last === null ? null : dayOf(last, world.settings),
      open_deals: deals.length,
      open_amount: cents(sum(deals.flatMap(deal => worthOf(world, deal) ?? []))),
      withheld: countOf(touches, ({ key, at }) => world.withheldMeetings.has(key) && at > (last ?? '')),
      company_id: company.id,
    }
  })
  const never = rows.filter(({ days_since }) => days_since === null)
  const met = rows.filter(({ days_since }) => days_since !== null)
  return [...sortedBy(never, 'company_id'), ...sortedBy(met, '-days_since', 'company_id')]
}

/** Answers between us and people outside, in either direction. */
function answersIn(_: World, conversation: Conversation): Contacted[] {
  const mails = conversation.filter(({ mail, sender }) => !mail.isGroup && sender.side !== 'partner')
  return mails.flatMap(({ mail, sender }, place) => {
    const previous = mails[place - 1]
    if (!previous || previous.sender.side === sender.side) return []
    const outside = sender.side === 'outside' ? sender : previous.sender
    return outside.company ? [{ company: outside.company, at: mail.at }] : []
  })
}

function companiesMet(world: World): Contacted[] {
  return heldMeetings(world).flatMap(meeting => {
    const people = attendeesOf(world, meeting)
    if (!people.some(({ side }) => side === 'ours')) return []
    return distinct(outsideCompanies(people)).map(company => ({ company, at: meeting.at }))
  })
}

const outsideCompanies = (people: readonly Person[]): Company[] =>
  people.flatMap(({ side, company }) => (side === 'outside' && company ? company : []))

// ------------------------------------------------------------------------------------------------ renewals

const renewalsAhead: Question = {
  name: 'renewals-ahead',
  meaning: `Open deals in a pipeline for renewals whose close date is in one of the two fiscal quarters after this
quarter. Records of other objects, such as renewal orders, do not count, and neither do deals in other
pipelines, whatever their name. Open renewals without a close date may be due then; they come last,
without a quarter. Ordered by quarter, then by amount, largest first, then by id.`,
  key: ['deal_id'],
  columns: [
    'fiscal_quarter',
    'deal',
    'company',
    'stage',
    'close_date',
    'owner',
    'owner_state',
    'amount',
    'currency',
    'amount_reporting',
    'deal_id',
  ],
  answer: renewalsDue,
  trap: {
    overlooks: 'that the pipeline says what a renewal is, and goes by the names of deals',
    answer: world =>
      renewalsDue({
        ...world,
        deals: world.deals
          .filter(({ name }) => /renewal/i.test(name))
          .map(deal => ({ ...deal, pipelineId: renewalPipelines(world)[0] ?? null })),
      }),
  },
}

const renewalPipelines = ({ pipelines, settings }: World): string[] =>
  pipelines.filter(({ name }) => settings.renewalPipelines.includes(name)).map(({ id }) => id)

function renewalsDue(world: World): AnswerRow[] {
  const quarters = [1, 2].map(ahead => fiscalQuarterOf(world.today, ahead, world.settings))
  const rows = openDeals(world)
    .filter(({ pipelineId }) => renewalPipelines(world).includes(pipelineId ?? ''))
    .flatMap((deal): AnswerRow[] => {
      const { closeDate } = deal
      const quarter = quarters.find(
        ({ fromDay, toDay }) => closeDate !== null && closeDate >= fromDay && closeDate <= toDay,
      )
      if (!quarter && closeDate !== null) return []
      const { owner, owner_state } = ownerOf(world, deal.ownerId)
      return [
        {
          fiscal_quarter: quarter?.name ?? null,
          deal: deal.name,
          company: world.companies.find(({ id }) => id === deal.companyId)?.name ?? null,
          stage: stageOf(world, deal)?.name ?? null,
          close_date: closeDate,
          owner,
          owner_state,
          amount: deal.amount,
          currency: deal.currency,
          amount_reporting: cents(worthOf(world, deal)),
          deal_id: deal.id,
        },
      ]
    })
  return sortedBy(rows, 'fiscal_quarter', '-amount_reporting', 'deal_id')
}

// ------------------------------------------------------------------------------------------------ new people

const NEW_WITHIN = 30

const newPeople: Question = {
  name: 'new-people-at-known-accounts',
  meaning: `A person appears as the sender or a recipient of an e-mail, or as an attendee of a meeting; the
recipients of a group e-mail do not appear by it. The rows are persons outside who first appeared in the
last ${NEW_WITHIN} days, at a company in the CRM of which another person had appeared before. A known
person with a new address is not new. A person at a domain of free mail who is no contact has no
company. Ordered by day, newest first, then by company and person.`,
  key: ['party_id'],
  columns: ['first_day', 'company', 'contact_id', 'party_id', 'company_id'],
  answer: newcomers,
  trap: {
    overlooks: 'that one person writes from two addresses',
    answer: world =>
      newcomers({
        ...world,
        contacts: world.contacts.map(contact => ({ ...contact, secondEmail: null })),
        mails: world.mails.map(mail => ({
          ...mail,
          participants: mail.participants.map(each => ({ ...each, contactId: null })),
        })),
      }),
  },
}

function newcomers(world: World): AnswerRow[] {
  const seen = appearances(world)
  const since = addDays(world.today, 1 - NEW_WITHIN)
  const dayIn = (at: string): string => dayOf(at, world.settings)
  const accounts = new Set(accountsOf(world).map(({ id }) => id))
  const firstDays = distinct(seen.map(({ person }) => person.key)).map(key => {
    const own = seen.filter(({ person }) => person.key === key)
    const first = earliest(own.map(({ at }) => at)) ?? ''
    const person = own[0]?.person
    return { person, company: person?.company ?? null, day: dayIn(first) }
  })
  const known = new Set(firstDays.flatMap(({ company, day }) => (company && day < since ? company.id : [])))
  const rows = firstDays.flatMap(({ person, company, day }): AnswerRow[] =>
    person && company && day >= since && known.has(company.id) && accounts.has(company.id)
      ? [
          {
            first_day: day,
            company: company.name,
            contact_id: person.contact?.id ?? null,
            party_id: person.key,
            company_id: company.id,
          },
        ]
      : [],
  )
  return sortedBy(rows, '-first_day', 'company_id', 'party_id')
}

/** Persons outside, each time that they appear until now. */
function appearances(world: World): { person: Person; at: string }[] {
  const inMails = conversationsOf(world).flatMap(conversation =>
    conversation.flatMap(({ mail, sender }) =>
      [sender, ...(mail.isGroup ? [] : recipientsOf(world, mail))].map(person => ({ person, at: mail.at })),
    ),
  )
  const inMeetings = heldMeetings(world).flatMap(meeting =>
    attendeesOf(world, meeting).map(person => ({ person, at: meeting.at })),
  )
  return [...inMails, ...inMeetings].filter(({ person }) => person.side === 'outside')
}

export const ACCOUNT_QUESTIONS: readonly Question[] = [accountHealth, renewalsAhead, newPeople]
