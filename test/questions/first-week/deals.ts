import { groupedBy } from '../../support/grouped-by.ts'
import type { Activity, Deal, DealChange, Mail, Meeting, Stage, World } from './world-rows.ts'

/** Outcome, amount, owner and activities of deals. */

export type Outcome = 'open' | 'won' | 'lost' | 'unknown'

export const stageOf = (world: World, { stageId }: Pick<Deal, 'stageId'>): Stage | undefined =>
  world.stages.find(({ id }) => id === stageId)

/** The probability of a stage from 0 to 1; null when it is not known. */
export function probabilityOf(world: World, stage: Stage | undefined): number | null {
  if (!stage || Number.isNaN(stage.probability)) return null
  const isPercent = world.stages.some(
    ({ pipelineId, probability }) => pipelineId === stage.pipelineId && probability > 1,
  )
  return isPercent ? stage.probability / 100 : stage.probability
}

export function outcomeOf(world: World, deal: Deal): Outcome {
  if (!deal.isClosed) return 'open'
  const probability = probabilityOf(world, stageOf(world, deal))
  if (probability === 1) return 'won'
  return probability === 0 ? 'lost' : 'unknown'
}

export const openDeals = (world: World): Deal[] => world.deals.filter(({ isClosed }) => !isClosed)

/** An amount in the reporting currency; null when it is not known. */
export function inEuros({ settings }: World, amount: number | null, currency: string | null): number | null {
  const rate = settings.rates[currency ?? '']
  return amount === null || rate === undefined ? null : amount * rate
}

export const worthOf = (world: World, { amount, currency }: Deal): number | null =>
  inEuros(world, amount, currency)

/** Changes of a deal's field in the order of time. */
export const changesOf = ({ dealChanges }: World, { id }: Deal, field: string): DealChange[] =>
  dealChanges
    .filter(change => change.dealId === id && change.field === field)
    .sort((a, b) => (a.observedAt < b.observedAt ? -1 : 1))

export interface Owner {
  owner_id: string | null
  /** Null when there is none. `Former member` and the end of the id when the name is not known any more. */
  owner: string | null
  owner_state: 'member' | 'left' | 'none'
}

export function ownerOf({ members, formerMembers }: World, ownerId: string | null): Owner {
  if (ownerId === null) return { owner_id: null, owner: null, owner_state: 'none' }
  const member = members.find(({ id }) => id === ownerId)
  const former = formerMembers.find(({ id }) => id === ownerId)
  return {
    owner_id: ownerId,
    owner: member?.name ?? former?.name ?? `Former member ${ownerId.slice(-4)}`,
    owner_state: member ? 'member' : 'left',
  }
}

/** An e-mail or a meeting around a deal. Both are null when it cannot be read and only its activity is known. */
export interface Touch {
  /** The e-mail's or the meeting's id, else that of what the activity is about. */
  key: string
  at: string
  isMeeting: boolean
  mail: Mail | null
  meeting: Meeting | null
}

/** The e-mails and meetings of these activities until now, each once. */
export function touchesIn(world: World, activities: readonly Activity[]): Touch[] {
  const mails = mailsByCopy(world)
  const meetings = new Map(world.meetings.map(meeting => [meeting.id, meeting]))
  const all = activities
    .filter(({ sourceType }) => sourceType === 'MESSAGE' || sourceType === 'MEETING')
    .map(({ sourceType, sourceId, at }): Touch => {
      const mail = (sourceType === 'MESSAGE' && mails.get(sourceId)) || null
      const meeting = (sourceType === 'MEETING' && meetings.get(sourceId)) || null
      const isMeeting = sourceType === 'MEETING'
      return { key: mail?.id ?? sourceId, at: mail?.at ?? meeting?.at ?? at, isMeeting, mail, meeting }
    })
    .filter(({ at }) => at <= world.now)
  return [...groupedBy(all, ({ key }) => key).values()].flatMap(([first]) => first ?? [])
}

export const touchesOfDeal = (world: World, { id }: Deal): Touch[] =>
  touchesIn(
    world,
    world.activities.filter(({ dealIds }) => dealIds.includes(id)),
  )

const mailCache = new WeakMap<World, Map<string, Mail>>()

function mailsByCopy(world: World): Map<string, Mail> {
  const known =
    mailCache.get(world) ??
    new Map(world.mails.flatMap(mail => mail.copyIds.map((copy): [string, Mail] => [copy, mail])))
  mailCache.set(world, known)
  return known
}
