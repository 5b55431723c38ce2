/** Which kinds of records can be associated, and in which direction associations are requested. Pure. */

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
