import type { LoggedRequest } from '../../src/simulator/http/requests.ts'
import type { Workspace } from './workspace.ts'

/** The daemon's requests while the workspace changes. */
export interface Asked {
  /** Accepted requests. */
  answered: number
  /** Accepted requests for items from before the first change. */
  history: number
  throttled: number
  /** Requests that came too fast to be examined one by one. */
  unseen: number
  seconds: number
}

export interface Tally {
  /** Examines the requests since the last call. Call it before a hundred new ones have come. */
  take(): Promise<void>
  end(): Promise<Asked>
}

/** @param isNew whether an item with this id was published or changed meanwhile */
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

/** Timelines and the parameters of their bounds. */
const TIMELINES: Readonly<Record<string, { from: string; to: string }>> = {
  '/v2/activities': { from: 'occurred_from', to: 'occurred_to' },
  '/v2/messages': { from: 'received_from', to: 'received_to' },
}

/** A poll of the newest end has no upper bound. A pass down from there has no lower bound. */
function isForHistory({ route, path, query }: LoggedRequest, isNew: (id: string) => boolean): boolean {
  const asked = new URLSearchParams(query)
  const ids = asked.get('ids') ?? asked.get('related_id')
  if (ids !== null) return !ids.split(',').some(isNew)
  const bounds = TIMELINES[route]
  if (bounds) return asked.has(bounds.to) || (asked.has('cursor') && !asked.has(bounds.from))
  return !path.split('/').some(isNew)
}
