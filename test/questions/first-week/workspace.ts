import type { Clock } from '../../../src/base/clock.ts'
import type { Change } from '../../../src/simulator/changes/change.ts'
import { FORMER_STAGE } from '../../../src/simulator/content/objects.ts'
import { type Simulator, startSimulator } from '../../../src/simulator/server.ts'

/**
 * A realistic made-up workspace whose clock only moves when this file moves it. Eleven weeks pass in it, and between
 * the reads people write e-mails, meet, edit deals, leave and delete things.
 */

/** The first read: a Wednesday, 12:00 in Tokyo. */
const FIRST_READ = '2026-03-04T03:00:00Z'

/** The reads after it. One is on Monday in Tokyo while it is still Sunday in UTC. */
const LATER_READS = [
  '2026-03-18T03:00:00Z',
  '2026-04-01T03:00:00Z',
  '2026-04-15T03:00:00Z',
  '2026-04-29T03:00:00Z',
  '2026-05-13T03:00:00Z',
  '2026-05-17T23:00:00Z',
  '2026-05-19T03:00:00Z',
  '2026-05-20T03:00:00Z',
] as const

export const READS = [FIRST_READ, ...LATER_READS] as const

/** The clock of the last read: Wednesday, 12:00 in Tokyo. */
export const NOW = '2026-05-20T03:00:00.000Z'

/** Members by their number in the simulator. Another one left before the first read. */
const LEAVES_EARLY = 3
const LEAVES_LATE = 5

/** One of the seeds whose workspace has a case for nearly every column of the answers. */
const SEED = 12

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Sends e-mails, meets and edits deals at these hours of a day, UTC. Hour 23 is the next morning in Tokyo. */
const HOURS = [0.4, 1.7, 3.2, 5.1, 7.6, 9.4, 14.3, 23.2] as const

const publish = (resource: 'messages' | 'meetings'): Change => ({ kind: 'publish', resource })
const editDeal: Change = { kind: 'edit', resource: 'crm_records', object: 'deal' }

/** The changes at one of the hours of a day. Pure. */
function dailyChanges(day: number, hour: number): Change[] {
  const number = day * HOURS.length + hour
  const changes: Change[] = [publish('messages')]
  // Two copies from other mailboxes of any e-mails, and an e-mail of the past.
  if (hour % 2 === 1) changes.push({ kind: 'publishLate', resource: 'messages', count: 3 })
  if (day % 3 > 0 && hour === day % 5) changes.push(publish('meetings'))
  if (number % 13 === 4) changes.push(editDeal)
  if (number % 47 === 30) changes.push({ kind: 'publish', resource: 'crm_records', object: 'deal' })
  if (number % 29 === 10) changes.push({ kind: 'hide', resource: 'meetings' })
  if (number % 61 === 20) changes.push({ kind: 'edit', resource: 'meetings' })
  return changes
}

/** Days on which the same early deals are edited, so that their close dates move several times. */
const POSTPONED_ON = ['2026-03-25', '2026-04-22']
/** Stages in which a deal stays open after these edits, and how many deals. */
const POSTPONED = { stages: ['Qualified', 'Upcoming'], count: 40 }

/** Changes on certain days, after the changes of the day. */
function changesOfDay(day: string, { world }: Simulator, early: () => readonly string[]): Change[] {
  const member = (index: number): Change => ({
    kind: 'hide',
    resource: 'members',
    id: world.people.members.ids.of(index),
  })
  const deleteRecord = (object: string): Change => ({ kind: 'delete', resource: 'crm_records', object })
  if (day === '2026-03-20') return [member(LEAVES_EARLY)]
  if (POSTPONED_ON.includes(day)) return early().map(id => ({ ...editDeal, id }))
  if (day === '2026-04-20')
    return [deleteRecord('contact'), deleteRecord('deal'), { kind: 'delete', resource: 'messages', count: 9 }]
  if (day === '2026-05-10') return formerStage(world)
  if (day === '2026-05-14') return [member(LEAVES_LATE), deleteRecord('contact')]
  if (day === '2026-05-17' || day === '2026-05-18') return Array<Change>(4).fill(editDeal)
  return []
}

/** The stage of an old process goes. Closed deals keep it. */
function formerStage({ truth }: Simulator['world']): Change[] {
  return [...truth().items('crm_records')]
    .filter(({ object, fields }) => object === 'stage' && nameIn(fields) === FORMER_STAGE)
    .map(({ id }) => ({ kind: 'delete', resource: 'crm_records', object: 'stage', id: String(id) }))
}

/** Open deals in an early stage. */
function earlyDeals({ truth }: Simulator['world']): string[] {
  const records = [...truth().items('crm_records')]
  const stages = records
    .filter(({ object, fields }) => object === 'stage' && POSTPONED.stages.includes(String(nameIn(fields))))
    .map(({ id }) => id)
  return records
    .filter(({ object, fields }) => object === 'deal' && stages.includes((fields as Fields)['stage_id']))
    .slice(0, POSTPONED.count)
    .map(({ id }) => String(id))
}

type Fields = Readonly<Record<string, unknown>>
const nameIn = (fields: unknown): unknown => (fields as Fields)['name']

export interface FirstWeekWorkspace {
  simulator: Simulator
  /** Lets the time until an instant pass, with its changes. */
  passUntil(instant: string): void
}

export async function startWorkspace(): Promise<FirstWeekWorkspace> {
  const simulator = await startSimulator({
    seed: SEED,
    clock: stillClock(),
    now: FIRST_READ,
    historyDays: 290,
    tidy: true,
    realistic: true,
    messages: 500,
    meetings: 90,
    deals: 120,
    companies: 20,
    contacts: 420,
    members: 12,
    collections: 2,
    playbooks: 2,
    customRecords: 12,
    accessLogs: 20,
    transcriptTurns: 4,
  })
  let postponed: readonly string[] | undefined
  const early = (): readonly string[] => {
    postponed ??= earlyDeals(simulator.world)
    return postponed
  }
  let now = Date.parse(FIRST_READ)
  const moveTo = (ms: number): void => {
    simulator.passTime(ms - now)
    now = ms
  }
  return {
    simulator,
    passUntil: instant => {
      const end = Date.parse(instant)
      for (const { at, changes } of momentsBetween(now, end, { simulator, early })) {
        moveTo(at)
        for (const change of changes()) simulator.apply(change)
      }
      moveTo(end)
    },
  }
}

/** The moments after one instant and before another at which something changes, in order. */
function momentsBetween(
  from: number,
  to: number,
  { simulator, early }: { simulator: Simulator; early: () => readonly string[] },
) {
  const moments: { at: number; changes: () => Change[] }[] = []
  for (let day = Math.floor(from / DAY_MS); day * DAY_MS < to; day++) {
    HOURS.forEach((hour, place) => {
      // Minutes differ from day to day.
      const at = day * DAY_MS + hour * HOUR_MS + ((day * 37 + place * 17) % 40) * 60_000
      moments.push({ at, changes: () => dailyChanges(day, place) })
    })
    const name = new Date(day * DAY_MS).toISOString().slice(0, 10)
    moments.push({ at: day * DAY_MS + 12 * HOUR_MS, changes: () => changesOfDay(name, simulator, early) })
  }
  return moments.filter(({ at }) => at > from && at <= to).sort((a, b) => a.at - b.at)
}

/** Stands still, so that the workspace is the same in every run. */
function stillClock(): Clock {
  const started = Date.parse(FIRST_READ)
  return {
    now: () => started,
    elapsed: () => 0,
    sleep: async () => undefined,
  }
}
