import type { Freshness } from '../../store/rows/freshness.ts'

/**
 * Lists that the daemon reads at once, whatever their interval: in a timeline the newest segment, else every segment
 * (due/by-time.ts). They are kept in memory, so they are lost when the session ends. Demands for single reads are tasks in
 * the database (`sync_tasks`).
 */
export interface DemandedLists {
  add(list: string): void
  /** Whether the segment has to be read because of a demand. */
  isDemanded(list: string, segment: number): boolean
  /**
   * Called when the first page of a pass over a segment was answered. This meets the demand for this segment, unless
   * the demand came after the request: the answer may then be too old.
   */
  passBegan(list: string, segment: number, ticket: number): void
}

interface Demand {
  /** The ticket of the last request that was sent before the demand. */
  after: number
  /** Segments over which a pass has begun since. */
  met: Set<number>
}

export function createDemandedLists(freshness: Pick<Freshness, 'latest'>): DemandedLists {
  const demands = new Map<string, Demand>()
  return {
    add(list) {
      demands.set(list, { after: freshness.latest(), met: new Set() })
    },
    isDemanded: (list, segment) => demands.get(list)?.met.has(segment) === false,
    passBegan(list, segment, ticket) {
      const demand = demands.get(list)
      if (demand && ticket > demand.after) demand.met.add(segment)
    },
  }
}
