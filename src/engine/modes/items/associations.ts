/** Which kinds of records can be associated, and in which direction associations are asked for. Pure. */

/** The two objects, in the order in which associations are stored. */
export type AssociationKind = readonly [string, string]

/** A task's scope: the object whose list is filtered, and the object of the record that it is filtered by. */
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

/** Both directions of a kind. */
export function directionsOf([one, other]: AssociationKind): readonly [Direction, Direction] {
  return [
    { listed: other, asking: one },
    { listed: one, asking: other },
  ]
}

/** The directions in which a record of this object can ask. */
export function directionsFrom(kinds: readonly AssociationKind[], object: string): Direction[] {
  return kinds.flatMap(directionsOf).filter(({ asking }) => asking === object)
}

/** True when the record that asks is the first of the stored association. */
export function isForward(kinds: readonly AssociationKind[], { listed, asking }: Direction): boolean {
  return kinds.some(([from, to]) => from === asking && to === listed)
}
