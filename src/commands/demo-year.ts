import type { Change } from '../simulator/changes.ts'
import type { Service } from './demo-processes.ts'

/** How the made-up workspace of a demo goes on between two readings of it: a table of what happens on a day. */

const DAY_MS = 86_400_000

interface Happening {
  /** Once in so many days. */
  everyDays: number
  change: Change
}

/** For each thousand e-mails that the workspace had before. */
const BY_SIZE: readonly Happening[] = [
  { everyDays: 1, change: { kind: 'publish', resource: 'messages' } },
  { everyDays: 1, change: { kind: 'publish', resource: 'messages' } },
  { everyDays: 1, change: { kind: 'publish', resource: 'messages' } },
  { everyDays: 1, change: { kind: 'publish', resource: 'messages' } },
  { everyDays: 3, change: { kind: 'publish', resource: 'meetings' } },
  { everyDays: 2, change: { kind: 'edit', resource: 'crm_records', object: 'deal' } },
  { everyDays: 9, change: { kind: 'publish', resource: 'crm_records', object: 'deal' } },
]

const HAPPENINGS: readonly Happening[] = [
  { everyDays: 5, change: { kind: 'delete', resource: 'messages', count: 2 } },
  { everyDays: 8, change: { kind: 'edit', resource: 'meetings' } },
  { everyDays: 15, change: { kind: 'hide', resource: 'meetings' } },
  { everyDays: 20, change: { kind: 'delete', resource: 'meetings' } },
  { everyDays: 25, change: { kind: 'delete', resource: 'crm_records', object: 'contact' } },
  { everyDays: 30, change: { kind: 'edit', resource: 'playbooks' } },
  { everyDays: 45, change: { kind: 'delete', resource: 'crm_records', object: 'deal' } },
  { everyDays: 60, change: { kind: 'hide', resource: 'members' } },
]

/** What happens on a day, the first of which is 1, one thing at a time. Pure. */
export function changesOf(day: number, messages: number): Change[] {
  const times = Math.max(1, Math.round(messages / 1000))
  const grown = BY_SIZE.map(happening => ({ ...happening, times }))
  return [...grown, ...HAPPENINGS.map(happening => ({ ...happening, times: 1 }))]
    .filter(({ everyDays }) => day % everyDays === 0)
    .flatMap(({ change, times: count }) => Array<Change>(count).fill(change))
}

/** Hours of a day's end, before which its parts end. */
const PARTS = [9, 6, 2.5, 0] as const

/** Moments of a day in ms from its begin, a few minutes earlier or later from day to day. Pure. */
export function momentsOf(day: number): number[] {
  return PARTS.map((hours, part) => {
    const minutes = part === PARTS.length - 1 ? 0 : (day * 37 + part * 17) % 55
    return DAY_MS - hours * 3_600_000 - minutes * 60_000
  })
}

interface Passing {
  service: Service
  days: number
  /** That the workspace had before. */
  messages: number
}

/** Days go by in the workspace, and things happen on each. @throws Error when the simulator does not answer */
export async function passDays({ service, days, messages }: Passing): Promise<void> {
  const control = async (path: string, body: unknown): Promise<void> => {
    const sent = { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(`${service.url}/_simulator/${path}`, sent)
    if (!response.ok) throw new Error(`the simulator answers ${response.status} to ${path}`)
    await response.arrayBuffer()
  }
  for (let day = 1; day <= days; day += 1) {
    const changes = changesOf(day, messages)
    let passed = 0
    for (const [part, at] of momentsOf(day).entries()) {
      await control('time', { ms: at - passed })
      await control(
        'changes',
        changes.filter((_, index) => index % PARTS.length === part),
      )
      passed = at
    }
    await useOtherwise(service)
  }
}

/** Another program of the workspace uses the API too: its requests are in the access log. */
async function useOtherwise({ url, key, workspace_id: workspace }: Service): Promise<void> {
  const headers = { 'x-api-key': key, 'x-workspace-id': workspace }
  for (const path of ['v1/members', 'v2/activities?limit=5', 'v2/messages?limit=5']) {
    await (await fetch(`${url}/${path}`, { headers })).arrayBuffer()
  }
}
