import type { Store } from '../../store/store.ts'
import { readNote } from '../../store/sync/meta.ts'
import { type Direction, scopeOf } from './associations.ts'

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
