/** Kinds of records that belong together, and from which side they are asked for. Pure. */

/** Pairs are stored in this direction. */
export type PairKind = readonly [string, string]

/** A task's scope: the object whose list is filtered, and the one that the record asked for is of. */
export interface Side {
  listed: string
  asking: string
}

export function scopeOf({ listed, asking }: Side): string {
  return `${listed}<${asking}`
}

export function sideOf(scope: string): Side {
  const [listed = '', asking = ''] = scope.split('<')
  return { listed, asking }
}

export function opposite({ listed, asking }: Side): Side {
  return { listed: asking, asking: listed }
}

/** Both sides of a kind. */
export function sidesOf([one, other]: PairKind): readonly [Side, Side] {
  return [
    { listed: other, asking: one },
    { listed: one, asking: other },
  ]
}

/** The sides from which a record of this object can be asked for. */
export function sidesOfObject(kinds: readonly PairKind[], object: string): Side[] {
  return kinds.flatMap(sidesOf).filter(({ asking }) => asking === object)
}

/** True where the record that is asked for stands first in the stored pair. */
export function isForward(kinds: readonly PairKind[], { listed, asking }: Side): boolean {
  return kinds.some(([from, to]) => from === asking && to === listed)
}
