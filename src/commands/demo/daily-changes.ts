import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../base/clock.ts'
import type { Change } from '../../simulator/changes/change.ts'
import { FORMER_STAGE } from '../../simulator/content/objects.ts'
import type { Simulator } from '../../simulator/server.ts'

/** The daily changes in the demo's workspace between its backfills. */

interface DailyChange {
  /** The change happens once in this many days. */
  everyDays: number
  change: Change
}

/** Changes for each thousand e-mails of the workspace. */
const CHANGES_PER_THOUSAND: readonly DailyChange[] = [
  { everyDays: 1, change: { kind: 'publish', resource: 'messages' } },
  { everyDays: 1, change: { kind: 'publish', resource: 'messages' } },
  { everyDays: 1, change: { kind: 'publish', resource: 'messages' } },
  { everyDays: 1, change: { kind: 'publish', resource: 'messages' } },
  { everyDays: 3, change: { kind: 'publish', resource: 'meetings' } },
  { everyDays: 2, change: { kind: 'edit', resource: 'crm_records', object: 'deal' } },
  { everyDays: 9, change: { kind: 'publish', resource: 'crm_records', object: 'deal' } },
]

const FIXED_CHANGES: readonly DailyChange[] = [
  { everyDays: 5, change: { kind: 'delete', resource: 'messages', count: 2 } },
  { everyDays: 8, change: { kind: 'edit', resource: 'meetings' } },
  { everyDays: 15, change: { kind: 'hide', resource: 'meetings' } },
  { everyDays: 20, change: { kind: 'delete', resource: 'meetings' } },
  { everyDays: 25, change: { kind: 'delete', resource: 'crm_records', object: 'contact' } },
  { everyDays: 30, change: { kind: 'edit', resource: 'playbooks' } },
  { everyDays: 45, change: { kind: 'delete', resource: 'crm_records', object: 'deal' } },
  { everyDays: 30, change: { kind: 'hide', resource: 'members' } },
]

/** The changes of a day; the first day has number 1. Pure. */
export function changesOf(day: number, messages: number): Change[] {
  const times = Math.max(1, Math.round(messages / 1000))
  const grown = CHANGES_PER_THOUSAND.map(happening => ({ ...happening, times }))
  return [...grown, ...FIXED_CHANGES.map(happening => ({ ...happening, times: 1 }))]
    .filter(({ everyDays }) => day % everyDays === 0)
    .flatMap(({ change, times: count }) => Array<Change>(count).fill(change))
}

/** A day has parts, each of which ends this many hours before midnight. */
const HOURS_BEFORE_MIDNIGHT = [9, 6, 2.5, 0] as const

/** The ends of a day's parts, in ms from the start of the day. The ends vary by some minutes from day to day. Pure. */
export function momentsOf(day: number): number[] {
  return HOURS_BEFORE_MIDNIGHT.map((hours, part) => {
    const minutes = part === HOURS_BEFORE_MIDNIGHT.length - 1 ? 0 : (day * 37 + part * 17) % 55
    return DAY_MS - hours * HOUR_MS - minutes * MINUTE_MS
  })
}

interface PassingDays {
  simulator: Simulator
  /** How many days have passed before and after the call. */
  from: number
  to: number
  /** The number of e-mails in the workspace at the start. */
  messages: number
  /** No further day passes once this is aborted. */
  signal: AbortSignal
}

/** Lets days pass in the workspace, with changes on each. */
export async function passDays({ simulator, from, to, messages, signal }: PassingDays): Promise<void> {
  for (let day = from + 1; day <= to && !signal.aborted; day += 1) {
    const changes = changesOf(day, messages)
    let passed = 0
    for (const [part, at] of momentsOf(day).entries()) {
      simulator.passTime(at - passed)
      const ofPart = changes.filter((_, index) => index % HOURS_BEFORE_MIDNIGHT.length === part)
      for (const change of ofPart) simulator.apply(change)
      passed = at
    }
    if (day === STAGE_ENDS) for (const change of await endOfStage(simulator)) simulator.apply(change)
    await callApiAsOtherProgram(simulator)
  }
}

/** The number of the day on which the former stage is deleted. Closed deals keep that stage. */
const STAGE_ENDS = 50

async function endOfStage(simulator: Simulator): Promise<Change[]> {
  const { data } = await callApi(simulator, 'v2/objects/stage/records?limit=100')
  const former = data.filter(({ fields }) => fields['name'] === FORMER_STAGE)
  return former.map(({ id }) => ({ kind: 'delete', resource: 'crm_records', object: 'stage', id }))
}

/** Sends requests as another program would, so that the access log contains them. */
async function callApiAsOtherProgram(simulator: Simulator): Promise<void> {
  const paths = ['v1/members', 'v2/activities?limit=5', 'v2/messages?limit=5']
  await Promise.all(paths.map(path => callApi(simulator, path)))
}

interface RecordList {
  data: readonly { id: string; fields: Readonly<Record<string, unknown>> }[]
}

async function callApi({ url, apiKey, workspaceId }: Simulator, path: string): Promise<RecordList> {
  const headers = { 'x-api-key': apiKey, 'x-workspace-id': workspaceId }
  return (await fetch(`${url}/${path}`, { headers })).json() as Promise<RecordList>
}
