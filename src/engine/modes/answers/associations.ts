/** Kinds of records that belong together, and in which direction they are asked for. Pure. */

/** Associations are stored in this direction. */
export type AssociationKind = readonly [string, string]

/** A task's scope: the object whose list is filtered, and the one that the record asked for is of. */
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

/** The directions in which a record of this object can be asked for. */
export function directionsFrom(kinds: readonly AssociationKind[], object: string): Direction[] {
  return kinds.flatMap(directionsOf).filter(({ asking }) => asking === object)
}

/** True where the record that is asked for stands first in the stored association. */
export function isForward(kinds: readonly AssociationKind[], { listed, asking }: Direction): boolean {
  return kinds.some(([from, to]) => from === asking && to === listed)
}
