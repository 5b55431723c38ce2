/**
 * Stateless randomness: a seed gives the same numbers, whatever was drawn before.
 * Every item of the made-up workspace is a function of (seed, salt, index), so no item has to be stored.
 */

/** An evenly spread unsigned 32-bit number. */
export function mix(seed: number, salt: number, index: number): number {
  let h =
    Math.imul(seed ^ Math.imul(salt, 0x9e3779b1), 0x85ebca6b) ^ Math.imul(index + 0x165667b1, 0xc2b2ae35)
  h ^= h >>> 15
  h = Math.imul(h, 0x2c1b3c6d)
  h ^= h >>> 12
  h = Math.imul(h, 0x297a2d39)
  h ^= h >>> 15
  return h >>> 0
}

/** A whole number from 0 to `bound` - 1. */
export function mixBelow(seed: number, salt: number, index: number, bound: number): number {
  return Math.floor((mix(seed, salt, index) / 0x1_0000_0000) * bound)
}

/** A stream of draws for one item. */
export interface Draw {
  below(bound: number): number
  chance(probability: number): boolean
  pick<T>(list: readonly T[]): T
}

export function createDraw(seed: number, salt: number, index: number): Draw {
  let state = mix(seed, salt, index)
  const unit = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000
  }
  const below = (bound: number): number => Math.floor(unit() * bound)
  return {
    below,
    chance: probability => unit() < probability,
    pick: list => at(list, below(list.length)),
  }
}

/** The element at `index`, which wraps around. Throws on an empty list. */
export function at<T>(list: readonly T[], index: number): T {
  const value = list[index % list.length]
  if (value === undefined) throw new RangeError('nothing to pick from')
  return value
}
