import { conversationsOf, waitsIn } from './conversations.ts'
import { countOf, distinct, latest, mean, sum } from './counting.ts'
import { openDeals, outcomeOf, touchesOfDeal, worthOf } from './deals.ts'
import { dayOf, daysBetween, workingHoursBetween } from './local-time.ts'
import { heldMeetings, isExternal, peopleOf, recipientsOf, senderOf } from './people.ts'
import type { Deal, Mail, Meeting, World } from './world-rows.ts'

/** The metrics of all time, computed without SQL. The rules of `question.ts` hold for them. */

const REPLY_DAYS = 30
const SILENT_DAYS = 30

/** @param linked ids of the e-mails and meetings that the API links to a record */
export function metricValues(
  world: World,
  linked: ReadonlySet<string>,
): Readonly<Record<string, number | null>> {
  const dayIn = (at: string): string => dayOf(at, world.settings)
  const outcome = (deal: Deal) => outcomeOf(world, deal)
  const open = openDeals(world)
  const worthsOf = (deals: readonly Deal[]) => deals.flatMap(deal => worthOf(world, deal) ?? [])
  const renewals = world.pipelines.filter(({ name }) => world.settings.renewalPipelines.includes(name))
  const isRenewal = ({ pipelineId }: Deal) => renewals.some(({ id }) => id === pipelineId)
  const [sales, renewed] = [false, true].map(renewal =>
    world.deals.filter(deal => isRenewal(deal) === renewal),
  )
  const rates = (deals: readonly Deal[] = []) => {
    const won = deals.filter(deal => outcome(deal) === 'won')
    const decided = [...won, ...deals.filter(deal => outcome(deal) === 'lost')]
    return [won.length / decided.length, sum(worthsOf(won)) / sum(worthsOf(decided))] as const
  }
  const cycles = (sales ?? []).flatMap(deal =>
    outcome(deal) === 'won' && deal.createdAt !== null && deal.closeDate !== null
      ? daysBetween(dayIn(deal.createdAt), deal.closeDate)
      : [],
  )
  const replies = conversationsOf(world)
    .flatMap(conversation => waitsIn(conversation, ({ side }) => side === 'outside'))
    .flatMap(({ asked: [first], answer }) => {
      if (!first || !answer) return []
      const [from, to] = [first.mail.at, answer.mail.at]
      // An e-mail of the same instant is no answer. In this world the next one then comes too late to be counted.
      return from === to || daysBetween(dayIn(from), dayIn(to)) > REPLY_DAYS
        ? []
        : workingHoursBetween(from, to, world.settings)
    })
  const meetings = heldMeetings(world).filter(meeting => isExternal(world, meeting))
  const mails = world.mails.filter(mail => hasOutsider(world, mail))
  const spoken = meetings.flatMap(meeting => sharesIn(world, meeting))
  const ofMembers = spoken.filter(({ address }) => address !== null && wasMember(world, address))
  const isSilent = (deal: Deal): boolean => {
    const last = latest(touchesOfDeal(world, deal).map(({ at }) => dayIn(at)))
    return last === null || daysBetween(last, world.today) >= SILENT_DAYS
  }
  const [winRate, winRateByAmount] = rates(sales)
  const [renewalRate, renewalRateByAmount] = rates(renewed)
  return {
    open_pipeline: sum(worthsOf(open)),
    open_deals: open.length,
    win_rate: winRate,
    win_rate_by_amount: winRateByAmount,
    renewal_rate: renewalRate,
    renewal_rate_by_amount: renewalRateByAmount,
    cycle_days: mean(cycles.filter(days => days >= 0)),
    meetings_held: meetings.length,
    mails_sent: countOf(mails, mail => senderOf(world, mail)?.side === 'ours'),
    reply_hours: mean(replies),
    rep_talk_ratio: mean(ofMembers.map(({ ratio }) => ratio)),
    team_talk_ratio:
      sum(spoken.filter(({ isOurs }) => isOurs).map(({ ratio }) => ratio)) /
      sum(spoken.map(({ ratio }) => ratio)),
    silent_deals: countOf(open, isSilent),
    overdue_promises: heldMeetings(world)
      .flatMap(({ actionItems }) => actionItems)
      .filter(({ isCompleted, dueDay }) => !isCompleted && dueDay !== null && dueDay < world.today).length,
    crm_link_coverage:
      countOf([...meetings, ...mails], ({ id }) => linked.has(id)) / (meetings.length + mails.length),
  }
}

const hasOutsider = (world: World, mail: Mail): boolean =>
  [senderOf(world, mail), ...recipientsOf(world, mail)].some(person => person?.side === 'outside')

/** Somebody whose name parley has purged is still known by the address. */
const wasMember = (world: World, address: string): boolean =>
  [...world.members, ...world.formerMembers].some(({ email }) => email?.toLowerCase() === address)

interface Share {
  /** Null for a speaker whose name no one of the meeting has, or two people have. */
  address: string | null
  isOurs: boolean
  ratio: number
}

/** Who spoke how much. A name that two people have is that of no known person. */
function sharesIn(world: World, { ownerName, ownerEmail, attendees, speakers }: Meeting): Share[] {
  const named = [...attendees, { name: ownerName, email: ownerEmail }]
  return distinct(speakers.map(({ name }) => name)).flatMap(name => {
    const own = speakers.filter(speaker => speaker.name === name).map(({ ratio }) => ratio)
    const people = distinct(
      named.flatMap(each => (each.name === name ? (each.email?.toLowerCase() ?? each) : [])),
    )
    const [address] = people.filter(each => typeof each === 'string')
    if (own.includes(null)) return []
    const ratio = sum(own.map(Number))
    if (address === undefined || people.length > 1) return { address: null, isOurs: false, ratio }
    return { address, isOurs: peopleOf(world).sideOf(address) === 'ours', ratio }
  })
}
