import type { Store } from '../../store/store.ts'
import { readNote } from '../../store/sync/meta.ts'

/** Which kinds of records can be associated, and in which direction associations are requested. */

/** The two objects, in the order in which associations are stored. */
export type AssociationKind = readonly [string, string]

/** The scope of a task: its request filters the list of the object `listed` by a record of the object `asking`. */
export interface Direction {
  listed: string
  asking: string
}

export function scopeOf({ listed, asking }: Direction): string {
  return `${listed}<${asking}`
}

export function directionOf(scope: string): Direction {
  const [listed = '', asking = ''] = scope.split('<')
  return { listed, asking }
}

export function opposite({ listed, asking }: Direction): Direction {
  return { listed: asking, asking: listed }
}

export function directionsOf([one, other]: AssociationKind): readonly [Direction, Direction] {
  return [
    { listed: other, asking: one },
    { listed: one, asking: other },
  ]
}

/** The directions whose requests are filtered by a record of this object. */
export function directionsFrom(kinds: readonly AssociationKind[], object: string): Direction[] {
  return kinds.flatMap(directionsOf).filter(({ asking }) => asking === object)
}

/** True when the record of the object `asking` is stored as the first of an association. */
export function isForward(kinds: readonly AssociationKind[], { listed, asking }: Direction): boolean {
  return kinds.some(([from, to]) => from === asking && to === listed)
}

/**
 * What the last plan of an association feed covered and chose. The next plan looks only at records added or deleted
 * since.
 */
export interface AssociationPlan {
  /** `_id` of the newest record that the plan covered. */
  upTo: number
  at: string
  /** The number of records of each object, deleted ones included. */
  sizes: Readonly<Record<string, number>>
  /** Scopes of the chosen directions. */
  scopes: readonly string[]
}

const UNPLANNED: AssociationPlan = { upTo: 0, at: '', sizes: {}, scopes: [] }

const nameOf = (feed: string) => `plan of ${feed}`

export function lastPlan({ state }: Pick<Store, 'state'>, feed: string): AssociationPlan {
  return readNote<AssociationPlan>(state.meta, nameOf(feed)) ?? UNPLANNED
}

export function savePlan({ state }: Pick<Store, 'state'>, feed: string, plan: AssociationPlan): void {
  state.setMeta(nameOf(feed), JSON.stringify(plan))
}

/**
 * Whether a plan has chosen this direction. If so, the associations of each record of `asking` are read at intervals.
 */
export function isPlanned(store: Pick<Store, 'state'>, feed: string, direction: Direction): boolean {
  return lastPlan(store, feed).scopes.includes(scopeOf(direction))
}
