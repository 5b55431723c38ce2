import type { LoggedRequest } from '../../src/simulator/http/requests.ts'
import type { Workspace } from './workspace.ts'

/** What the daemon asked for while the workspace changed. */
export interface Asked {
  /** Requests that were let in. */
  answered: number
  /** Of them, those for what was there before the first change. */
  history: number
  throttled: number
  /** Those that came too fast to be looked at one by one. */
  unseen: number
  seconds: number
}

export interface Tally {
  /** Looks at what came since the last time; to be called before a hundred have come. */
  take(): Promise<void>
  end(): Promise<Asked>
}

/** @param isNew whether an id is of something that was published or changed meanwhile */
export async function startTally(workspace: Workspace, isNew: (id: string) => boolean): Promise<Tally> {
  await workspace.forgetRequests()
  const began = performance.now()
  let seen = 0
  const asked: Asked = { answered: 0, history: 0, throttled: 0, unseen: 0, seconds: 0 }
  const take = async () => {
    const { total, recent } = await workspace.requests()
    const latest = total > seen ? recent.slice(-(total - seen)) : []
    asked.unseen += total - seen - latest.length
    seen = total
    for (const request of latest) {
      if (request.status === 429) asked.throttled += 1
      else asked.answered += 1
      if (request.status !== 429 && isForHistory(request, isNew)) asked.history += 1
    }
  }
  return {
    take,
    async end() {
      await take()
      return { ...asked, seconds: (performance.now() - began) / 1000 }
    },
  }
}

/** Timelines and the names of their bounds. */
const TIMELINES: Readonly<Record<string, { from: string; to: string }>> = {
  '/v2/activities': { from: 'occurred_from', to: 'occurred_to' },
  '/v2/messages': { from: 'received_from', to: 'received_to' },
}

/** The newest end has no upper bound, and a pass that goes down from there has no lower one. */
function isForHistory({ route, path, query }: LoggedRequest, isNew: (id: string) => boolean): boolean {
  const asked = new URLSearchParams(query)
  const ids = asked.get('ids') ?? asked.get('related_id')
  if (ids !== null) return !ids.split(',').some(isNew)
  const bounds = TIMELINES[route]
  if (bounds) return asked.has(bounds.to) || (asked.has('cursor') && !asked.has(bounds.from))
  return !path.split('/').some(isNew)
}
